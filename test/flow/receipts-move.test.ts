/** Tests `relay receipts move` on a data directory and on a server: the plan, the question, the move, its repetition, and a race with a refund. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const [ADA, BOB] = ["ada@example.com", "bob@example.com"];
let running: RunningService;
let [ada, bob] = ["", ""];

beforeEach(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: ADA })).body.person.id;
  bob = (await running.api("POST", "/persons", { email: BOB })).body.person.id;
  await running.api("PUT", "/products/lamp", { credits: 5 });
  await running.api("POST", "/receipts", { ref: "pay_7", person: ada, product: "lamp", amountMinor: 4200, currency: "EUR" });
});
afterEach(() => running[Symbol.asyncDispose]());

const has = async (person: string) => {
  const { access, credits } = (await running.api("GET", `/persons/${person}`)).body;
  return [access.grants.length, credits];
};
const PLAN = `Moves the purchase of lamp (ref pay_7) from ${ADA} to ${BOB}. Its access to lamp moves. Its 5 credits move. Its ref stays, so a later refund finds it. No money moves.`;

describe.each(COMMAND_PLACES)("%s", (place) => {
  const run = (line: string, more = {}) => runAt(place, running, ["receipts", ...line.split(" ")], "", more);

  test("shows the plan, moves once, and says on a repetition that nothing changes", async () => {
    const planned = await run(`move pay_7 ${BOB} --plan`);
    expect([planned.code, planned.said.trim(), await has(bob)]).toEqual([0, PLAN, [0, 0]]);
    const { code, told } = await run(`move pay_7 ${BOB} --yes`);
    expect([code, told.trim()]).toEqual([0, `${PLAN}\nlamp belongs to ${BOB} now.`]);
    expect([await has(ada), await has(bob)]).toEqual([
      [0, 0],
      [1, 5],
    ]);
    const again = await run(`move pay_7 ${BOB} --yes --json`);
    expect([again.code, JSON.parse(again.said)]).toMatchObject([0, { moved: false, receipt: { person: bob } }]);
    expect([await has(ada), await has(bob)]).toEqual([
      [0, 0],
      [1, 5],
    ]);
    expect((await running.api("GET", "/audit?action=receipt.moved")).body.items).toMatchObject([
      { actor: expect.stringMatching(/^(command line|key:)/) },
    ]);
  });

  test("moves nothing without a yes, an unknown ref or an unknown person", async () => {
    const silent = await run(`move pay_7 ${BOB}`);
    expect([silent.code, silent.told]).toEqual([1, expect.stringContaining(`relay receipts move pay_7 ${BOB} --yes`)]);
    const yes = { interactive: true, confirm: (question: string) => Promise.resolve(question === `Move the purchase of lamp to ${BOB}?`) };
    expect((await run("move pay_9 bob@example.com --yes")).told).toContain('There is no payment with the ref "pay_9"');
    expect((await run("move pay_7 eve@example.com --yes")).told).toContain("eve@example.com");
    expect([await has(ada), await has(bob)]).toEqual([
      [1, 5],
      [0, 0],
    ]);
    expect((await run(`move pay_7 ${BOB}`, yes)).code).toBe(0);
    expect([await has(ada), await has(bob)]).toEqual([
      [0, 0],
      [1, 5],
    ]);
  });
});

test("moves and refunds at the same time leave the purchase with one person at most", async () => {
  const [{ id }] = (await running.api("GET", "/purchases?ref=pay_7")).body.items;
  const answers = await Promise.all([
    running.api("POST", `/purchases/${id}/move`, { person: bob }),
    running.api("POST", "/receipts", { kind: "refund", ref: "pay_7", person: ada, product: "lamp" }),
    running.api("POST", `/purchases/${id}/move`, { person: bob }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 201, 200]);
  expect([await has(ada), await has(bob)]).toEqual([
    [0, 0],
    [0, 0],
  ]);
});

test("writes the receipts of a move to the mapped collection, each for its person, and no relay runs", async () => {
  const fields = { ref: { type: "text" }, kind: { type: "text" } };
  await running.api("POST", "/collections", { name: "payments", kind: "addressed", fields });
  const { settings } = (await running.api("GET", "/settings")).body;
  await running.api("PUT", "/settings", { version: settings.version, receipts: { collection: "payments" } });
  const trigger = { kind: "data_change", collection: "payments", on: ["created"] };
  const actions = [{ type: "grant_credits", amount: 1 }];
  expect((await running.api("POST", "/relays", { definition: { name: "watch", trigger, actions } })).status).toBe(201);
  const [{ id }] = (await running.api("GET", "/purchases?ref=pay_7")).body.items;
  expect((await running.api("POST", `/purchases/${id}/move`, { person: bob })).body.moved).toBe(true);
  await running.clock.advance(5_000);
  await running.drain();
  expect((await running.api("GET", "/events")).body.items).toEqual([]);
  const { items } = (await running.api("GET", "/collections/payments/records")).body;
  const seen = items.map((one: { recipient: string; data: { kind: string } }) => [one.recipient, one.data.kind]);
  expect(seen.sort()).toEqual(
    [
      [ada, "refund"],
      [bob, "purchase"],
    ].sort(),
  );
});
