/**
 * Tests a secret rotation with an overlap over the API. The last use of each secret is shown, and an owner can end the overlap, with an audit row. A
 * one-time signature stays used while its secret verifies, through any other rotation.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { runCommand } from "../kit/cli-io.ts";
import { GRANT, until } from "../kit/event-flow.ts";
import { HOOK_SECRET, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS } from "../kit/virtual-clock.ts";

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

test("shows the last use of each secret during the overlap, and a dry run counts as no use", async () => {
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

test("reports a large number of stored signatures on the relay's page, and not a small one", async () => {
  const remember = (count: number, until: number | null) =>
    running.service.store.write("app", async (tx) => {
      const sql = `INSERT INTO signature_memory (environment_id, relay_name, signed_text_hash, body_hash, until)
        SELECT environment_id, name, $hash, $hash, $until FROM relay WHERE name = 'orders'`;
      const hash = () => new Uint8Array([0, ...crypto.getRandomValues(new Uint8Array(31))]);
      for (let n = 0; n < count; n++) await tx.run(sql, { hash: hash(), until });
    });
  await remember(390, null);
  // These signatures expire.
  await remember(10, running.clock.now() + 60_000);
  expect((await show()).remembered).toBe(null);
  await remember(78, null);
  const { remembered } = await show();
  expect(remembered).toEqual({
    signatures: 119_808,
    message: expect.stringMatching(/^Relay remembers about 120,000 signatures of its requests, about 30 MB\. /),
  });
  const { dataDir: cwd, clock, commandEnv: env } = running;
  const { said } = await runCommand(["relays", "show", "orders", "--data-dir", cwd], { cwd, clock, env });
  expect(said).toContain("signatures  Relay remembers about 120,000 signatures of its requests");
});

test("an ended overlap rejects the old secret and is audited, and a second end is rejected", async () => {
  await rotate();
  expect((await end()).status).toBe(204);
  expect((await show()).relay.secret.previousUntil).toBe(undefined);
  expect(await call("a", HOOK_SECRET)).toBe(401);
  expect(await call("b", NEW_SECRET)).toBe(200);
  const [row] = (await running.api("GET", "/audit?action=relay.secret_changed&limit=1")).body.items;
  expect([row.before.secret.previousUntil, row.after.secret.previousUntil]).toEqual([expect.any(String), undefined]);
  const again = await end();
  expect([again.status, again.body.message]).toEqual([404, expect.stringContaining("no overlap to end")]);
  expect((await running.api("DELETE", "/relays/none/previous-secret")).status).toBe(404);
});

describe("a one-time signature of a secret that", () => {
  const DAY_MS = 86_400_000;
  const verify = { scheme: "signature", signatureField: "signature", tokenField: "token", signedPayload: "{token}", encoding: "hex" };
  const relay = receiverDefinition({ name: "once", verify, map: { note: "note" }, actions: [{ type: "call_url", url: "https://example.com/x" }] });
  const sign = (secret: string) => createHmac("sha256", secret).update("tok-1").digest("hex");
  const callOnce = async (note: string, secret: string) => {
    const body = JSON.stringify({ token: "tok-1", signature: sign(secret), note });
    return (await running.hook("once", { headers: { "content-type": "application/json" }, body })).status;
  };
  const paste = async (value: string, overlapSeconds = 0) => (await running.api("PUT", "/relays/once/secret", { value, overlapSeconds })).status;

  const roads: [what: string, secret: string, before: () => Promise<unknown>, road: () => Promise<unknown>][] = [
    ["is stored again", HOOK_SECRET, async () => null, () => paste(HOOK_SECRET)],
    [
      "was added next to one whose overlap is ended",
      NEW_SECRET,
      () => paste(NEW_SECRET, 3_600),
      () => running.api("DELETE", "/relays/once/previous-secret"),
    ],
    ["was replaced and is pasted again", HOOK_SECRET, async () => null, async () => [await paste(NEW_SECRET), await paste(HOOK_SECRET)]],
    [
      "was replaced twice in a row and is pasted again",
      HOOK_SECRET,
      async () => null,
      async () => [await paste(NEW_SECRET), await paste(`${NEW_SECRET}-third`), await paste(HOOK_SECRET)],
    ],
    ["was used next to another during an overlap and is pasted again", HOOK_SECRET, () => paste(NEW_SECRET, 3_600), () => paste(HOOK_SECRET)],
    [
      "is pasted into a relay that was deleted and created again",
      HOOK_SECRET,
      async () => null,
      async () => [await running.api("DELETE", "/relays/once"), await saveRelay(running, relay)],
    ],
  ];
  test.each(roads)("%s stays used", async (_what, secret, before, road) => {
    await saveRelay(running, relay);
    await before();
    expect(await callOnce("first", secret)).toBe(200);
    await road();
    expect(await callOnce("captured", secret)).toBe(401);
    await running.clock.leap(2 * DAY_MS, DAY_MS / 4);
    expect(await callOnce("captured", secret)).toBe(401);
  });

  test("also signs a timestamp is stored past the longest window that a definition can have", async () => {
    const timed = { ...verify, timestampField: "at", signedPayload: "{timestamp}.{token}", toleranceSeconds: 10 };
    await saveRelay(running, { ...relay, trigger: { ...(relay.trigger as object), verify: timed } });
    const at = Math.floor(running.clock.now() / 1_000);
    const signature = createHmac("sha256", HOOK_SECRET).update(`${at}.tok-1`).digest("hex");
    const body = JSON.stringify({ token: "tok-1", at, signature, note: "first" });
    expect((await running.hook("once", { headers: {}, body })).status).toBe(200);
    const [memory] = await running.rows<{ until: number }>("SELECT until FROM signature_memory");
    expect(memory?.until).toBeGreaterThan((at + 300) * 1_000);
  });

  test("was replaced is deleted in small steps, while signatures of the present secret stay", async () => {
    await saveRelay(running, relay);
    expect(await callOnce("first", HOOK_SECRET)).toBe(200);
    expect(await paste(NEW_SECRET)).toBe(200);
    const [row] = await running.rows<{ environmentId: number; secret: Uint8Array }>(
      "SELECT environment_id AS environmentId, secret FROM signature_memory",
    );
    await running.service.store.write("app", async (tx) => {
      const sql = "INSERT INTO signature_memory (environment_id, relay_name, signed_text_hash, body_hash, secret) VALUES (?1, 'once', ?2, ?2, ?3)";
      const { environmentId = 0, secret = new Uint8Array() } = row ?? {};
      for (let turn = 0; turn < 1_000; turn++) {
        const hash = new Bun.CryptoHasher("sha256").update(String(turn)).digest();
        await tx.run(sql, environmentId, Uint8Array.from(hash), turn % 3 === 0 ? Uint8Array.of(1) : secret);
      }
    });
    await running.clock.leap(2 * DAY_MS, DAY_MS / 4);
    // The maintenance job pauses between the steps.
    await until("the last step is done", async () => {
      await running.clock.advance(1_000);
      return (await running.rows("SELECT 1 FROM retired_secret")).length === 0;
    });
    expect(await running.rows("SELECT length(secret) AS size, count(*) AS count FROM signature_memory GROUP BY secret")).toEqual([
      { size: 1, count: 334 },
    ]);
  });

  // A node of the version before does not record replaced or restored secrets.
  const HASH = "(SELECT secret_digest FROM relay WHERE name = 'orders')";
  const byOlder: [what: string, change: () => Promise<unknown>, older: string, endDays: number][] = [
    ["is pasted again", () => paste(NEW_SECRET), `secret_digest = ${HASH}`, Number.POSITIVE_INFINITY],
    ["gets a longer overlap", () => paste(NEW_SECRET), `previous_secret_digest = ${HASH}, previous_secret_until = ${START_MS + 2.5 * DAY_MS}`, 4],
    ["none names", () => running.api("PUT", "/relays/once/secret", {}), "secret_kind = 'pasted'", Number.POSITIVE_INFINITY],
  ];
  test.each(byOlder)("%s through an older node is still stored", async (what, change, older, endDays) => {
    await saveRelay(running, relay);
    expect(await callOnce("first", HOOK_SECRET)).toBe(200);
    const write = (sql: string) => running.service.store.write("app", (tx) => tx.run(sql));
    if (what === "none names") await write("UPDATE signature_memory SET secret = NULL");
    await change();
    await write(`UPDATE relay SET ${older} WHERE name = 'once'`);
    const days: number[] = [];
    for (let day = 2; day <= 6; day += 2) {
      await running.clock.leap(2 * DAY_MS, DAY_MS / 4);
      if ((await running.rows("SELECT 1 FROM signature_memory")).length === 1) days.push(day);
    }
    expect(days).toEqual([2, 4, 6].filter((day) => day < endDays));
  });

  test("was replaced is deleted after a day", async () => {
    await saveRelay(running, relay);
    expect(await callOnce("first", HOOK_SECRET)).toBe(200);
    expect((await running.api("PUT", "/relays/once/secret", {})).status).toBe(200);
    await running.clock.leap(2 * DAY_MS, DAY_MS / 4);
    expect(await running.rows("SELECT 1 FROM signature_memory")).toEqual([]);
  });
});
