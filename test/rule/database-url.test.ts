/** The URL of a PostgreSQL database: accepted forms, refusals in one sentence, and masked passwords. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { systemClock, waitAtMost } from "../../src/base/clock.ts";
import { DatabaseUrl, maskPasswords, readDatabaseUrl } from "../../src/base/database-url.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { runCommand } from "../kit/cli-io.ts";

const cwd = mkdtempSync(join(tmpdir(), "relay-database-url-"));
afterAll(() => rmSync(cwd, { recursive: true }));

const PASSWORD = "hunter2";

const TAKEN: readonly [text: string, read: Record<string, unknown>][] = [
  [
    "postgres://relay:hunter2@db.example.com/shop",
    { host: "db.example.com", port: 5432, user: "relay", database: "shop", sslMode: "prefer", password: PASSWORD },
  ],
  ["postgresql://relay@[::1]:6432/shop?sslmode=disable", { host: "::1", port: 6432, sslMode: "disable", password: "" }],
  ["postgres://relay%40team:p%40ss%3A%2F%25@h/a%20b", { user: "relay@team", password: "p@ss:/%", database: "a b" }],
  ["postgres://r@h/shop%2Feu%3F%23%22%27%25%C3%BC", { database: "shop/eu?#\"'%ü" }],
  ["postgres://r:hunter2@h/d?sslmode=verify-full&sslrootcert=/etc/ca.pem", { sslMode: "verify-full", sslRootCert: "/etc/ca.pem" }],
  ["postgres://r@h/d?sslmode=require", { sslMode: "require", sslRootCert: null }],
  ["postgres://r@h/d?sslmode=verify-full&sslrootcert=system", { sslMode: "verify-full", sslRootCert: "system" }],
  // libpq uses full verification with the system's authorities.
  ["postgres://r@h/d?sslrootcert=system", { sslMode: "verify-full", sslRootCert: "system" }],
];

const REFUSED: readonly [text: string, sentence: RegExp][] = [
  ["mysql://relay:hunter2@h/d", /is no URL of a PostgreSQL database/],
  ["relay.db", /is no URL of a PostgreSQL database/],
  ["postgres://relay:hun/hunter2@h:x/d", /cannot be read/],
  ["postgres://relay:hunter2%@h/d", /write a % of the password as %25/],
  ["postgres:///d", /names no (host|user)/],
  ["postgres://:hunter2@h/d", /names no user/],
  ["postgres://relay:hunter2@h", /names no database/],
  ["postgres://relay:hunter2@h/", /names no database/],
  ["postgres://relay:hunter2@h/d/e", /names no database/],
  ["postgres://relay:hunter2@h/d?sslmode=maybe", /write one of disable, prefer, require, verify-ca, verify-full/],
  ["postgres://relay:hunter2@h/d?channel_binding=require", /has "channel_binding".*leave it out/],
  ["postgres://relay:hunter2@h/d?sslrootcert=/ca.pem", /only sslmode=verify-ca and sslmode=verify-full/],
  ["postgres://relay:hunter2@h/d?sslmode=verify-ca&sslrootcert=system", /write sslmode=verify-full/],
  ["postgres://relay:hunter2@h/d?sslmode=require&sslmode=disable", /sslmode twice/],
  ["postgres://relay:hunter2@h/d#here", /cannot be read/],
  ["postgres://relay:hunter2%00@h/d", /NUL/],
];

describe("a database's URL", () => {
  test.each(TAKEN)("%s is accepted", (text, read) => {
    const url = readDatabaseUrl(text);
    expect(url).toBeInstanceOf(DatabaseUrl);
    expect(url).toMatchObject(read);
  });

  test.each(REFUSED)("%s is refused, and the sentence does not contain its password", async (text, sentence) => {
    for (const given of [
      { line: ["serve", "--database", text], env: {} },
      { line: ["apps", "list"], env: { RELAY_DATABASE: text } },
    ]) {
      if (given.line[0] === "apps") given.line.push("--data-dir", cwd);
      const { code, said, told } = await runCommand(given.line, { cwd, env: given.env });
      expect({ code, said }).toEqual({ code: 2, said: "" });
      expect(told).toMatch(sentence);
      expect(told).toMatch(given.line[0] === "serve" ? /^--database / : /^RELAY_DATABASE /);
      expect(told).not.toContain(PASSWORD);
    }
  });

  test("is one that psql and pg_dump can read, wherever the documentation shows one", () => {
    const shown = readdirSync(join(PROJECT_ROOT, "docs")).flatMap((file) =>
      file.endsWith(".md") ? [...readFileSync(join(PROJECT_ROOT, "docs", file), "utf8").matchAll(/postgres:\/\/[^\s'"`<]+@[^\s'"`<]+/g)] : [],
    );
    expect(shown.length).toBeGreaterThan(2);
    for (const [text] of shown) {
      const url = readDatabaseUrl(text.replace("…", "hunter2"));
      expect(url).toBeInstanceOf(DatabaseUrl);
      // psql and pg_dump have no built-in authorities.
      const { sslMode, sslRootCert } = url as DatabaseUrl;
      expect({ text, hasRoots: sslRootCert !== null }).toEqual({ text, hasRoots: sslMode.startsWith("verify") });
    }
  });

  test("is shown with its password masked, however it is printed", () => {
    const url = readDatabaseUrl("postgres://relay:hunter2@db.example.com/shop?sslmode=require");
    const shown = "postgres://relay:••••@db.example.com:5432/shop?sslmode=require";
    expect([String(url), JSON.parse(JSON.stringify({ url })).url, inspect({ url }), Bun.inspect({ url })]).toEqual([
      shown,
      shown,
      expect.stringContaining(shown),
      expect.not.stringContaining(PASSWORD),
    ]);
  });

  test("has its password masked in a text that repeats it, also if the URL is malformed", () => {
    for (const text of ["postgres://r:hunter2@h/d", 'x "postgresql://r:a/hunter2@b@h/d"', "POSTGRES://r:hunter2@h"])
      expect(maskPasswords(text)).not.toContain(PASSWORD);
    expect(maskPasswords("postgres://relay@h/d and http://h:80/a@b")).toBe("postgres://relay@h/d and http://h:80/a@b");
  });

  test.each([
    ["a token instead of a user", "https://ghp_hunter2@relay.example.com/x", "https://••••@relay.example.com/x"],
    ["a token before an empty password", "https://ghp_hunter2:@relay.example.com", "https://••••:@relay.example.com"],
    ["only the password next to a user", "https://ann:hunter2@relay.example.com", "https://ann:••••@relay.example.com"],
    [
      "an @ in the path, the query or the fragment is unchanged",
      "https://h/@ann https://h?to=a@b https://h#a@b",
      "https://h/@ann https://h?to=a@b https://h#a@b",
    ],
    ["a person's address is unchanged", "mail ann@example.com", "mail ann@example.com"],
  ])("masking in a web address: %s", (_rule, text, masked) => {
    expect(maskPasswords(text)).toBe(masked);
  });

  test.each(["RELAY_URL", "RELAY_BASE_URL", "RELAY_DOCS_URL"])("masking covers a lone token in the refused web address of %s", async (name) => {
    const line = name === "RELAY_URL" ? ["relays", "list", "--json"] : ["serve"];
    const env = { RELAY_KEY: "relay_dev_x", [name]: `https://${PASSWORD}@relay.example.com` };
    const { said, told } = await runCommand(line, { cwd, env });
    expect(told).toContain("••••@relay.example.com");
    expect(said + told).not.toContain(PASSWORD);
  });

  test.each(["RELAY_URL", "RELAY_BASE_URL", "RELAY_DOCS_URL"])("masking covers a password in the refused web address of %s", async (name) => {
    const line = name === "RELAY_URL" ? ["relays", "list", "--json"] : ["serve"];
    const env = { RELAY_KEY: "relay_dev_x", [name]: `https://ann:${PASSWORD}@relay.example.com` };
    const { code, said, told } = await runCommand(line, { cwd, env });
    expect(code).toBe(2);
    expect(told).toContain("ann:••••@relay.example.com");
    expect(said + told).not.toContain(PASSWORD);
  });
});

describe("a database's URL on the command line", () => {
  const url = "postgres://relay:hunter2@h/d";

  test("as an extra argument is refused with its password masked", async () => {
    const { code, told } = await runCommand(["serve", url], { cwd });
    expect(code).toBe(2);
    expect(told).toContain('does not take "postgres://relay:••••@h/d"');
    expect(told).not.toContain(PASSWORD);
  });

  test.each([
    ["relay config --database", ["config", "--database", url], {}, "--database"],
    ["RELAY_DATABASE", ["config"], { RELAY_DATABASE: url }, "RELAY_DATABASE"],
  ])("is shown by relay config, from %s, masked", async (_by, line, env, from) => {
    for (const json of [[], ["--json"]]) {
      const { code, said, told } = await runCommand([...line, ...json], { cwd, env });
      expect(code).toBe(0);
      expect(said).toContain("postgres://relay:••••@h:5432/d");
      expect(said).toContain(from);
      expect(said + told).not.toContain(PASSWORD);
    }
  });

  test.each([
    ["the flag", ["dev", "--database", url], {}],
    ["the variable", ["dev"], { RELAY_DATABASE: url }],
  ])("is refused for local development, by %s", async (_by, line, env) => {
    const { code, told } = await runCommand(line, { cwd, env });
    expect(code).toBe(2);
    expect(told).toMatch(/local development works only with relay\.db.*relay serve/);
    expect(told).not.toContain(PASSWORD);
  });

  test("conflicts with --url", async () => {
    const { code, told } = await runCommand(["relays", "list", "--url", "https://a.example", "--database", url], { cwd });
    expect(code).toBe(2);
    expect(told).toMatch(/^--url and --database name two targets/);
  });

  test("appears in the process list without its password (Linux)", async () => {
    if (process.platform !== "linux") return;
    // The command waits for its password on stdin, so the test can read its arguments.
    const line = ["admin", "create", "--email", "a@example.com", "--password-stdin", "--database", url];
    const main = join(PROJECT_ROOT, "src/main.ts");
    const child = Bun.spawn([process.execPath, main, ...line], { cwd, stdin: "pipe", stdout: "ignore", stderr: "ignore" });
    const seen = (): string => readFileSync(`/proc/${child.pid}/cmdline`, "utf8");
    const hidden = (async () => {
      while (seen().includes(PASSWORD) || !seen().includes("--database")) await Bun.sleep(20);
    })();
    await waitAtMost(systemClock, 20_000, hidden);
    expect(seen()).toContain("postgres://relay:xxxxxxx@h/d");
    child.kill("SIGKILL");
    await child.exited;
  });
});
