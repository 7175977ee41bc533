/** `relay login`, `relay whoami` and `relay logout` against a scripted server: how each response changes the output and the profiles. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { type CommandResult, runCommand } from "../kit/cli-io.ts";

/** The waits that the command asked for, in milliseconds. */
const waits: number[] = [];
/** Runs waits ten times as fast. */
const clock: Clock = {
  now: systemClock.now,
  monotonicMs: () => systemClock.monotonicMs() * 10,
  after: (delayMs, work) => {
    waits.push(delayMs);
    return systemClock.after(delayMs / 10, work);
  },
};
const home = mkdtempSync(join(tmpdir(), "relay-cli-login-"));
const file = join(home, "relay", "profiles.json");

type Reply = [status: number, body: unknown];
/** The responses of `/api/login/token` in order. The last one repeats. */
let tokens: Reply[] = [];
let key: Reply = [200, {}];
let away = false;
const asked: string[] = [];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const bearer = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
    asked.push(`${request.method} ${pathname} ${bearer || (await request.text())}`.trim());
    const answer = ([status, body]: Reply): Response => (status === 204 ? new Response(null, { status }) : Response.json(body, { status }));
    if (away) return new Response("<h1>Bad gateway</h1>", { status: 502 });
    if (pathname === "/api/login") {
      const expiresAt = new Date(Date.now() + 600_000).toISOString();
      return Response.json({
        deviceCode: "device",
        userCode: "BCDF-GHJK",
        verificationUri: "https://relay.example.com/login",
        expiresAt,
        interval: 1,
      });
    }
    if (pathname === "/api/login/token") return answer((tokens.length > 1 ? tokens.shift() : tokens[0]) ?? [500, {}]);
    return answer(request.method === "DELETE" && key[0] === 200 ? [204, null] : key);
  },
});
const url = `http://127.0.0.1:${server.port}`;
const other = `http://localhost:${server.port}`;

afterAll(async () => {
  await server.stop(true);
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  rmSync(join(home, "relay"), { recursive: true, force: true });
  tokens = [fetched("sk_dev_one")];
  key = [
    200,
    { app: "shop", environment: "development", owner: "ann@example.com", expiresAt: "2030-04-01T00:00:00.000Z", key: { id: "key_1", name: "x" } },
  ];
  away = false;
  asked.length = 0;
});

const fetched = (token: string, environment = "development"): Reply => [
  200,
  { token, app: "shop", environment, owner: "ann@example.com", expiresAt: "2030-04-01T00:00:00.000Z", key: { id: "key_1", name: "x" } },
];
const refused = (code: string, message = "No."): Reply => [400, { code, message }];
const relay = (...line: string[]): Promise<CommandResult> => runCommand(line, { cwd: home, clock, env: { XDG_CONFIG_HOME: home } });
const held = (): { default: string | null; profiles: Record<string, { key: string; url: string }> } => JSON.parse(readFileSync(file, "utf8"));

