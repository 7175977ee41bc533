/** The command line: exit codes 0, 1 and 2, data on stdout, messages on stderr, and a suggestion for a mistyped word. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatKinds, listCodes, listMeanings, listParts } from "../../src/base/code/code.ts";
import type { RefusalCode } from "../../src/base/code/refusal-code.ts";
import { VERSION } from "../../src/base/release/version.ts";
import { Input, type Option } from "../../src/interfaces/cli/command.ts";
import type { Io } from "../../src/interfaces/cli/io.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { RUN_OPTIONS, readServiceConfig, SERVER_OPTIONS } from "../../src/interfaces/cli/service-option.ts";
import { runCommand } from "../kit/cli-io.ts";

const cwd = mkdtempSync(join(tmpdir(), "relay-cli-"));
afterAll(() => rmSync(cwd, { recursive: true }));

const WRONG: readonly [rule: string, line: string, sentence: RegExp][] = [
  ["suggests the nearest command for an unknown one", "validat", /did you mean relay validate\?/],
  ["points to help if no command is near", "frobnicate", /relay --help lists them/],
  ["suggests the nearest second word for an unknown one", "keys lst", /did you mean relay keys list\?/],
  ["lists a group's commands if the second word is missing", "apps", /write one of create, list, rename, delete\./],
  ["says where to erase a person", "people erase ada@example.com", /only the person's page in the dashboard does it \(Erase…\)/],
  ["says so for a synonym too", "people delete --help", /^relay people delete is not a command: erasing a person cannot be undone/],
  ["corrects words in the wrong order", "list events", /^relay list events is not a command: did you mean relay events list\?/],
  [
    "asks to move an option behind the command's words",
    "events --whole list",
    /^relay events --whole is not a command: did you mean relay events list\?/,
  ],
  ["lists what can follow if one word is missing", "events --whole", /^relay events needs a subcommand: write one of list, /],
  ["suggests the nearest option for an unknown one", "dev --prot 1", /does not know --prot: did you mean --port\?/],
  ["refuses an unknown short option", "dev -x", /does not know -x/],
  ["refuses an option without its value", "dev --port", /--port is missing its value/],
  ["refuses an option followed by another", "dev --port --open", /--port is followed by --open/],
  ["refuses a switch with a value", "dev --open=yes", /--open takes no value/],
  ["refuses an invalid port", "serve --port 99999", /whole number from 0 to 65535/],
  ["refuses a port that is no number", "serve --port abc", /whole number from 0 to 65535/],
  ["refuses an invalid base URL", "serve --base-url relay.example.com", /write an http or https address/],
  [
    "refuses a trusted proxy that means everyone",
    "serve --trusted-proxy 127.0.0.1,0.0.0.0/0",
    /^--trusted-proxy 0\.0\.0\.0\/0 holds more of the internet than one network has/,
  ],
  ["refuses a base URL with a path", "serve --base-url https://a.example/x", /write only the origin/],
  ["checks a word of a fixed set", "serve --log-format xml", /write one of text, json/],
  ["names a missing argument", "send", /needs <name>/],
  ["refuses an extra argument", "schema relay now", /does not take "now"/],
  ["refuses an option before the command", "--port 1 dev", /write a command first/],
  ["refuses an invalid version", "changes --since soon", /write a version such as/],
  ["names the option that admin create needs", "admin create", /--email is missing/],
];

describe("a wrong line", () => {
  test.each(WRONG)("%s", async (_rule, line, sentence) => {
    const { code, said, told } = await runCommand(line.split(" "), { cwd });
    expect({ code, said }).toEqual({ code: 2, said: "" });
    const [first, ...codeLines] = told.split("\n");
    expect(first).toMatch(sentence);
    expect(codeLines).toEqual([expect.stringMatching(/^usage {2}http:\S+\/docs\/errors\/usage {2}/)]);
  });

  test("names the variable of a raised limit that is no number", async () => {
    const env = { RELAY_LIMIT_RELAYS: "many" };
    const { code, told } = await runCommand(["serve"], { cwd, env });
    expect(code).toBe(2);
    expect(told).toMatch(/^RELAY_LIMIT_RELAYS is "many"/);
  });
});

const REFUSED: readonly [rule: string, line: string, code: RefusalCode][] = [
  ["a data directory that does not exist", "events list --data-dir nowhere", "not_found"],
  ["a folder without anything to check", "validate --service-dir nowhere", "not_found"],
  ["a relay that exists nowhere", "send nobody --data-dir nowhere", "not_found"],
  ["a backup of a directory that does not exist", "backup copy.db --data-dir nowhere", "backup_refused"],
  ["an owner's address that is invalid", "admin create --email nobody", "invalid_input"],
  ["a file at the path of the data directory", "apps create Shop --data-dir file/below", "file_unusable"],
  ["a wrong line", "keys list --limit", "usage"],
];

describe("a refusal", () => {
  beforeAll(() => writeFileSync(join(cwd, "file"), ""));

  test.each(REFUSED)("%s prints the sentence, then the code and where it is explained", async (_rule, line, code) => {
    const { code: exit, told } = await runCommand(line.split(" "), { cwd });
    const [sentence, codeLine, ...rest] = told.split("\n");
    expect({ exit, rest }).toEqual({ exit: code === "usage" ? 2 : 1, rest: [] });
    expect(sentence).toMatch(/\.$/);
    expect(codeLine).toBe(`${code}  http://127.0.0.1:4747/docs/errors/${code}  (or: relay help ${code})`);
  });

  test.each(REFUSED)("%s with --json prints the same as an object on stdout", async (_rule, line, code) => {
    const { said, told } = await runCommand([...line.split(" "), "--json"], { cwd });
    const docs = `http://127.0.0.1:4747/docs/errors/${code}`;
    expect(JSON.parse(said)).toEqual({ code, message: told.split("\n")[0], docs });
  });

  test("points to --docs-url, then RELAY_DOCS_URL, then the running service", async () => {
    const running = join(cwd, "running");
    mkdirSync(running);
    writeFileSync(join(running, "running.json"), JSON.stringify({ url: "http://127.0.0.1:5000" }));
    const pointsTo = async (line: string, env = {}) =>
      /http\S+/.exec((await runCommand(line.split(" "), { cwd, env })).told.split("\n")[1] ?? "")?.[0];
    expect(await pointsTo("events list --data-dir running")).toBe("http://127.0.0.1:5000/docs/errors/not_found");
    const env = { RELAY_DOCS_URL: "https://docs.example/relay/" };
    expect(await pointsTo("events list --data-dir running", env)).toBe("https://docs.example/relay/errors/not_found");
    expect(await pointsTo("serve --docs-url=https://two.example --port x", env)).toBe("https://two.example/errors/usage");
  });

  test("points to the docs of its server: as that server says, or by the address or the profile", async () => {
    const own = "https://docs.example/relay/errors/not_found";
    const answer = { code: "not_found", message: "There is no such thing.", docs: own };
    await using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) =>
        url.endsWith("/api/key") ? Response.json({ app: "shop", environment: "development" }) : Response.json(answer, { status: 404 }),
    });
    const url = `http://127.0.0.1:${server.port}`;
    const held = { url, app: "shop", environment: "development", key: "k", owner: "o@example.com", endsAt: "2030-03-01T00:00:00.000Z" };
    mkdirSync(join(cwd, "relay"));
    writeFileSync(join(cwd, "relay", "profiles.json"), JSON.stringify({ default: null, profiles: { shop: held } }));
    const pointsTo = async (line: string, env = {}) => {
      const { said } = await runCommand([...line.split(" "), "--json"], { cwd, env: { XDG_CONFIG_HOME: cwd, ...env } });
      return JSON.parse(said).docs;
    };
    const at = { RELAY_URL: url, RELAY_KEY: "k" };
    expect(await pointsTo("events show evt_1", at)).toBe(own);
    expect(await pointsTo("events show evt_1 --profile shop")).toBe(own);
    expect(await pointsTo("events list --limit none", at)).toBe(`${url}/docs/errors/usage`);
    expect(await pointsTo(`events list --limit none --url ${url}`)).toBe(`${url}/docs/errors/usage`);
    expect(await pointsTo("events list --limit none --profile shop")).toBe(`${url}/docs/errors/usage`);
    expect(await pointsTo("events list --limit none", { RELAY_PROFILE: "shop" })).toBe(`${url}/docs/errors/usage`);
    expect(await pointsTo("events list --data-dir nowhere", at)).toBe("http://127.0.0.1:4747/docs/errors/not_found");
  });

  test("relay config shows the private addresses that the local server can reach and their source, and a flag takes precedence", async () => {
    const dataDir = join(cwd, "allowed");
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, "running.json"), JSON.stringify({ allowPrivate: ["10.0.0.0/8", "mail.internal"] }));
    const shown = async (...line: string[]) => {
      const { said } = await runCommand(["config", "--json", "--data-dir", dataDir, ...line], { cwd });
      return JSON.parse(said).items.find(({ name }: { name: string }) => name === "allow-private");
    };
    const from = `${dataDir}/running.json`;
    expect(await shown()).toEqual({ name: "allow-private", value: "10.0.0.0/8, mail.internal", from });
    expect(await shown("--allow-private", "localhost")).toMatchObject({ value: "localhost", from: "--allow-private" });
    rmSync(join(dataDir, "running.json"));
    expect(await shown()).toEqual({ name: "allow-private", value: "none", from: "default" });
  });

  test.each(listCodes())("relay help %s shows each meaning of the code in its parts", async (code) => {
    const { code: exit, said } = await runCommand(["help", code], { cwd });
    expect(exit).toBe(0);
    for (const meaning of listMeanings(code)) {
      expect(said).toContain(`${code} (${formatKinds(meaning)})\n`);
      for (const { label, text } of listParts(meaning)) expect(said).toMatch(new RegExp(`^  ${label} +${RegExp.escape(text)}$`, "m"));
    }
  });
});

describe("help", () => {
  test.each(COMMANDS.map((command) => [command.words.join(" "), command] as const))(
    "relay %s --help shows each of its options on standard output",
    async (words, command) => {
      const { code, said, told } = await runCommand([...words.split(" "), "--help"], { cwd });
      expect({ code, told }).toEqual({ code: 0, told: "" });
      for (const { name, help } of command.options) {
        expect(said).toContain(`--${name}`);
        expect(said).toContain(help);
      }
    },
  );

  test("relay --help names every noun and command, on a page of at most 30 lines of 80 columns", async () => {
    const { code, said } = await runCommand(["--help"], { cwd });
    expect(code).toBe(0);
    const listed = said.split("\n").flatMap((line) => /^ {2}(\S.*?) {2,}[A-Z]/.exec(line)?.[1]?.split(", ") ?? []);
    expect(listed).toEqual([...new Set(COMMANDS.map(({ words }) => words[0] ?? ""))]);
    expect(said.split("\n").length).toBeLessThanOrEqual(30);
    expect(said.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });

  test("relay keys --help shows the commands of the noun, one on each line", async () => {
    const { code, said } = await runCommand(["keys", "--help"], { cwd });
    expect(code).toBe(0);
    const commands = said.split("\n").filter((line) => line.startsWith("  "));
    expect(commands.map((line) => line.split("  ")[1])).toEqual(["relay keys create", "relay keys list", "relay keys revoke"]);
    expect(said).toContain("relay help keys <command>");
  });

  test("shows a command's own options first, and the shared ones as global options", async () => {
    const { said } = await runCommand(["people", "list", "--help"], { cwd });
    const [own = "", shared = ""] = said.split("Global options");
    expect([...own.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, name]) => name)).toEqual(["text", "status", "since", "limit"]);
    expect([...shared.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, name]) => name)).toEqual([
      "json",
      "app",
      "environment",
      "profile",
      "url",
      "data-dir",
      "database",
      "whole",
      "no-pager",
      "help",
    ]);
    expect(shared.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });

  test("an earlier name of a command or of a noun continues to work", async () => {
    const [now, before] = [await runCommand(["help", "requests", "list"], { cwd }), await runCommand(["help", "calls", "list"], { cwd })];
    expect(before).toEqual(now);
    expect(now.said).toContain("Earlier name: relay calls list.");
    expect(await runCommand(["calls", "--help"], { cwd })).toEqual(await runCommand(["requests", "--help"], { cwd }));
    expect((await runCommand(["calls", "lst"], { cwd })).told).toContain("did you mean relay requests list?");
  });

  test("an empty line outside a terminal is wrong, and prints help to stderr", async () => {
    const { code, said, told } = await runCommand([], { cwd });
    expect({ code, said }).toEqual({ code: 2, said: "" });
    expect(told).toContain("relay help <command>");
  });

  test.each(["--version", "-v", "version"])("%s shows the newest release", async (word) => {
    expect(await runCommand([word], { cwd })).toEqual({ code: 0, said: VERSION, told: "" });
  });
});

describe("flag, then variable, then default", () => {
  const options: readonly Option[] = [...SERVER_OPTIONS, ...RUN_OPTIONS];
  const read = (flags: Record<string, string>, env: Record<string, string>) => {
    const given = new Map(Object.entries(flags).map(([name, value]) => [name, [value]]));
    return readServiceConfig("server", new Input([], given, options, env), { env, cwd: "/srv" } as Io);
  };

  test("gives the default if nothing is set", () => {
    expect(read({}, {})).toMatchObject({
      host: "127.0.0.1",
      port: 4747,
      dataDir: "/srv/.relay",
      baseUrl: null,
      trustedProxies: [],
      concurrency: 32,
      logFormat: "text",
      masterKey: null,
      limits: { verifiedEventsPerMinute: 120 },
    });
  });

  test("a variable replaces the default, and a flag the variable", () => {
    const env = {
      RELAY_PORT: "8000",
      RELAY_DATA_DIR: "/var/lib/relay",
      RELAY_TRUSTED_PROXY: "10.0.0.1, 10.1.0.0/16",
      RELAY_LIMIT_VERIFIED_EVENTS_PER_MINUTE: "6000",
      RELAY_MASTER_KEY: "00",
    };
    expect(read({}, env)).toMatchObject({
      port: 8000,
      dataDir: "/var/lib/relay",
      trustedProxies: ["10.0.0.1", "10.1.0.0/16"],
      limits: { verifiedEventsPerMinute: 6000, relaysPerEnvironment: 20 },
      masterKey: "00",
    });
    expect(read({ port: "9000", "base-url": "https://a.example/" }, env)).toMatchObject({
      port: 9000,
      baseUrl: "https://a.example",
    });
  });

  test("ignores an empty variable", () => {
    expect(read({}, { RELAY_PORT: "", RELAY_MASTER_KEY: "" })).toMatchObject({ port: 4747, masterKey: null });
  });

  test("has a variable with the prefix RELAY_ for every option", () => {
    const names = COMMANDS.flatMap(({ options: all }) => all.flatMap(({ env }) => env ?? []));
    expect(names.filter((name) => !/^RELAY_[A-Z_]+$/.test(name))).toEqual([]);
  });
});
