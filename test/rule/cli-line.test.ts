/** The command line: exit codes 0, 1 and 2, data on standard output, talk on standard error, the nearest word for a mistyped one. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TROUBLES } from "../../src/base/problem-code.ts";
import { REFUSALS, type RefusalCode } from "../../src/base/refusal-code.ts";
import { VERSION } from "../../src/base/release/change.ts";
import { RESULTS } from "../../src/base/result-code.ts";
import { Input, type Option } from "../../src/interfaces/cli/command.ts";
import type { World } from "../../src/interfaces/cli/io.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { RUN_OPTIONS, readServiceConfig, SERVER_OPTIONS } from "../../src/interfaces/cli/service-option.ts";
import { runCommand } from "../kit/cli-world.ts";

const cwd = mkdtempSync(join(tmpdir(), "relay-cli-"));
afterAll(() => rmSync(cwd, { recursive: true }));

const WRONG: readonly [rule: string, line: string, sentence: RegExp][] = [
  ["an unknown command names the nearest one", "validat", /did you mean relay validate\?/],
  ["an unknown command that is near none points to help", "frobnicate", /relay --help lists them/],
  ["an unknown second word names the nearest one", "keys lst", /did you mean relay keys list\?/],
  ["a group without its second word lists them", "apps", /write one of create, list, rename, delete\./],
  ["erasing somebody is told where it is done", "people erase ada@example.com", /done on the person's page in the dashboard \(Erase…\)/],
  ["so it is by another word for it", "people delete --help", /^relay people delete is no command: erasing somebody cannot be undone/],
  ["words in the wrong order are put right", "list events", /^relay list events is no command: did you mean relay events list\?/],
  [
    "an option among a command's words is told to stand behind them",
    "events --whole list",
    /^relay events --whole is no command: did you mean relay events list\?/,
  ],
  ["one word too few is still told what may follow", "events --whole", /^relay events needs a word more: write one of list, /],
  ["an unknown option names the nearest one", "dev --prot 1", /does not know --prot: did you mean --port\?/],
  ["an unknown short option is refused", "dev -x", /does not know -x/],
  ["an option without its value is refused", "dev --port", /--port is missing its value/],
  ["an option followed by another is refused", "dev --port --open", /--port is followed by --open/],
  ["a switch with a value is refused", "dev --open=yes", /--open takes no value/],
  ["a port that is none is refused", "serve --port 99999", /whole number from 0 to 65535/],
  ["a port that is no number is refused", "serve --port abc", /whole number from 0 to 65535/],
  ["a base URL that is none is refused", "serve --base-url relay.example.com", /write an http or https address/],
  [
    "a trusted proxy that means everyone is refused",
    "serve --trusted-proxy 127.0.0.1,0.0.0.0/0",
    /^--trusted-proxy 0\.0\.0\.0\/0 holds more of the internet than one network has/,
  ],
  ["a base URL with a path is refused", "serve --base-url https://a.example/x", /write the origin alone/],
  ["a word of a fixed set is checked", "serve --log-format xml", /write one of text, json/],
  ["a missing argument is named", "send", /needs <name>/],
  ["an argument too many is refused", "schema relay now", /does not take "now"/],
  ["an option before the command is refused", "--port 1 dev", /write a command first/],
  ["a version that is none is refused", "changes --since soon", /write a version such as/],
  ["admin create without an address says which option", "admin create", /--email is missing/],
];

describe("a wrongly written line", () => {
  test.each(WRONG)("%s", async (_rule, line, sentence) => {
    const { code, said, told } = await runCommand(line.split(" "), { cwd });
    expect({ code, said }).toEqual({ code: 2, said: "" });
    const [first, ...codeLines] = told.split("\n");
    expect(first).toMatch(sentence);
    expect(codeLines).toEqual([expect.stringMatching(/^usage {2}http:\S+\/docs\/errors\/usage {2}/)]);
  });

  test("a raised limit that is no number is refused by its variable's name", async () => {
    const env = { RELAY_LIMIT_RELAYS: "many" };
    const { code, told } = await runCommand(["serve"], { cwd, env });
    expect(code).toBe(2);
    expect(told).toMatch(/^RELAY_LIMIT_RELAYS is "many"/);
  });
});

const REFUSED: readonly [rule: string, line: string, code: RefusalCode][] = [
  ["a data directory that is not there", "events list --data-dir nowhere", "not_found"],
  ["a folder without anything to check", "validate --service-dir nowhere", "not_found"],
  ["a relay that is nowhere", "send nobody --data-dir nowhere", "not_found"],
  ["a backup of what is not there", "backup copy.db --data-dir nowhere", "backup_refused"],
  ["an owner's address that is none", "admin create --email nobody", "invalid_input"],
  ["a file in the place of the data directory", "apps create Shop --data-dir file/below", "file_unusable"],
  ["a line that is wrong", "keys list --limit", "usage"],
];

describe("a refusal", () => {
  beforeAll(() => writeFileSync(join(cwd, "file"), ""));

  test.each(REFUSED)("%s: the sentence, then the code and where it is explained", async (_rule, line, code) => {
    const { code: exit, told } = await runCommand(line.split(" "), { cwd });
    const [sentence, codeLine, ...rest] = told.split("\n");
    expect({ exit, rest }).toEqual({ exit: code === "usage" ? 2 : 1, rest: [] });
    expect(sentence).toMatch(/\.$/);
    expect(codeLine).toBe(`${code}  http://127.0.0.1:4747/docs/errors/${code}  (or: relay help ${code})`);
  });

  test.each(REFUSED)("%s: with --json the same as an object on standard output", async (_rule, line, code) => {
    const { said, told } = await runCommand([...line.split(" "), "--json"], { cwd });
    const docs = `http://127.0.0.1:4747/docs/errors/${code}`;
    expect(JSON.parse(said)).toEqual({ code, message: told.split("\n")[0], docs });
  });

  test("points to --docs-url, then RELAY_DOCS_URL, then the service that runs", async () => {
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

  test("points to the server that it is about: as that one says, else at the address or in the profile that is named", async () => {
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

  test("relay config shows what the server here may reach of private addresses, and where that stands; a flag goes before", async () => {
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

  test.each(Object.entries({ ...REFUSALS, ...RESULTS }))("relay help %s says what it means and what to do", async (code, entry) => {
    const { code: exit, said } = await runCommand(["help", code], { cwd });
    // One that an alert has as well says both.
    const alert = TROUBLES[code as keyof typeof TROUBLES];
    const [when, todo] = [alert?.when, alert?.todo].map((words) => (words === undefined ? "" : ` As an alert: ${words}`));
    expect({ exit, said }).toEqual({ exit: 0, said: `${code}\n\n${entry.when}${when}\n${entry.todo}${todo}` });
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

  test("relay --help lists every command", async () => {
    const { code, said } = await runCommand(["--help"], { cwd });
    expect(code).toBe(0);
    for (const { words, summary } of COMMANDS) {
      expect(said).toContain(`relay ${words.join(" ")}`);
      expect(said).toContain(summary);
    }
  });

  test("relay keys --help shows the commands of that word", async () => {
    const { code, said } = await runCommand(["keys", "--help"], { cwd });
    expect(code).toBe(0);
    expect(said).toContain("relay keys revoke <key id>");
  });

  test("no line outside a terminal is a wrong line, and shows help as talk", async () => {
    const { code, said, told } = await runCommand([], { cwd });
    expect({ code, said }).toEqual({ code: 2, said: "" });
    expect(told).toContain("relay dev");
  });

  test.each(["--version", "-v", "version"])("%s is the newest release's", async (word) => {
    expect(await runCommand([word], { cwd })).toEqual({ code: 0, said: VERSION, told: "" });
  });
});

describe("flag, then variable, then default", () => {
  const options: readonly Option[] = [...SERVER_OPTIONS, ...RUN_OPTIONS];
  const read = (flags: Record<string, string>, env: Record<string, string>) => {
    const given = new Map(Object.entries(flags).map(([name, value]) => [name, [value]]));
    return readServiceConfig("server", new Input([], given, options, env), { env, cwd: "/srv" } as World);
  };

  test("nothing given is the default", () => {
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

  test("an empty variable is none", () => {
    expect(read({}, { RELAY_PORT: "", RELAY_MASTER_KEY: "" })).toMatchObject({ port: 4747, masterKey: null });
  });

  test("every variable of an option begins with RELAY_", () => {
    const names = COMMANDS.flatMap(({ options: all }) => all.flatMap(({ env }) => env ?? []));
    expect(names.filter((name) => !/^RELAY_[A-Z_]+$/.test(name))).toEqual([]);
  });
});