describe("relay login", () => {
  test("shows the address and the code, stores the key in a profile that only the user can read, and prints no key", async () => {
    const { code, said, told } = await relay("login", "--url", url, "--days", "7");
    expect({ code, said }).toEqual({ code: 0, said: "" });
    for (const words of [
      "https://relay.example.com/login",
      "BCDF-GHJK",
      "test-laptop",
      "ann@example.com is signed in to shop/development",
      "--profile shop-development",
    ])
      expect(told).toContain(words);
    expect(told).not.toContain("sk_dev_one");
    expect(held()).toMatchObject({ default: "shop-development", profiles: { "shop-development": { url, key: "sk_dev_one" } } });
    expect(asked[0]).toBe('POST /api/login {"machine":"test-laptop","account":"ann","days":7}');
  });

  test("prints the stored profile as JSON, without the key", async () => {
    const { said } = await relay("login", "--url", url, "--json", "--profile", "mine");
    expect(JSON.parse(said)).toEqual({
      name: "mine",
      url,
      app: "shop",
      environment: "development",
      owner: "ann@example.com",
      endsAt: "2030-04-01T00:00:00.000Z",
      default: true,
    });
  });

  test.each([
    ["denied", "access_denied"],
    ["ended", "expired_token"],
    ["fetched before", "login_used"],
  ])("that is %s ends with the server's sentence, and stores nothing", async (_what, code) => {
    tokens = [refused("authorization_pending"), refused(code, "The sentence of the server.")];
    const result = await relay("login", "--url", url);
    expect(result.code).toBe(1);
    expect(result.told).toContain(`The sentence of the server.\n${code}  `);
    expect(existsSync(file)).toBe(false);
  });

  test("polls more slowly when the server asks for it", async () => {
    tokens = [refused("slow_down"), fetched("sk_dev_two")];
    waits.length = 0;
    expect((await relay("login", "--url", url)).code).toBe(0);
    expect(waits.filter((ms) => ms === 1_000 || ms === 6_000)).toEqual([1_000, 6_000]);
  });

  test("waits for a server that is briefly unavailable, and says so once", async () => {
    tokens = [[502, "x"], [502, "x"], fetched("sk_dev_three")];
    const { code, told } = await relay("login", "--url", url);
    expect([code, told.split("The command asks again").length]).toEqual([0, 2]);
  });

  test("of an existing profile uses its server, and revokes its previous key", async () => {
    await relay("login", "--url", url, "--profile", "mine");
    tokens = [fetched("sk_dev_four")];
    expect((await relay("login", "--profile", "mine")).code).toBe(0);
    expect(held().profiles.mine?.key).toBe("sk_dev_four");
    expect(asked.at(-1)).toBe("DELETE /api/key sk_dev_one");
    // The command finds the profile by its app and server if no name is given.
    tokens = [fetched("sk_dev_five")];
    await relay("login", "--url", url);
    expect(Object.keys(held().profiles)).toEqual(["mine"]);
  });

  test("to the same app on another server adds a profile, and keeps the default unless asked", async () => {
    await relay("login", "--url", url);
    tokens = [fetched("sk_dev_six")];
    await relay("login", "--url", other);
    expect(Object.keys(held().profiles)).toEqual(["shop-development", `shop-development-localhost-${server.port}`]);
    expect(held().default).toBe("shop-development");
    tokens = [fetched("sk_live_one", "production")];
    const { told } = await relay("login", "--url", url, "--default");
    expect(told).toContain("This is PRODUCTION: commands that change something need --profile shop-production");
    expect(held().default).toBe("shop-production");
  });

  test.each([
    ["no server", [], 2, "relay login --url https://relay.example.com"],
    ["a profile that does not exist and no server", ["--profile", "new"], 2, "relay login --profile new --url"],
    ["an invalid name", ["--url", url, "--profile", "../x"], 2, "write 1 to 63 letters"],
    ["days beyond a year", ["--url", url, "--days", "1000"], 2, "from 1 to 365"],
    ["a server that its proxy does not reach", ["--url", url], 1, "answered 502 Bad Gateway: it does not reach the relay server"],
  ])("with %s is refused before it starts", async (what, line, code, words) => {
    away = what.startsWith("a server that");
    const result = await relay("login", ...line);
    expect({ code: result.code, told: result.told }).toEqual({ code, told: expect.stringContaining(words) });
    expect(existsSync(file)).toBe(false);
  });

  test("is refused before it starts if no profile can be stored", async () => {
    const { code, told } = await runCommand(["login", "--url", url], { cwd: home, env: {} });
    expect([code, told.includes("set HOME or XDG_CONFIG_HOME"), asked]).toEqual([1, true, []]);
  });
});

