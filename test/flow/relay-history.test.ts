/** Tests the versions of a relay through the API: each version's changes and author, and the restore of an earlier one. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;
beforeAll(async () => {
  running = await startRunningService();
});
afterAll(() => running[Symbol.asyncDispose]());

const grant = (amount: number) => receiverDefinition({ name: "sold", actions: [{ type: "grant_credits", amount, ref: "{{mapped.event_id}}" }] });

const versions = async () => (await running.api("GET", "/relays/sold/versions")).body.items;

test("each save is a version, newest first, with its author, its changes and the old values", async () => {
  await running.api("POST", "/relays", { definition: grant(1) });
  expect((await running.api("PUT", "/relays/sold", { definition: grant(2), version: 1 })).status).toBe(200);
  const [second, first] = await versions();
  expect(second).toMatchObject({
    version: 2,
    actor: expect.stringMatching(/^key:/),
    actorName: "test",
    origin: "dashboard",
    changed: ["actions.0.amount"],
    definition: { actions: [{ amount: 2 }] },
    before: { actions: [{ amount: 1 }] },
  });
  expect(first).toMatchObject({ version: 1, before: null, changed: [] });
});

test("a restore saves an earlier version as a new one, and the audit names it", async () => {
  const restored = await running.api("POST", "/relays/sold/restore", { restores: 1, version: 2 });
  expect(restored.status).toBe(200);
  expect(restored.body.relay).toMatchObject({ version: 3, definition: { actions: [{ amount: 1 }] } });
  expect((await versions())[0]).toMatchObject({ version: 3, restores: 1, changed: ["actions.0.amount"] });
  const audit = (await running.api("GET", "/audit?target=relay:sold&limit=1")).body.items[0];
  expect(audit).toMatchObject({ action: "relay.updated", after: { restores: 1, version: 3 } });
});

test("a restore based on an outdated version is a conflict, one of an unknown version is not found, and neither changes anything", async () => {
  const behind = await running.api("POST", "/relays/sold/restore", { restores: 1, version: 2 });
  expect([behind.status, behind.body.code]).toEqual([409, "version_conflict"]);
  const none = await running.api("POST", "/relays/sold/restore", { restores: 9, version: 3 });
  expect([none.status, none.body.code]).toEqual([404, "not_found"]);
  expect(await versions()).toHaveLength(3);
});

test("a relay recreated under the same name has only its own versions", async () => {
  await running.clock.advance(1_000);
  await running.api("DELETE", "/relays/sold");
  await running.api("POST", "/relays", { definition: grant(7) });
  expect((await versions()).map(({ version }: { version: number }) => version)).toEqual([1]);
  expect((await running.api("GET", "/relays/none/versions")).status).toBe(404);
});
