/**
 * Profiles, and the server or data directory that a command uses. Explicit settings take precedence, and a command never changes production by
 * default.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SYSTEMS } from "../../src/base/system.ts";
import { type Profile, profilePath, readProfiles, removeProfile, saveProfile } from "../../src/interfaces/cli/api/profile.ts";
import type { Io } from "../../src/interfaces/cli/io.ts";
import { runCommand } from "../kit/cli-io.ts";

const root = mkdtempSync(join(tmpdir(), "relay-profile-"));
const bare = join(root, "bare");
const owned = join(root, "owned");
const home = join(root, "home");
const told: string[] = [];
const io = (env: Record<string, string | undefined> = { HOME: home }): Io =>
  ({ env, system: SYSTEMS.linux, cwd: bare, inform: (text: string) => void told.push(text) }) as unknown as Io;
const place = () => profilePath(io()) ?? "";

/** A server that records each request and refuses it. */
const asked: string[] = [];
let server: ReturnType<typeof Bun.serve>;
beforeAll(async () => {
  for (const folder of [bare, owned, home]) mkdirSync(folder);
  await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd: owned });
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      asked.push(`${request.headers.get("authorization")?.slice("Bearer ".length)} ${pathname}`);
      if (pathname === "/api/key") return Response.json({ app: "shop", environment: "development", key: { id: "key_1", name: "ci" } });
      return Response.json({ items: [], next: null });
    },
  });
});
afterAll(async () => {
  await server.stop(true);
  rmSync(root, { recursive: true, force: true });
});
beforeEach(() => {
  rmSync(join(home, ".config"), { recursive: true, force: true });
  told.length = 0;
  asked.length = 0;
});

const profile = (name: string, environment = "development"): Profile => ({
  name,
  url: `http://127.0.0.1:${server.port}`,
  app: "shop",
  environment,
  key: `sk_of_${name}`,
  owner: "ann@example.com",
  endsAt: "2030-03-01T00:00:00.000Z",
});

test.each([
  ["linux", { HOME: "/home/ann" }, "/home/ann/.config/relay/profiles.json"],
  ["linux", { HOME: "/home/ann", XDG_CONFIG_HOME: "/cfg" }, "/cfg/relay/profiles.json"],
  ["macos", { HOME: "/Users/ann" }, "/Users/ann/Library/Application Support/relay/profiles.json"],
  ["windows", { APPDATA: "/Roaming", USERPROFILE: "/Users/ann" }, "/Roaming/relay/profiles.json"],
  ["linux", {}, null],
] as const)("on %s with %p the profiles are at %s", (system, env, path) => {
  expect(profilePath({ ...io(env), system: SYSTEMS[system] })).toBe(path);
});

