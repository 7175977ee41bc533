/**
 * Deletes an app from a running server while requests arrive. Each request gets an answer and none acts afterwards. An interrupted deletion resumes,
 * and other apps keep their rows.
 */
import { afterAll, expect, test } from "bun:test";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { runCommand } from "../kit/cli-io.ts";
import { until } from "../kit/event-flow.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { startRunningService } from "../kit/running-service.ts";

const running = await startRunningService({ config: { baseUrl: null }, environments: ["development", "production"] });
afterAll(() => running[Symbol.asyncDispose]());
await makeOrders(running);
await saveRelay(running, receiverDefinition({}));

const nowMs = running.clock.now();
const cookie = await running.service.store.write("app", async (tx) => {
  const owner = await createOwner(tx, { email: "ann@example.com", passwordHash: "a hash", nowMs });
  return `relay_session=${(await createSession(tx, owner.id, nowMs)).token}`;
});

async function owner(method: string, path: string, body?: unknown) {
  const response = await fetch(`${running.service.url}${path}`, {
    method,
    headers: { cookie, origin: running.service.url, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const send = (id: string) => running.hook("orders", signedCall({ id, amount: 1 }));
const relay = (line: string) =>
  runCommand(line.split(" "), { cwd: running.dataDir, env: { RELAY_DATA_DIR: running.dataDir, ...running.commandEnv } });
const isEmptied = async () => (await running.rows("SELECT 1 FROM app WHERE deleted_at IS NOT NULL AND emptied_at IS NULL")).length === 0;

test("the preview counts the rows, only the app's id confirms the deletion, and keys cannot delete", async () => {
  expect((await send("first")).status).toBe(200);
  await running.drain();
  const { body } = await owner("GET", "/api/apps/app_test/contents");
  const held = Object.fromEntries(body.contents.environments[0].held.map(({ what, count }: { what: string; count: number }) => [what, count]));
  expect(held).toMatchObject({ relays: 1, keys: 1, events: 1, records: 1 });
  expect(body.contents.standsAgainst).toBeNull();
  expect((await owner("DELETE", "/api/apps/app_test", { confirm: "Test" })).body.code).toBe("invalid_input");
  const headers = { authorization: `Bearer ${running.keys["production"]}`, "content-type": "application/json" };
  const byKey = await fetch(`${running.service.url}/api/apps/app_test`, { method: "DELETE", headers, body: '{"confirm":"app_test"}' });
  expect([byKey.status, (await send("second")).status]).toEqual([403, 200]);
});

test("the command refuses an app with production events, and deletes nothing without a confirmation", async () => {
  const [production] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'production'");
  await running.service.store.write("app", async (tx) => {
    await tx.run("INSERT INTO relay_name (key, environment_id, name) VALUES (900, ?1, 'paid')", production?.id ?? 0);
    await tx.run(
      "INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, created_at, payload) VALUES (900, ?1, 900, 900, 'receiver', 'done', ?2, '{}')",
      production?.id ?? 0,
      nowMs,
    );
  });
  expect(await relay("apps delete app_test --confirm app_test")).toMatchObject({
    code: 1,
    told: expect.stringMatching(/production: 1 key, 1 event[\s\S]*has events, so nothing was deleted[\s\S]*in_use/),
  });
  expect((await owner("DELETE", "/api/apps/app_test", { confirm: "app_test" })).body.code).toBe("in_use");
  expect((await relay("apps create Other --id other")).code).toBe(0);
  expect(await relay("apps delete other")).toMatchObject({ code: 1, told: expect.stringContaining("relay apps delete other --confirm other") });
  expect((await relay("apps list --json")).said).toContain("app_test");
});

test("requests during the deletion get 200 or unknown, and their rows are deleted, also after a restart in the middle", async () => {
  const calls = Array.from({ length: 20 }, async (_, at) => (await send(`race-${at}`)).status);
  const deleted = await owner("DELETE", "/api/apps/app_test", { confirm: "app_test", force: true });
  expect(deleted.status).toBe(200);
  expect([...new Set(await Promise.all(calls))].filter((status) => status !== 200 && status !== 404)).toEqual([]);
  const late = await send("late");
  expect([late.status, late.body.code]).toEqual([404, "unknown_receiver"]);
  expect((await running.api("GET", "/relays")).status).toBe(401);
  expect((await owner("GET", "/api/apps/app_test/development/relays")).status).toBe(404);
  await running.restart();
  expect(await isEmptied()).toBe(false);
  await until("it is emptied", async () => {
    await running.clock.advance(1_000);
    return await isEmptied();
  });
  const left = await running.rows<{ count: number }>(
    "SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM record) + (SELECT count(*) FROM run) + (SELECT count(*) FROM api_key) AS count",
  );
  expect(left).toEqual([{ count: 0 }]);
  const audit = await running.rows<{ action: string; actor: string; target: string }>(
    "SELECT action, actor, target FROM audit WHERE environment_id = 0 AND action LIKE 'app.%' ORDER BY seq",
  );
  expect(audit.map(({ action, target }) => `${action} ${target}`)).toEqual([
    "app.created app:other",
    "app.deleted app:app_test",
    "app.emptied app:app_test",
  ]);
  expect(audit[1]?.actor).toBe("owner:ann@example.com");
  expect((await relay("apps list --json")).said).toContain('"other"');
});

test("the command deletes an app whose production is empty, and the id can be used again", async () => {
  const { code, told } = await relay("apps delete other --confirm other");
  expect([code, told]).toEqual([
    0,
    expect.stringMatching(/development: nothing[\s\S]*The app other is deleted\. The running server, or the next one that starts, removes its data/),
  ]);
  await until("it is emptied", async () => {
    await running.clock.advance(1_000);
    return await isEmptied();
  });
  expect((await relay("apps create Other --id other")).code).toBe(0);
});
