/**
 * Tests `relay receipts record` on a data directory and on a server. It previews what it grants, stores one receipt per ref, and each error says what
 * to do.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
const SURE = " --confirm pay_7";
const PAID = `pay_7 --person ${ADA} --product lamp --amount-minor 4200 --currency EUR`;
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
  await running.api("PUT", "/access/light", {});
  await running.api("PUT", "/products/lamp", { key: "access:light", credits: 5 });
  await running.api("PUT", "/plans/free", { default: true });
  await running.api("PUT", "/plans/pro", {});
  await running.api("PUT", "/plans/team", {});
});
afterEach(() => running[Symbol.asyncDispose]());

const has = async () => {
  const { access, credits, plan } = (await running.api("GET", `/persons/${ada}`)).body;
  return [access.grants.map(({ entitlement }: { entitlement: string }) => entitlement), credits, plan];
};
const receipts = async () => (await running.api("GET", "/purchases")).body.items;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = async (line: string, more = {}) => {
    const { code, told, said } = await runAt(place, running, ["receipts", "record", ...line.split(" ")], "", more);
    return { code, said, told: told.trim().split("\n") };
  };

  test("records a payment once, after a preview, and a repeat returns the same receipt", async () => {
    const made = await run(PAID + SURE);
    expect([made.code, made.told]).toEqual([
      0,
      [
        `pay_7: ${ADA} paid 42.00 EUR for the product lamp. They get access:light permanently, and 5 credits. Relay stores a receipt, and no money moves.`,
        `The payment pay_7 is recorded, and ${ADA} has access:light and 5 credits of it.`,
      ],
    ]);
    expect(await has()).toEqual([["access:light"], 5, "free"]);
    const again = await run(`${PAID} --json`);
    const [receipt] = await receipts();
    expect([again.code, again.told]).toEqual([
      0,
      [`Nothing changed: the payment pay_7 was already recorded at ${receipt.createdAt}, for lamp of ${ADA}.`],
    ]);
    expect(JSON.parse(again.said)).toMatchObject({ receipt: { id: receipt.id, amountMinor: 4200, currency: "EUR" }, created: false });
    expect(await receipts()).toHaveLength(1);
    expect(await has()).toEqual([["access:light"], 5, "free"]);
    expect((await running.api("GET", "/audit?action=receipt.recorded")).body.items).toMatchObject([
      { actor: expect.stringMatching(/^(command line|key:)/) },
    ]);
  });

  test("leaves a refunded payment refunded", async () => {
    await run(PAID + SURE);
    await running.api("POST", "/receipts", { kind: "refund", ref: "pay_7", person: ada, product: "lamp" });
    expect((await run(PAID)).told.join()).toEndWith(`of ${ADA}. It was refunded later, and stays refunded.`);
    expect(await has()).toEqual([[], 0, "free"]);
  });

  test("records nothing without a confirmation, and a yes at a terminal confirms", async () => {
    const silent = await run(PAID);
    expect([silent.code, silent.told.slice(1).join("\n")]).toEqual([
      1,
      expect.stringContaining(
        "Nothing was recorded, because there is no terminal for the question: write relay receipts record pay_7 … --confirm pay_7 to confirm.",
      ),
    ]);
    const other = await run(`${PAID} --confirm pay_8`);
    expect([other.code, other.told.join()]).toEqual([2, expect.stringContaining('--confirm is "pay_8", but the ref is pay_7')]);
    expect((await run(PAID, { interactive: true, confirm: () => Promise.resolve(false) })).code).toBe(1);
    expect(await receipts()).toEqual([]);
    const yes = { interactive: true, confirm: (question: string) => Promise.resolve(question === "Record this payment?") };
    expect((await run(PAID, yes)).code).toBe(0);
    expect(await receipts()).toHaveLength(1);
  });

  const GIVES: [what: string, line: string, told: string, ends: string, plan: string][] = [
    [
      "a plan after the default plan",
      "--plan pro",
      "paid the plan pro. They move to the plan pro and stay on it until you end it: no relay ends it. Relay stores",
      "is on the plan pro.",
      "pro",
    ],
    [
      "a plan that replaces another",
      "--plan team --customer cus_1",
      "They move to the plan team and stay on it until you end it: no relay ends it. Their plan pro ends.",
      "is on the plan team.",
      "team",
    ],
    ["the same plan again", "--plan pro", "They stay on the plan pro until you end it: no relay ends it.", "is on the plan pro.", "pro"],
  ];
  test.each(GIVES)("%s is described before and after", async (what, line, told, ends, plan) => {
    if (!what.includes("default")) await running.api("POST", "/receipts", { ref: "pay_1", person: ada, plan: "pro" });
    const made = await run(`pay_7 --person ${ada} ${line}${SURE}`);
    expect([made.code, made.told[0], made.told.at(-1)]).toEqual([0, expect.stringContaining(told), expect.stringContaining(ends)]);
    expect((await has())[2]).toBe(plan);
  });

  test("warns of a suspended person, and of a product that a relay sells too", async () => {
    await saveRelay(running, receiverDefinition({ actions: [{ type: "fulfil_product", product: "lamp" }] }));
    await running.api("PUT", "/products/lamp", { soldThrough: { kind: "relay", relay: "orders" } });
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    const { code, told } = await run(PAID + SURE);
    expect([code, told.slice(1, 3)]).toEqual([
      0,
      [
        `They are suspended and cannot use it until you activate them: relay people activate ${ada}.`,
        "The relay orders sells this product too. If the relay gets an event for this payment with a ref other than pay_7, it grants the product again.",
      ],
    ]);
  });

  const REFUSED: [what: string, line: string, code: number, words: string][] = [
    ["no person", "--product lamp", 2, "--person is missing: name who paid"],
    [
      "an unknown address",
      "--person bob@example.com --product lamp",
      1,
      'No person "bob@example.com" exists in this environment: relay people list shows the existing people. If this person paid, look for a rejected request with relay requests list.',
    ],
    ["neither product nor plan", `--person ${ADA}`, 2, "Name what was paid: either a product with --product or a plan with --plan"],
    ["both", `--person ${ADA} --product lamp --plan pro`, 2, "Name what was paid"],
    [
      "an unknown product",
      `--person ${ADA} --product lump`,
      1,
      "No product of this name exists in this environment: relay catalog list product shows the existing ones.",
    ],
    [
      "an unknown plan",
      `--person ${ADA} --plan lamp`,
      1,
      "No plan of this name exists in this environment: relay catalog list plan shows the existing ones.",
    ],
    [
      "an amount with a decimal point",
      `--person ${ADA} --product lamp --amount-minor 42.00 --currency EUR`,
      2,
      '--amount-minor is "42.00": write a whole number in the currency\'s smallest unit, such as 4200 for 42.00 EUR.',
    ],
    ["an amount without a currency", `--person ${ADA} --product lamp --amount-minor 4200`, 2, "--amount-minor needs a currency"],
    ["a currency without an amount", `--person ${ADA} --product lamp --currency EUR`, 2, "--currency needs an amount"],
    [
      "no currency",
      `--person ${ADA} --product lamp --amount-minor 1 --currency EUX`,
      2,
      '--currency is "EUX", which is not a currency: write three capital letters, such as EUR.',
    ],
    [
      "a currency in small letters",
      `--person ${ADA} --product lamp --amount-minor 1 --currency eur`,
      2,
      '--currency is "eur", which is not a currency',
    ],
    ["a customer of a product", `--person ${ADA} --product lamp --customer cus_1`, 1, "`processorCustomerId` goes with a plan only"],
    ["invalid data", `--person ${ADA} --product lamp --data 1`, 2, "The value is not a JSON object"],
  ];
  test.each(REFUSED)("%s is rejected, and nothing is recorded", async (_what, line, code, words) => {
    const refused = await run(`pay_7 ${line}${SURE}`);
    expect([refused.code, refused.told.join("\n")]).toEqual([code, expect.stringContaining(words)]);
    expect(await receipts()).toEqual([]);
  });

  test("rejects another amount or person under the same ref", async () => {
    await run(PAID + SURE);
    const other = await run(PAID.replace("4200", "4300"));
    expect([other.code, other.told.join("\n")]).toEqual([
      1,
      expect.stringContaining(
        "The receipt of pay_7 has 42.00 EUR, but this command has 43.00 EUR. A receipt never changes. Use another ref for another payment. To undo a mistaken payment for a product: relay receipts refund pay_7.",
      ),
    ]);
    await running.api("POST", "/persons", { email: "bob@example.com" });
    const bob = await run(PAID.replace(ADA, "bob@example.com") + SURE);
    expect([bob.code, bob.told.join("\n")]).toEqual([1, expect.stringContaining("`ref` already belongs to another person's purchase")]);
    expect(await receipts()).toHaveLength(1);
  });
});