describe("the file", () => {
  test("is readable only by its user, like its folder, and holds several profiles and one default", () => {
    saveProfile(io(), profile("one"));
    saveProfile(io(), profile("two"));
    expect([statSync(place()).mode & 0o777, statSync(dirname(place())).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readProfiles(io())).toEqual({ default: "one", profiles: [profile("one"), profile("two")] });
    saveProfile(io(), profile("two", "production"), true);
    expect(readProfiles(io())).toEqual({ default: "two", profiles: [profile("one"), profile("two", "production")] });
    removeProfile(io(), "two");
    expect(readProfiles(io())).toEqual({ default: null, profiles: [profile("one")] });
    removeProfile(io(), "one");
    expect(readProfiles(io())).toEqual({ default: null, profiles: [] });
    expect(told).toEqual([]);
  });

  test("that other users can open gets its mode fixed, with a line for each fix", () => {
    saveProfile(io(), profile("one"));
    chmodSync(place(), 0o644);
    chmodSync(dirname(place()), 0o755);
    expect(readProfiles(io()).profiles).toHaveLength(1);
    expect(told.map((line) => line.includes("Other users of this machine could open"))).toEqual([true, true]);
    expect([statSync(place()).mode & 0o777, statSync(dirname(place())).mode & 0o777]).toEqual([0o600, 0o700]);
    readProfiles(io());
    expect(told).toHaveLength(2);
  });

  test.each([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["a profile without a key", '{"default":null,"profiles":{"one":{"url":"x"}}}'],
    ["an invalid name", '{"default":null,"profiles":{"../x":{}}}'],
  ])("with %s is refused with a hint, and its content is not shown", (_what, text) => {
    mkdirSync(dirname(place()), { recursive: true, mode: 0o700 });
    writeFileSync(place(), text, { mode: 0o600 });
    expect(() => readProfiles(io())).toThrow(/cannot be used .*: remove it and run relay login/);
  });

  test("that is a link is refused, and the link's target is unchanged", () => {
    const other = join(root, "other.json");
    writeFileSync(other, "{}");
    mkdirSync(dirname(place()), { recursive: true, mode: 0o700 });
    symlinkSync(other, place());
    expect(() => readProfiles(io())).toThrow("not a regular file");
    expect(readFileSync(other, "utf8")).toBe("{}");
  });
});

const URLS = () => ({ RELAY_URL: `http://127.0.0.1:${server.port}`, RELAY_KEY: "sk_ci" });
/** The key with which a command reads, or null for a data directory. */
const READS: readonly [rule: string, line: string, where: "bare" | "owned", env: () => Record<string, string>, key: string | null, told: string][] = [
  ["the local data directory, whatever profiles exist", "", "owned", () => ({}), null, ""],
  [
    "the default profile without a local data directory, and says so",
    "",
    "bare",
    () => ({}),
    "sk_of_one",
    "Target: shop/development at http://127.0.0.1:",
  ],
  ["a named profile, even with a data directory", "--profile two", "owned", () => ({}), "sk_of_two", ""],
  ["RELAY_PROFILE", "", "owned", () => ({ RELAY_PROFILE: "two" }), "sk_of_two", "from RELAY_PROFILE"],
  ["RELAY_URL with RELAY_KEY rather than RELAY_PROFILE", "", "bare", () => ({ ...URLS(), RELAY_PROFILE: "two" }), "sk_ci", ""],
  ["RELAY_URL with RELAY_KEY even with a data directory, and says so", "", "owned", URLS, "sk_ci", "from RELAY_URL"],
  ["a flag rather than RELAY_URL", "--profile two", "bare", URLS, "sk_of_two", ""],
  ["--data-dir rather than any variable", "--data-dir .relay", "owned", () => ({ ...URLS(), RELAY_PROFILE: "two" }), null, ""],
  ["the local data directory if RELAY_URL comes without a key", "", "owned", () => ({ RELAY_URL: URLS().RELAY_URL }), null, ""],
];

describe("a command that reads uses", () => {
  beforeEach(() => {
    saveProfile(io(), profile("one"));
    saveProfile(io(), profile("two"));
  });

  test.each(READS)("%s", async (_rule, flags, where, env, key, words) => {
    const line = ["problems", "list", ...flags.split(" ").filter(Boolean)];
    const cwd = where === "bare" ? bare : owned;
    const { code, told } = await runCommand(line, { cwd, env: { HOME: home, ...env() } });
    expect({ code, told }).toEqual({ code: 0, told: expect.stringContaining(words) });
    expect(asked.at(-1) ?? null).toBe(key === null ? null : `${key} /api/apps/shop/development/problems`);
    expect(told.includes("Target: shop/")).toBe(words !== "");
  });

  test.each([
    ["two places at once", "--profile one --url https://a.example", {}, 2, "--profile and --url name two targets"],
    ["a profile that does not exist", "--profile tow", {}, 1, "did you mean two?"],
    ["another environment than the profile's", "--profile one --environment production", {}, 1, "but --environment is production"],
    ["an environment by its variable, too", "--profile one", { RELAY_ENVIRONMENT: "production" }, 1, "wrong_environment"],
    ["plain http to another machine", "--url http://relay.example.com", { RELAY_KEY: "sk_ci" }, 2, "--url is an http address"],
    [
      "plain http to another machine, by its variable",
      "",
      { RELAY_URL: "http://relay.example.com", RELAY_KEY: "sk_ci" },
      2,
      "RELAY_URL is an http address",
    ],
    ["an invalid URL, by its variable", "", { RELAY_URL: "ftp://x", RELAY_KEY: "sk_ci" }, 2, 'RELAY_URL is "ftp://x": write'],
    ["a server without a key", "--url https://relay.example.com", {}, 1, "relay login --url https://relay.example.com"],
    ["a URL with a path", "--url https://relay.example.com/x", { RELAY_KEY: "sk_ci" }, 2, "write the server's origin"],
  ])("no server, given %s", async (_rule, flags, env, code, words) => {
    const result = await runCommand(["problems", "list", ...flags.split(" ").filter(Boolean)], { cwd: bare, env: { HOME: home, ...env } });
    expect({ code: result.code, told: result.told }).toEqual({ code, told: expect.stringContaining(words) });
    expect(asked).toEqual([]);
  });

  test.each(["mcp", "sync --dry-run", "problems list"])("plain http to another machine is refused by relay %s", async (line) => {
    const env = { HOME: home, RELAY_URL: "http://relay.example.com", RELAY_KEY: "sk_ci" };
    const { code, told } = await runCommand(line.split(" "), { cwd: bare, env });
    expect({ code, told }).toEqual({ code: 2, told: expect.stringContaining("use https") });
  });

  test("a command asks no server for its place if there is none", async () => {
    const { code, told } = await runCommand(["problems", "list"], { cwd: bare, env: {} });
    expect([code, told.includes("There is no data directory")]).toEqual([1, true]);
    expect(existsSync(join(bare, ".relay"))).toBe(false);
  });
});

describe("a command that changes something in production", () => {
  test("is refused if only the default profile names it", async () => {
    saveProfile(io(), profile("live", "production"));
    const { code, told } = await runCommand(["mcp"], { cwd: bare, env: { HOME: home } });
    expect({ code, told }).toEqual({ code: 2, told: expect.stringContaining("To change production, write --profile live") });
    expect(asked).toEqual([]);
  });

  test("prints where it acts", async () => {
    saveProfile(io(), profile("live", "production"));
    const { code, told } = await runCommand(["mcp", "--profile", "live"], { cwd: bare, env: { HOME: home } });
    expect([code, told]).toEqual([0, `This command changes PRODUCTION: shop/production at http://127.0.0.1:${server.port} (profile live).`]);
  });

  test.each(["people merge per_1 per_2", "people change-address per_1 ada@example.com", "receipts move pay_7 per_2"])(
    "%s changes nothing with --plan, so the default profile is enough",
    async (line) => {
      saveProfile(io(), profile("live", "production"));
      const run = (more: string) => runCommand([...line.split(" "), more], { cwd: bare, env: { HOME: home } });
      const planned = await run("--plan");
      expect(planned.told).toContain("from the default profile");
      expect(planned.told).not.toContain("PRODUCTION");
      expect(asked.length).toBeGreaterThan(0);
      asked.length = 0;
      expect(await run("--yes")).toMatchObject({ code: 2, told: expect.stringContaining("To change production, write --profile live") });
      expect(asked).toEqual([]);
    },
  );
});
