/** `relay receipts list` and `refund`: here and at a server alike, asked for first, told again nothing changes, and audited as the API's. */
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
const TAKEN = `What lamp gave ${ADA} is taken back, and a refund stands beside its receipt. No money moved: refund the payment at your processor.`;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = (line: string, more = {}) => runAt(place, running, ["receipts", ...line.split(" ")], "", more);

  test("what a payment gave is taken back once, listed beside its receipt, and audited", async () => {
    expect(await has()).toEqual([1, 5]);
    const { code, told } = await run("refund pay_7 --confirm pay_7");
    expect([code, told.trim()]).toEqual([0, TAKEN]);
    expect(await has()).toEqual([0, 0]);
    const again = await run("refund pay_7 --json");
    expect([again.code, again.told.trim()]).toEqual([0, `What lamp gave ${ADA} was taken back already: nothing changed.`]);
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

  test("nothing is taken back unasked, nor where another ref is written behind", async () => {
    const silent = await run("refund pay_7");
    expect([silent.code, silent.told]).toEqual([
      1,
      expect.stringContaining(
        `The entitlement and the credits that lamp gave ${ADA} (pay_7) would end, and a refund stand beside the receipt. No money moves.\nNothing was taken back, because nobody is there to be asked: say relay receipts refund pay_7 --confirm pay_7 to do it without being asked.`,
      ),
    ]);
    const other = await run("refund pay_7 --confirm pay_8");
    expect([other.code, other.told]).toEqual([2, expect.stringContaining('--confirm is "pay_8", and the ref is pay_7')]);
    expect(await has()).toEqual([1, 5]);
    const yes = { interactive: true, confirm: (question: string) => Promise.resolve(question === "Take back what lamp gave?") };
    expect((await run("refund pay_7", yes)).code).toBe(0);
    expect(await has()).toEqual([0, 0]);
  });

  test("what somebody who is suspended paid is taken back as well", async () => {
    await running.api("PATCH", `/persons/${ada}`, { status: "suspended" });
    expect((await run("refund pay_7 --confirm pay_7")).code).toBe(0);
    await running.api("PATCH", `/persons/${ada}`, { status: "active" });
    expect(await has()).toEqual([0, 0]);
  });

  test("what is no payment of a product is refused with what to do instead", async () => {
    const none = await run("refund pay_9 --confirm pay_9");
    expect([none.code, none.told]).toEqual([1, expect.stringContaining('No payment is recorded under "pay_9": relay receipts list shows the refs.')]);
    await running.api("PUT", "/plans/pro", {});
    await running.api("POST", "/receipts", { ref: "pay_8", person: ada, plan: "pro" });
    expect((await run("refund pay_8 --confirm pay_8")).told).toContain(
      `pay_8 paid the plan pro, which is ended instead: relay people end ${ADA} pro.`,
    );
    await saveRelay(
      running,
      receiverDefinition({
        map: { event_id: "id", person_email: "email" },
        actions: [{ type: "fulfil_product", product: "mug", ref: "{{mapped.event_id}}" }],
      }),
    );
    await running.api("PUT", "/products/mug", { soldThrough: { kind: "relay", relay: "orders" } });
    await sendEvent(running, "in_1", { email: ADA });
    await running.drain();
    expect((await run("refund in_1 --confirm in_1")).told).toContain(
      "in_1 was fulfilled by the relay orders, and what a relay fulfilled a relay refunds, as its sender's refund arrives.",
    );
    expect(await has()).toEqual([3, 5]);
  });
});
