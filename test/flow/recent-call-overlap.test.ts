/** Tests a secret rotation with an overlap over HTTP: the receiver accepts both secrets, and the overlap has limits. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const NEXT = "theNextSecretOfTwentyFour1";
const SEVEN_DAYS_S = 7 * 86_400;

let running: RunningService;

beforeAll(async () => {
  running = await startRunningService();
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
});

afterAll(() => running[Symbol.asyncDispose]());

test.each([-1, 0.5, SEVEN_DAYS_S + 1, "soon"])("an overlap of %p seconds is rejected", async (overlapSeconds) => {
  const answer = await running.api("PUT", "/relays/orders/secret", { value: NEXT, overlapSeconds });
  expect([answer.status, answer.body.code]).toEqual([400, "invalid_input"]);
  expect(answer.body.message).toContain("overlapSeconds");
});

test("both secrets are accepted until the overlap ends, and the relay shows its end", async () => {
  const answer = await running.api("PUT", "/relays/orders/secret", {
    value: NEXT,
    overlapSeconds: SEVEN_DAYS_S,
  });
  const until = "2026-01-22T12:00:00.000Z";
  expect([answer.status, answer.body]).toEqual([200, { previousUntil: until }]);
  expect((await running.api("GET", "/relays/orders")).body.relay.secret.previousUntil).toBe(until);
  const send = async (id: string, secret: string): Promise<number> => (await running.hook("orders", signedCall({ id }, secret))).status;
  expect([await send("a", HOOK_SECRET), await send("b", NEXT)]).toEqual([200, 200]);
  running.clock.jump(SEVEN_DAYS_S * 1_000);
  expect([await send("c", HOOK_SECRET), await send("d", NEXT)]).toEqual([401, 200]);
});
