/** A rotation with an overlap, over the API: which of the two secrets the sender uses is told, and the overlap is ended by hand, audited. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { GRANT } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const NEW_SECRET = "aB3dEfGh1jKlMn0pQrStUvWx";
const PERSON = { event_id: "id", person_email: "email" };

let running: RunningService;
beforeEach(async () => {
  running = await startRunningService();
  await saveRelay(running, receiverDefinition({ map: PERSON, actions: [GRANT] }));
});
afterEach(() => running[Symbol.asyncDispose]());

const show = async () => (await running.api("GET", "/relays/orders")).body;
const rotate = () => running.api("PUT", "/relays/orders/secret", { value: NEW_SECRET, overlapSeconds: 86_400 });
const end = () => running.api("DELETE", "/relays/orders/previous-secret");
const call = async (id: string, secret: string) => (await running.hook("orders", signedCall({ id, email: "ada@example.com" }, secret))).status;

test("while both verify it is told when each last did; looking into a call by explaining it says nothing", async () => {
  expect((await show()).secretUse).toBe(null);
  expect((await rotate()).status).toBe(200);
  expect((await show()).secretUse).toEqual({ presentAt: null, previousAt: null });
  const oldAt = new Date(running.clock.now()).toISOString();
  expect(await call("a", HOOK_SECRET)).toBe(200);
  expect((await show()).secretUse).toEqual({ presentAt: null, previousAt: oldAt });
  await running.clock.advance(60_000);
  await running.api("POST", "/relays/orders/explain", {});
  expect((await show()).secretUse.presentAt).toBe(null);
  expect(await call("b", NEW_SECRET)).toBe(200);
  expect((await show()).secretUse).toEqual({ presentAt: new Date(running.clock.now()).toISOString(), previousAt: oldAt });
  await running.clock.leap(86_400_000);
  expect((await show()).secretUse).toBe(null);
});

test("ended by hand the one before verifies no more, which is audited; twice is refused", async () => {
  await rotate();
  expect((await end()).status).toBe(204);
  expect((await show()).relay.secret.previousUntil).toBe(undefined);
  expect(await call("a", HOOK_SECRET)).toBe(401);
  expect(await call("b", NEW_SECRET)).toBe(200);
  const [row] = (await running.api("GET", "/audit?action=relay.secret_changed&limit=1")).body.items;
  expect([row.before.secret.previousUntil, row.after.secret.previousUntil]).toEqual([expect.any(String), undefined]);
  const again = await end();
  expect([again.status, again.body.message]).toEqual([404, expect.stringContaining("nothing to end")]);
  expect((await running.api("DELETE", "/relays/none/previous-secret")).status).toBe(404);
});