describe("relay whoami", () => {
  test("shows for each profile the key's owner, place and expiry, and which profile commands use", async () => {
    await relay("login", "--url", url);
    const { code, said, told } = await relay("whoami");
    expect(code).toBe(0);
    for (const words of ["shop-development (default)", url, "shop ", "development", "sk_dev_…_one", "ann@example.com", "2030-04-01", "works"])
      expect(said).toContain(words);
    expect(told).toBe(`In this folder, commands act on shop/development at ${url} (profile shop-development), from the default profile.`);
  });

  test.each([
    [
      "ended",
      [401, { code: "unauthenticated", message: "The key of this login expired at X: run relay login to get a new one." }] as Reply,
      "expired at X",
    ],
    ["unknown", [401, { code: "unauthenticated", message: "The request carries no live key." }] as Reply, "relay login --profile shop-development"],
    ["away", [502, "x"] as Reply, "answered 502 Bad Gateway: it does not reach the relay server"],
    ["answered by another program", [200, {}] as Reply, "is not a relay server"],
  ])("reports a key that is %s, and exits with 1", async (_what, answer, words) => {
    await relay("login", "--url", url);
    key = answer;
    const { code, said } = await relay("whoami");
    expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(words) });
    expect((await relay("whoami", "--profile", "shop-development", "--json")).said).toContain('"works": false');
  });
});

test("relay whoami reports variables that name another program", async () => {
  key = [200, { hello: "world" }];
  const { code, said } = await runCommand(["whoami"], { cwd: home, clock, env: { XDG_CONFIG_HOME: home, RELAY_URL: url, RELAY_KEY: "sk_dev_one" } });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining("is not a relay server") });
});

test("a key of RELAY_KEY that the server rejects is reported with its origin and how to replace it", async () => {
  key = [401, { code: "unauthenticated", message: "The request carries no live key." }];
  const { code, told } = await runCommand(["relays", "list", "--url", url], {
    cwd: home,
    clock,
    env: { XDG_CONFIG_HOME: home, RELAY_KEY: "sk_dev_gone" },
  });
  const words = `The key in RELAY_KEY or on standard input is unknown to ${url} or has expired: use another key, or run relay login --url ${url}.`;
  expect([code, told]).toEqual([1, expect.stringContaining(words)]);
});

describe("relay logout", () => {
  test("revokes the key and deletes the profile", async () => {
    await relay("login", "--url", url);
    const { code, told } = await relay("logout");
    expect([code, told.includes("its key is revoked"), asked.at(-1)]).toEqual([0, true, "DELETE /api/key sk_dev_one"]);
    expect(held()).toEqual({ default: null, profiles: {} });
  });

  test("of an unreachable server deletes the profile, and says that the key stays valid", async () => {
    await relay("login", "--url", url);
    away = true;
    const { code, told } = await relay("logout");
    expect([code, told.includes("could not be revoked"), told.includes("Revoke sk_dev_…_one in Settings, under Keys, of shop/development")]).toEqual([
      1,
      true,
      true,
    ]);
    expect(held().profiles).toEqual({});
  });

  test("of an address that must not get a key deletes the profile, and says that the key stays valid", async () => {
    await relay("login", "--url", url);
    writeFileSync(file, readFileSync(file, "utf8").replace(url, "http://relay.example.com"));
    const { code, told } = await relay("logout", "--all");
    expect([code, told]).toEqual([1, expect.stringContaining("The address of the profile shop-development is an http address")]);
    expect(held().profiles).toEqual({});
  });

  test("of a key that is already invalid succeeds", async () => {
    await relay("login", "--url", url);
    key = [401, { code: "unauthenticated", message: "Ended." }];
    expect((await relay("logout")).code).toBe(0);
    expect(held().profiles).toEqual({});
  });

  test("of the default profile does not make production the default", async () => {
    await relay("login", "--url", url);
    tokens = [fetched("sk_live_two", "production")];
    await relay("login", "--url", url);
    expect((await relay("logout")).told).toContain("There is no default profile now: name one with --profile (shop-production).");
    expect(held()).toMatchObject({ default: null, profiles: { "shop-production": {} } });
  });

  test("of several profiles without a default asks which one, and --all deletes every profile", async () => {
    await relay("login", "--url", url);
    tokens = [fetched("sk_dev_two")];
    await relay("login", "--url", other);
    tokens = [fetched("sk_live_three", "production")];
    await relay("login", "--url", url);
    await relay("logout");
    const asking = await relay("logout");
    expect({ code: asking.code, told: asking.told }).toEqual({ code: 2, told: expect.stringContaining("There is no default profile") });
    expect((await relay("logout", "--all")).code).toBe(0);
    expect(held().profiles).toEqual({});
    expect((await relay("logout")).code).toBe(1);
  });
});
