/**
 * Tests `relay receipts list` and `refund` on a data directory and on a server. They ask for confirmation, repeats change nothing, and each is
 * audited like in the API.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { sendEvent } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
let running: RunningService;
let ada: string;

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
  await running.api("PUT", "/products/lamp", { credits: 5 });
  await running.api("POST", "/receipts", { ref: "pay_7", person: ada, product: "lamp", amountMinor: 4200, currency: "EUR" });
});
afterEach(() => running[Symbol.asyncDispose]());

const has = async () => {
  const { access, credits } = (await running.api("GET", `/persons/${ada}`)).body;
  return [access.grants.length, credits];
};
const PLAN = `Refunds the purchase of lamp (ref pay_7) of ${ADA}. Its access to lamp ends. The refund removes 5 of its credits. This moves no money: refund the payment where it was paid.`;
const TAKEN = `What lamp granted to ${ADA} is taken back, and a refund is stored next to the receipt.`;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = (line: string, more = {}) => runAt(place, running, ["receipts", ...line.split(" ")], "", more);

  test("revokes what a payment granted once, lists the refund next to its receipt, and audits it", async () => {
    expect(await has()).toEqual([1, 5]);
    const { code, told } = await run("refund pay_7 --confirm pay_7");
    expect([code, told.trim()]).toEqual([0, `${PLAN}\n${TAKEN}`]);
    expect(await has()).toEqual([0, 0]);
    const again = await run("refund pay_7 --json");
    expect([again.code, again.told.trim()]).toEqual([0, `What lamp granted to ${ADA} was already taken back: nothing changed.`]);
    expect(JSON.parse(again.said)).toMatchObject({ receipt: { ref: "pay_7", kind: "purchase" }, created: false });
    const { said } = await run("list --ref pay_7");
    expect(said.split("\n").map((line) => line.split(/ {2,}/).slice(1))).toEqual([
      ["STATE", "ITEM", "AMOUNT", "ADDRESS", "FROM", "REF"],
      ["refund", "lamp", "42.00 EUR", ADA, "payment", "pay_7"],
      ["refunded", "lamp", "42.00 EUR", ADA, "payment", "pay_7"],
    ]);
    expect((await running.api("GET", "/audit?action=receipt.refunded")).body.items).toMatchObject([
      { actor: expect.stringMatching(/^(command line|key:)/) },
    ]);
  });

  test("refunds nothing without a confirmation, or with another ref as confirmation", async () => {
    const silent = await run("refund pay_7");
    expect([silent.code, silent.told]).toEqual([
      1,
      expect.stringContaining(
        `${PLAN}\nNothing was taken back, because there is no terminal for the question: write relay receipts refund pay_7 --confirm pay_7 to confirm.`,
      ),
    ]);
    const other = await run("refund pay_7 --confirm pay_8");
    expect([other.code, other.told]).toEqual([2, expect.stringContaining('--confirm is "pay_8", but the ref is pay_7')]);
    expect(await has()).toEqual([1, 5]);
    const yes = { interactive: true, confirm: (question: string) => Promise.resolve(question === "Take back what lamp granted?") };
    expect((await run("refund pay_7", yes)).code).toBe(0);
    expect(await has()).toEqual([0, 0]);
  });

  test("refunds a suspended person's payment too", async () => {
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    expect((await run("refund pay_7 --confirm pay_7")).code).toBe(0);
    await running.api("PATCH", `/persons/${ada}`, { status: "active" });
    expect(await has()).toEqual([0, 0]);
  });

  test("refunds a relay's payment and a plan's payment too, and lists the amount", async () => {
    const none = await run("refund pay_9 --confirm pay_9");
    expect([none.code, none.told]).toEqual([
      1,
      expect.stringContaining('There is no payment with the ref "pay_9": relay receipts list shows the refs.'),
    ]);
    await running.api("PUT", "/plans/free", {});
    await running.api("PUT", "/plans/pro", {});
    await running.api("POST", "/receipts", { ref: "pay_8", person: ada, plan: "pro" });
    const plan = await run("refund pay_8 --confirm pay_8");
    expect([plan.code, plan.told]).toEqual([0, expect.stringContaining("The plan pro ends, and the person moves to the default plan.")]);
    expect((await running.api("GET", `/persons/${ada}`)).body.plan).toBe("free");
    await saveRelay(
      running,
      receiverDefinition({
        map: { event_id: "id", person_email: "email", amount: "paid", currency: "in" },
        actions: [{ type: "fulfil_product", product: "mug", ref: "{{mapped.event_id}}" }],
      }),
    );
    await running.api("PUT", "/products/mug", { soldThrough: { kind: "relay", relay: "orders" } });
    await sendEvent(running, "in_1", { email: ADA, paid: "42.00", in: "eur" });
    await running.drain();
    const mug = await run("refund in_1 --confirm in_1");
    expect([mug.code, mug.told]).toEqual([0, expect.stringContaining(`What mug granted to ${ADA} is taken back`)]);
    const { said } = await run("list --ref in_1");
    expect(said.split("\n").map((line) => line.split(/ {2,}/).slice(1))).toEqual([
      ["STATE", "ITEM", "AMOUNT", "ADDRESS", "FROM", "REF"],
      ["refund", "mug", "42.00 EUR", ADA, "by hand", "in_1"],
      ["refunded", "mug", "42.00 EUR", ADA, "orders", "in_1"],
    ]);
    expect(await has()).toEqual([1, 5]);
  });
});
