/**
 * Kills a server at every step of applying a plan, and the command line at every step of asking for it. The plan is applied once, completely or not
 * at all, and the service reports what a command never heard of.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { requireExecutable } from "../kit/executable-build.ts";

const EMAIL = "ann@example.com";
const PASSWORD = "correct horse battery";
const STEPPED = [requireExecutable("stepped")];
const relay = (name: string, actions: object[]) => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id", person_id: "who" } },
  actions,
});
const FILES = {
  relays: [
    relay("orders", [
      { type: "write_record", collection: "notes", data: { text: "x" } },
      { type: "call_url", url: "https://example.com/x" },
    ]),
    relay("sells", [{ type: "fulfil_product", product: "book" }]),
  ],
  catalog: {
    collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } },
    products: { book: { credits: 5, soldThrough: { kind: "relay", relay: "sells" } } },
  },
};
const CHANGES = 4;

// biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
type Any = any;
let home: string;
let armed: string;
let server: CliProcess;
let port = "0";
let key = "";
let cookie = "";

async function serve(step = 0): Promise<void> {
  rmSync(armed, { force: true });
  const env = { STEP_FILE: armed, STEP_AT: String(step) };
  server = startCli(["serve", "--port", port], { cwd: home, env, command: STEPPED });
  port = /127\.0\.0\.1:(\d+)/.exec(await server.line("127.0.0.1:"))?.[1] ?? "";
}
const base = () => `http://127.0.0.1:${port}`;
async function call(method: string, path: string, body?: unknown, as: object = { authorization: `Bearer ${key}` }): Promise<Any> {
  const headers = { origin: base(), "content-type": "application/json", ...as };
  const response = await fetch(base() + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return response.status === 204 ? null : await response.json();
}
const owner = (method: string, path: string, body?: unknown) => call(method, path, body, { cookie });
async function approve({ id, plan }: { id: string; plan: string }): Promise<void> {
  expect((await owner("POST", `/api/approvals/${id}`, { decision: "approve", plan })).approval.state).toBe("approved");
}

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-stepped-"));
  armed = join(home, "armed");
  port = "0";
  await serve();
  await runCommand(["admin", "create", "--email", EMAIL, "--password-stdin"], { cwd: home, input: PASSWORD });
  await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd: home });
  const made = await runCommand(["keys", "create", "--app", "shop", "--environment", "development"], { cwd: home });
  key = /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
  const headers = { "content-type": "application/json", origin: base() };
  const body = JSON.stringify({ email: EMAIL, password: PASSWORD });
  const signedIn = await fetch(`${base()}/api/session`, { method: "POST", headers, body });
  cookie = signedIn.headers
    .getSetCookie()
    .map((one) => one.split(";")[0])
    .join("; ");
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const DEV = "/api/apps/shop/development";
/** Counts the items of the plan that exist. */
async function standing(environment: string): Promise<number> {
  const E = `/api/apps/shop/${environment}`;
  const lists = await Promise.all(["relays", "collections", "products"].map((kind) => owner("GET", `${E}/${kind}`)));
  return lists.reduce((sum, { items }) => sum + items.length, 0);
}

for (const environment of ["development", "production"] as const) {
  test(`an apply to ${environment} has all of the plan or nothing if the server is killed at any step, and a repeat completes it`, async () => {
    const isLive = environment === "production";
    const wanted = { ...FILES, ...(isLive ? { to: "production" } : {}) };
    const { plan } = await call("POST", `${DEV}/sync/plan`, wanted);
    const { approval } = isLive ? await call("POST", `${DEV}/approvals`, { ...wanted, plan }) : { approval: null };
    if (isLive) await approve(approval);
    const apply = (keyed: object = { key: "one" }) =>
      isLive ? call("POST", `/api/approvals/${approval.id}/apply`, keyed) : call("POST", `${DEV}/sync/apply`, { ...wanted, plan, ...keyed });
    const stateNow = async () => (isLive ? (await owner("GET", `/api/approvals/${approval.id}`)).approval.state : null);
    const found: number[] = [];
    for (let step = 1; found.at(-1) !== CHANGES; step++) {
      server.kill("SIGKILL");
      await server.exited;
      await serve(step);
      // Checks the result of the step before.
      if (step > 1) {
        found.push(await standing(environment));
        expect([0, CHANGES]).toContain(found.at(-1) ?? -1);
        if (isLive) expect(await stateNow()).toBe(found.at(-1) === 0 ? "approved" : "done");
      }
      if (found.at(-1) === CHANGES) break;
      writeFileSync(armed, "");
      expect(await Promise.race([apply().catch(() => null), server.exited.then(() => null)])).toBeNull();
    }
    rmSync(armed, { force: true });
    const left = await call("POST", `${DEV}/sync/plan`, wanted);
    expect(left.changes).toBe(0);
    // The steps are every write of four items, and at the end a commit whose response was lost.
    expect(found.length).toBeGreaterThan(20);
    // The killed server had committed the last one, so its key gives the response that was lost.
    const lost = await apply();
    expect([lost.repeated, lost.changes, lost.secrets.map(({ relay }: { relay: string }) => relay)]).toEqual([true, CHANGES, ["orders", "sells"]]);
    const again = await apply({});
    expect(again.code).toBe(isLive ? "approval_used" : "version_conflict");
    expect(await standing(environment)).toBe(CHANGES);
    if (isLive) expect((await call("GET", `/api/approvals/${approval.id}`)).approval.secretsOf).toEqual(["orders", "sells"]);
  });
}

test("a live sync applies all or nothing if the command is killed at any step, and the page shows what it never heard of", async () => {
  const laptop = join(home, "laptop");
  mkdirSync(join(laptop, "service", "relays"), { recursive: true });
  for (const one of FILES.relays) writeFileSync(join(laptop, "service", "relays", `${one.name}.json`), JSON.stringify(one));
  writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify(FILES.catalog));
  const laptopArmed = join(laptop, "armed");
  writeFileSync(laptopArmed, "");
  const secrets = join(laptop, "service", ".secrets.json");
  let carried = 0;
  for (let step = 1; carried === 0; step++) {
    const env = { RELAY_KEY: key, RELAY_URL: base(), STEP_FILE: laptopArmed, STEP_AT: String(step) };
    await using run = startCli(["sync", "--live", "--json"], { cwd: laptop, env, command: STEPPED });
    const asked = await run.line('"applied":false').catch(() => null);
    if (asked !== null) await approve(JSON.parse(asked).approval);
    expect(await run.exited).toBe(137);
    expect(existsSync(secrets)).toBe(false);
    carried = await standing("production");
    expect([0, CHANGES]).toContain(carried);
    const open = (await owner("GET", "/api/apps/shop/production/approvals")).approvals;
    expect(open.length).toBeLessThan(2);
    if (carried === 0 || asked === null) continue;
    const { approval } = await owner("GET", `/api/approvals/${JSON.parse(asked).approval.id}`);
    expect([approval.state, approval.shown.secretsOf]).toEqual(["done", ["orders", "sells"]]);
  }
  const env = { RELAY_KEY: key, RELAY_URL: base() };
  const again = await runCommand(["sync", "--live"], { cwd: laptop, env });
  expect([again.code, again.told.split("\n").at(-1)]).toEqual([0, "Nothing to do."]);
  expect(readFileSync(join(laptop, "service", "catalog.json"), "utf8")).toBe(JSON.stringify(FILES.catalog));
});
