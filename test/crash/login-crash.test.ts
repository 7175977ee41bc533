/**
 * Kills the server during `relay login`: while the command waits, as the login is approved, and as the command fetches its key. The command waits
 * until the server runs again. Then it has a key that works, or its key is revoked. `RELAY_CRASH_KILLS` makes the loop longer.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, findFreePort, startCli } from "../kit/cli-process.ts";
import { rounds } from "../kit/rounds.ts";

const KILLS = Number(process.env.RELAY_CRASH_KILLS ?? rounds({ slice: 1, soak: 3, long: 6 }));
const OWNER = { email: "ann@example.com", password: "correct horse battery" };

let home: string;
let port: number;
let base: string;
let server: CliProcess;
let cookie: string;

async function serve(): Promise<void> {
  server = startCli(["serve", "--port", String(port)], { cwd: home });
  await server.line("Listening");
}

async function owner(method: string, path: string, body?: unknown) {
  const headers = { cookie, origin: base, "content-type": "application/json" };
  const response = await fetch(base + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
  return { status: response.status, cookies: response.headers.getSetCookie(), body: (await response.json()) as any };
}

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-login-"));
  port = await findFreePort();
  base = `http://127.0.0.1:${port}`;
  await serve();
  await runCommand(["admin", "create", "--email", OWNER.email, "--password-stdin"], { cwd: home, input: OWNER.password });
  await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd: home });
  cookie = "";
  const signedIn = await owner("POST", "/api/session", OWNER);
  cookie = signedIn.cookies.map((one) => one.split(";")[0]).join("; ");
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const approve = (code: string) => owner("POST", "/api/login/approve", { code, app: "shop", environment: "development" });
const live = async (): Promise<string[]> => {
  const { items } = (await owner("GET", "/api/apps/shop/development/keys")).body;
  return items.filter((one: { revokedAt: string | null }) => one.revokedAt === null).map(({ hint }: { hint: string }) => hint.slice(-4));
};

/** Signs in, and kills the server this many milliseconds after the approval. A negative number kills it before the approval. */
async function signIn(killAfterMs: number): Promise<{ code: number; told: string; key: string | null }> {
  const cwd = mkdtempSync(join(home, "laptop-"));
  await using login = startCli(["login", "--url", base], { cwd });
  const code = await login.line("-").then(() => /[A-Z]{4}-[A-Z]{4}/.exec(login.lines().join("\n"))?.[0]);
  const userCode = code ?? /[A-Z]{4}-[A-Z]{4}/.exec(await login.line("    "))?.[0] ?? "";
  if (killAfterMs >= 0) {
    expect((await approve(userCode)).status).toBe(200);
    await Bun.sleep(killAfterMs);
  }
  await server[Symbol.asyncDispose]();
  await Bun.sleep(500);
  await serve();
  if (killAfterMs < 0) expect((await approve(userCode)).status).toBe(200);
  const file = join(cwd, ".config", "relay", "profiles.json");
  const ended = await login.exited;
  const key = existsSync(file) ? (/"key": "(\w+)"/.exec(readFileSync(file, "utf8"))?.[1] ?? null) : null;
  return { code: ended, told: login.lines().join("\n"), key };
}

test("login waits and gets its key when the server is killed before the approval", async () => {
  const { code, key } = await signIn(-1);
  expect(code).toBe(0);
  expect(await live()).toEqual([key?.slice(-4) ?? "none"]);
});

test(`login gets a key that works, or one that is revoked, over ${KILLS} kills near the fetch`, async () => {
  const kept: string[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    // The command asks five seconds after it began.
    const { code, told, key } = await signIn(3_000 + Math.random() * 2_500);
    if (code === 0) kept.push(key?.slice(-4) ?? "none");
    else expect(told).toContain("Relay revoked the key");
  }
  expect((await live()).sort()).toEqual(kept.sort());
});
