/**
 * Tests the rotation of a signing secret with an overlap: until its end each notice has a signature of both secrets, and then only one. The vendors'
 * library, the package for called servers and the older check of one secret verify them.
 */
import { afterEach, beforeEach, describe, expect, setSystemTime, test } from "bun:test";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { signNotice } from "../../src/platform/outbound/notice-signature.ts";
import { findRelay, RELAY, signingSecretContext } from "../../src/rules/relay/relay.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { runCommand } from "../kit/cli-io.ts";
import { HOOK_SECRET, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { type Sink, startSink } from "../kit/sink.ts";

/** A secret as releases before Standard Webhooks created it. */
const OLD_FORM = "sgn_Yh3cWq0pZsT7nLxKd5vRb8mGjE2aFuNiQk7bXFQsq4O";
const DAY_SECONDS = 86_400;

const { verify } = (await import(join(PROJECT_ROOT, "client/verifier/verify.js"))) as typeof import("../../client/verifier/types.d.ts");

let running: RunningService;
let sink: Sink;
let first: string;
let sent = 0;

beforeEach(async () => {
  sent = 0;
  sink = startSink();
  running = await startRunningService({ environments: ["local"], config: { mode: "local" } });
  const actions = [{ type: "call_url", url: `${sink.url}/notice`, standardWebhooks: true }];
  const made = await local("POST", "/relays", { definition: receiverDefinition({ map: { event_id: "id" }, actions }), secret: HOOK_SECRET });
  expect(made.status).toBe(201);
  first = made.body.signingSecret;
});
afterEach(async () => {
  await running[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
});

const local = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");
const rotate = async (overlapSeconds?: number) =>
  (await local("PUT", "/relays/orders/signing-secret", overlapSeconds === undefined ? undefined : { overlapSeconds })).body;
const end = () => local("DELETE", "/relays/orders/previous-secret?kind=signing");
const show = async () => (await local("GET", "/relays/orders")).body.relay;

type Notice = Awaited<ReturnType<Sink["waitFor"]>>[number];

async function send(): Promise<Notice> {
  await running.hook("orders", signedCall({ id: `order_${++sent}` }));
  await running.drain();
  return (await sink.waitFor("/notice", sent)).at(-1) as Notice;
}

/** Lists for each secret whether it verifies the notice: with the vendors' library, and with the package. */
async function verifiers(notice: Notice, ...secrets: string[]): Promise<boolean[][]> {
  setSystemTime(running.clock.now());
  try {
    const found: boolean[][] = [];
    for (const secret of secrets) {
      const { body, headers } = notice;
      const own = await verify({ body, headers, secret }).then(Boolean, () => false);
      let standard = true;
      try {
        new Webhook(secret).verify(body, headers);
      } catch {
        standard = false;
      }
      found.push([standard, own]);
    }
    return found;
  } finally {
    setSystemTime();
  }
}

const BOTH = [true, true];
const NONE = [false, false];

describe("an overlap of signing secrets", () => {
  test("signs with both secrets until its end, the new one first", async () => {
    expect(await verifiers(await send(), first)).toEqual([BOTH]);
    const { signingSecret: second, previousUntil } = await rotate(DAY_SECONDS);
    expect(previousUntil).toBe(new Date(running.clock.now() + DAY_SECONDS * 1_000).toISOString());
    expect((await show()).signingSecret.previousUntil).toBe(previousUntil);
    const notice = await send();
    expect(await verifiers(notice, first, second, OLD_FORM)).toEqual([BOTH, BOTH, NONE]);
    const body = notice.body.toString("utf8");
    expect(notice.headers["x-service-signature"]).toBe(signNotice([second, first], body, running.clock.now()));
    expect(notice.headers["webhook-signature"]).toMatch(/^v1,\S{44} v1,\S{44}$/);
    await running.clock.leap(DAY_SECONDS * 1_000);
    expect(await verifiers(await send(), first, second)).toEqual([NONE, BOTH]);
    expect((await show()).signingSecret.previousUntil).toBeUndefined();
    await running.clock.leap(2 * 3_600_000);
    expect(await running.rows("SELECT name FROM relay WHERE previous_signing_secret IS NOT NULL")).toEqual([]);
  });

  test("holds over a restart, and is in no stored request and no preview", async () => {
    const { signingSecret: second } = await rotate(DAY_SECONDS);
    await running.restart();
    expect(await verifiers(await send(), first, second)).toEqual([BOTH, BOTH]);
    const { items } = (await local("GET", "/events?limit=1")).body;
    const event = (await local("GET", `/events/${items[0].id}`)).body;
    expect(JSON.stringify(event)).toContain("v1=(not kept)");
    expect(JSON.stringify(event)).not.toMatch(/v1[=,][0-9a-zA-Z+/]{40}/);
    const { explanation } = (await local("POST", "/relays/orders/explain", { body: '{"id":"order_9"}' })).body;
    const signatures = [...JSON.stringify(explanation).matchAll(/t=\d+((?:,v1=[0-9a-f]{64})+)/g)];
    // The preview has one signature, of an example secret.
    expect(signatures.map(([, signature]) => signature?.split(",v1=").length)).toEqual([2]);
  });

  test("is ended by hand and audited, and a second end is refused", async () => {
    const { signingSecret: second } = await rotate(DAY_SECONDS);
    expect((await end()).status).toBe(204);
    expect(await verifiers(await send(), first, second)).toEqual([NONE, BOTH]);
    const [row] = (await local("GET", "/audit?action=relay.signing_secret_changed&limit=1")).body.items;
    expect([row.before.signingSecret.previousUntil, row.after.signingSecret.previousUntil]).toEqual([expect.any(String), undefined]);
    const again = await end();
    expect([again.status, again.body.message]).toEqual([404, expect.stringContaining("so there is no overlap to end")]);
  });

  const rows: { rule: string; rotations: (number | undefined)[]; valid: boolean[] }[] = [
    { rule: "a rotation without an overlap signs with the new secret only", rotations: [undefined], valid: [false, true] },
    { rule: "an overlap of 0 seconds is none", rotations: [0], valid: [false, true] },
    { rule: "a second rotation drops the oldest secret", rotations: [DAY_SECONDS, DAY_SECONDS], valid: [false, true, true] },
    { rule: "a rotation without an overlap ends an earlier one", rotations: [DAY_SECONDS, undefined], valid: [false, false, true] },
  ];
  test.each(rows)("$rule", async ({ rotations, valid }) => {
    const secrets = [first];
    for (const overlap of rotations) secrets.push((await rotate(overlap)).signingSecret);
    expect((await verifiers(await send(), ...secrets)).map(([, own]) => own)).toEqual(valid);
  });

  test("with a secret of the earlier form has one Standard Webhooks signature, and two in X-Service-Signature", async () => {
    await running.service.store.write("app", async (tx) => {
      const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'local' AND app_id = 'app_test'");
      const row = await findRelay(tx, environment?.id ?? 0, "orders");
      if (row === null) throw new Error("There is no relay.");
      await RELAY.update(tx, { ...row, signingSecret: running.service.sealer.seal(OLD_FORM, signingSecretContext(row.id)) });
      tx.notify("relay");
    });
    const { signingSecret: second } = await rotate(DAY_SECONDS);
    expect(await verifiers(await send(), OLD_FORM, second)).toEqual([[false, true], BOTH]);
  });

  test("longer than seven days is refused", async () => {
    const refused = await local("PUT", "/relays/orders/signing-secret", { overlapSeconds: 604_801 });
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining("overlapSeconds")]);
  });

  test("is set, shown and ended by commands", async () => {
    await using server = await startRunningService();
    const actions = [{ type: "call_url", url: "https://example.com/notice" }];
    await saveRelay(server, receiverDefinition({ map: { event_id: "id" }, actions }));
    const { dataDir, clock, commandEnv: env } = server;
    const run = (...line: string[]) => runCommand(["relays", ...line, "--data-dir", dataDir], { cwd: dataDir, clock, env });
    const rotated = await run("rotate-secret", "orders", "--signing", "--overlap", String(DAY_SECONDS));
    expect([rotated.code, rotated.told]).toEqual([
      0,
      expect.stringContaining("Calls also carry a signature of the previous secret until 2026-01-16T12:00:00.000Z"),
    ]);
    expect((await run("show", "orders")).said).toContain("the previous one also signs until");
    const ended = await run("end-overlap", "orders", "--signing");
    expect([ended.code, ended.told]).toEqual([0, expect.stringContaining("Only the current signing secret of orders signs its calls now.")]);
    expect((await run("show", "orders")).said).not.toContain("also signs until");
  });
});
