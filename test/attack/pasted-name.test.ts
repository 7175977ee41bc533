/**
 * A secret that was pasted as a receiver's name, or as another part of a path. The service stores and shows only its length and a fingerprint. A name
 * that may be a relay's is shown unchanged.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { mayBeRelayName } from "../../src/engine/receiver/unknown-name.ts";
import { loggedPath } from "../../src/interfaces/http/logged-path.ts";
import { ON_POSTGRES, TABLES } from "../kit/chosen-store.ts";
import { runCommand } from "../kit/cli-io.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const BARE = { headers: { "content-type": "application/json" }, body: "{}" };

const SECRETS: readonly [what: string, name: string][] = [
  ["a signing secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
  ["the same without its prefix", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
  ["a key of a provider", "sk_live_51H8xAbCdEfGhIjKlMnOpQrSt"],
  ["a key of a provider in small letters", "sk-live-51h8xabcdefghijklmnopqrst"],
  ["a key of this service", "relay_live_4mQx8ZtYv2LkPw9RbNs7HdCf"],
  ["hex", "d9f86d081884c7d659a2feaa0c55ad015"],
  ["a UUID", "c0ffee00-1234-4abc-8def-0123456789ab"],
  ["base64", "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA=="],
  ["a name of 64 characters", `a${"bc".repeat(31)}d`],
  ["a token in small letters and digits", "q7rw2lmzx9kt4vbn8shc3d"],
  ["a sentence with an address", "ann@example.com is here"],
];

const RELAY_NAMES = [
  "orders",
  "order-paid",
  "checkout-completed-2024",
  "stripe-checkout-session-completed-v2",
  "import-2024-01-31",
  "key-rotation",
  "re-order-2",
  "github-push-us-east-1",
  "checkoutsessioncompleted",
];

let running: RunningService;

beforeAll(async () => {
  running = await startRunningService();
  await saveRelay(running, receiverDefinition({}));
});
afterAll(() => running[Symbol.asyncDispose]());

/** Returns every row of the database, and on SQLite every byte of its files. */
async function stored(): Promise<string> {
  const rows: unknown[] = [];
  for (const { name: table } of await running.rows<{ name: string }>(TABLES)) rows.push(await running.rows(`SELECT * FROM ${table}`));
  const files = ON_POSTGRES ? [] : readdirSync(running.dataDir).map((name) => join(running.dataDir, name));
  const bytes = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, "latin1"));
  return JSON.stringify(rows, (_, value) => (typeof value === "bigint" ? String(value) : value)) + bytes.join("");
}

describe("a request to a name that may be a secret stores and shows only its length and fingerprint", () => {
  test.each(SECRETS)("for %s", async (_what, secret) => {
    const path = encodeURIComponent(secret);
    for (const url of [`/hooks/${APP}/${path}`, `/hooks/${path}/orders`, `/hooks/${APP}/orders/${path}`, `/${path}`])
      await fetch(running.service.url + url, { method: "POST", ...BARE });
    await fetch(`${running.service.url}/hooks/${APP}/${path}`);
    const { body } = await running.api("GET", "/unknown-calls?limit=200");
    const shown = new RegExp(`^${secret.length} characters, hmac:[0-9a-f]{16}$`);
    const items = body.items.filter(({ name }: { name: string }) => shown.test(name));
    expect(items.length).toBeGreaterThan(0);
    expect(items[0]).toMatchObject({ hidden: true, cause: expect.stringContaining("which may be a secret") });

    await running.clock.advance(120_000);
    const listed = await runCommand(["calls", "list", "--data-dir", running.dataDir], {
      cwd: running.dataDir,
      env: running.commandEnv,
      clock: running.clock,
    });
    expect(listed.code).toBe(0);
    for (const text of [JSON.stringify(body), listed.said, running.logged.join("\n"), running.lines.join("\n"), await stored()])
      for (const part of [secret, path]) expect(text.includes(part)).toBe(false);
    expect(running.logged.join("\n")).toContain("a request named no receiver");
  });

  test("with the fingerprint that the same secret has at a relay", async () => {
    const secret = "Vt4XzR8qLmN2wKc7BsYp9HdJ";
    await saveRelay(running, receiverDefinition({ name: "pasted" }), secret);
    await running.hook(secret, BARE);
    const { fingerprint } = (await running.api("GET", "/relays/pasted")).body.relay.secret;
    const { body } = await running.api("GET", "/unknown-calls?limit=200");
    expect(body.items.map(({ name }: { name: string }) => name)).toContain(`${secret.length} characters, ${fingerprint}`);
  });

  test("and still names a relay with nearly this name", async () => {
    await running.hook("Orders", BARE);
    const { body } = await running.api("GET", "/unknown-calls?limit=200");
    expect(body.items).toContainEqual(
      expect.objectContaining({ hidden: true, nearest: "orders", cause: expect.stringMatching(/did the sender mean orders\?$/) }),
    );
  });
});

test.each(RELAY_NAMES)("the name %s is shown unchanged", (name) => {
  expect(mayBeRelayName(name)).toBe(true);
});

test.each(SECRETS)("the log contains no path with %s", (_what, secret) => {
  for (const path of [`/hooks/shop/${secret}`, `/client/collections/${secret}/records`, `/mail/stop/${secret}`])
    expect(loggedPath(path)).toBe(path.replace(secret, `<${secret.length} characters>`));
});

test.each([
  "/api/apps/app_test/development/relays/orders/pause",
  `/api/apps/shop/production/events/evt_${"0f".repeat(16)}/replay`,
  "/openapi.json",
  "/",
])("the log contains the path %s unchanged", (path) => {
  expect(loggedPath(path)).toBe(path);
});
