/**
 * A server answers every route with something wrong. Every remote command of the registry ends with a message. The server cannot choose where a file
 * is written, and no file gets content that no save would accept.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROUTES } from "../../src/interfaces/api/route-list.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { runCommand } from "../kit/cli-io.ts";

const KEY = { app: "shop", environment: "development", owner: null, expiresAt: null };
let said: string;
let keyIsTrue = true;
const asked: string[] = [];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname } = new URL(request.url);
    asked.push(`${request.method} ${pathname}`);
    const isKey = pathname === "/api/key" && keyIsTrue;
    return new Response(isKey ? JSON.stringify(KEY) : said, { headers: { "content-type": "application/json" } });
  },
});
const url = `http://127.0.0.1:${server.port}`;
let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "relay-hostile-server-"));
});
afterAll(async () => {
  await server.stop(true);
  rmSync(home, { recursive: true, force: true });
});

/** Commands that use a server, each with a line and its standard input. */
const REMOTE = COMMANDS.filter(({ options }) => options.some(({ name }) => name === "url")).map(({ words }) => words.join(" "));
/** `send` posts to a receiver as a sender does and shows the response. `config` uses no server. */
const ELSEWHERE = ["send", "config"];
const LINES: readonly (readonly [line: string, input?: string])[] = [
  [`changes --url ${url}`],
  ["relays list"],
  ["relays show orders"],
  ["relays funnel orders"],
  ["relays pause orders"],
  ["relays resume orders"],
  ["relays retry orders"],
  ["relays delete orders --confirm orders"],
  ["relays history orders"],
  ["relays restore orders --to 3"],
  ["relays rotate-secret orders --overlap 60"],
  ["relays rotate-secret orders --signing"],
  ["relays set-secret orders", "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnT"],
  ["relays end-overlap orders"],
  ["events list"],
  ["events show evt_0198c0de00007000800000000000000a"],
  ["events show 0000000a"],
  ["events replay evt_0198c0de00007000800000000000000a"],
  ["events replay evt_0198c0de00007000800000000000000a --plan"],
  ["events retry evt_0198c0de00007000800000000000000a"],
  ["events expunge evt_0198c0de00007000800000000000000a"],
  ["events tail"],
  ["replays start --relay orders --plan"],
  ["replays start --relay orders --yes"],
  ["replays list"],
  ["replays wait rpl_0198c0de00007000800000000000000a"],
  ["replays stop rpl_0198c0de00007000800000000000000a"],
  ["requests list"],
  ["simulate stripe purchase"],
  ["capture"],
  ["guess -", '{"type":"order.paid"}'],
  ["requests show cal_0198c0de00007000800000000000000a"],
  ["requests tail"],
  ["problems list"],
  ["alerts list"],
  ["alerts resolve --all"],
  ["alerts resolve alt_0198c0de00007000800000000000000a"],
  ["alerts channels"],
  ["alerts channels --kinds"],
  ["alerts add-channel slack --name Ops", "https://hooks.slack.com/services/T0/B0/x"],
  ["alerts set-channel Ops --name Night"],
  ["alerts test-channel Ops"],
  ["alerts remove-channel Ops --confirm Ops"],
  ["people list"],
  ["people show ada@example.com"],
  ["people show per_0198c0de00007000800000000000000a"],
  ["people invite ada@example.com"],
  ["people merge ada.old@example.com ada@example.com --plan"],
  ["people merge ada.old@example.com ada@example.com --yes"],
  ["people change-address ada@example.com ada.new@example.com --yes"],
  ["relays checklist orders"],
  ["relays cases orders"],
  ["relays rejected orders"],
  ["relays skipped orders"],
  ["relays skipped orders --run --yes"],
  ["people grant ada@example.com access:beta"],
  ["people end ada@example.com access:beta"],
  ["people end ada@example.com pro"],
  ["people credits ada@example.com 5 --reason welcome"],
  ["people credits ada@example.com 5 --spend --reason mistaken"],
  ['people set ada@example.com {"a":1}'],
  ["people suspend ada@example.com"],
  ["people activate ada@example.com"],
  ["people add-token ada@example.com 8f14e45f"],
  ["people remove-token ada@example.com 8f14e45f"],
  ["people link ada@example.com --customers stripe cus_123"],
  ["people unlink ada@example.com --customers stripe cus_123"],
  ["people stop-mail ada@example.com"],
  ["people allow-mail ada@example.com"],
  ["emails list"],
  ["emails stopped"],
  ["emails resend eml_0198c0de00007000800000000000000a"],
  ["emails test --to ada@example.com"],
  ["records list orders"],
  ["records show orders rec_0198c0de00007000800000000000000a"],
  ["records set orders {}"],
  ["records set orders --id rec_0198c0de00007000800000000000000a {}"],
  ["records delete orders rec_0198c0de00007000800000000000000a --confirm rec_0198c0de00007000800000000000000a"],
  ["files list"],
  ["files upload --name note.txt", "hello"],
  ["files delete fil_0198c0de00007000800000000000000a --confirm fil_0198c0de00007000800000000000000a"],
  ["receipts list"],
  ["receipts record pay_7 --person ada@example.com --product lamp"],
  ["receipts refund pay_7 --confirm pay_7"],
  ["receipts move pay_7 ada@example.com --plan"],
  ["receipts move pay_7 ada@example.com --yes"],
  ["audit list"],
  ["login --profile p1"],
  ["whoami"],
  ["status"],
  ["sync --yes"],
  ["sync --dry-run"],
  ["sync --live --dry-run"],
  ["sync --live"],
  ["promote --dry-run"],
  ["promote --yes"],
  ["pull --yes"],
  ["pull --dry-run"],
  ["catalog list"],
  ["catalog set access beta {}"],
  ["catalog delete product lamp"],
  ["limits list"],
  ["settings get"],
  ["settings get mail"],
  ["settings set held on"],
  ["domain show"],
  ["domain set example.com"],
  ["domain verify"],
  ["domain remove --confirm example.com"],
  ["keys list"],
  ["mcp", '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'],
  ["import-missed orders", '{"id":"evt_1"}\n'],
];
const nameOf = (line: string): string => REMOTE.filter((name) => `${line} `.startsWith(`${name} `)).at(-1) ?? "";

test("every remote command has a line", () => {
  const named = new Set(LINES.map(([line]) => nameOf(line)));
  expect(REMOTE.filter((name) => !named.has(name) && !ELSEWHERE.includes(name) && name !== "files download")).toEqual([]);
});

/** The top-level fields of the routes' responses. */
const FIELDS = [...new Set(ROUTES.flatMap(({ answer }) => Object.keys((answer as { properties?: object } | null)?.properties ?? {})))];
const everyField = (value: unknown): string => JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, value])));
const ENDLESS = "a list without an end";
/** Responses that no route gives. Each command ends with 1, or with 2 if it reads the response as a wrong line. */
const NO_ANSWERS: readonly (readonly [what: string, answer: string])[] = [
  ["{}", "{}"],
  ["null", "null"],
  ["[]", "[]"],
  ["a text", '"text"'],
  ["a number", "7"],
  ["no JSON", "<html>"],
  ["nothing", ""],
  ["another object", '{"x":1}'],
  ["items that are no list", '{"items":{},"next":null}'],
  ["items of null", '{"items":[null],"next":null}'],
  ["items of texts", '{"items":["x"],"next":null}'],
  [ENDLESS, '{"items":[],"next":"x"}'],
];
/** Responses with the right fields and other types. A command may accept them, and must never crash. */
const WRONG_TYPES: readonly (readonly [what: string, answer: string])[] = [
  ["items of {}", '{"items":[{}],"next":null}'],
  ["every field a number", everyField(7)],
  ["every field null", everyField(null)],
  ["every field {}", everyField({})],
  ["every field []", everyField([])],
  ["every field a list of null", everyField([null])],
  ["every field a list of numbers", everyField([7])],
  ["every field a list of {}", everyField([{}])],
  ["every field an object of numbers", everyField(Object.fromEntries(FIELDS.map((name) => [name, 7])))],
  ["every field a hostile text", everyField("../../x\u001b[2J\u202e")],
];
/** This command answers each line of its input with a JSON-RPC error, and ends with its input. */
const STREAM = "mcp";
/** This command shows the key's own data, which is correct here. */
const BY_KEY = "whoami";
/** This command accepts a response without any field. */
const NO_FIELD = "relays set-secret";
/** This command reads only the newest page, so a list without an end is a valid response. */
const FIRST_PAGE = "events tail";
const BROKEN =
  /An error happened|An internal error|undefined is not|is not a function|is not iterable|is not an object|Cannot destructure|TypeError|RangeError/;

interface Ended {
  line: string;
  code: number;
  text: string;
}

async function runAll(answer: string): Promise<Ended[]> {
  said = answer;
  const ended: Ended[] = [];
  for (const [line, input = ""] of LINES) {
    const cwd = openFolder();
    const env = { RELAY_KEY: "relay_dev_key", RELAY_URL: url, HOME: cwd, XDG_CONFIG_HOME: cwd };
    const { code, said: out, told } = await runCommand(line.split(" "), { cwd, env, input });
    ended.push({ line, code, text: `${out}\n${told}` });
  }
  return ended;
}

/** Creates a project with files that the server does not have. */
function openFolder(): string {
  const cwd = mkdtempSync(join(home, "at-"));
  mkdirSync(join(cwd, "service", "relays"), { recursive: true });
  writeFileSync(join(cwd, "service", "catalog.json"), '{"access":{"beta":{}}}');
  return cwd;
}

describe("a server that answers every route with", () => {
  test.each(NO_ANSWERS)("%s, every command ends with a message and a code other than 0", async (what, answer) => {
    const ended = await runAll(answer);
    const accepting = [STREAM, BY_KEY, NO_FIELD, ...(what === ENDLESS ? [FIRST_PAGE] : [])];
    const well = ended.filter(({ line, code }) => code === 0 && !accepting.includes(nameOf(line)));
    expect(well).toEqual([]);
    expect(ended.filter(({ text }) => BROKEN.test(text) || text.trim() === "")).toEqual([]);
    expect(ended.find(({ line }) => line === STREAM)?.text).toContain('"error"');
  });

  test.each(WRONG_TYPES)("%s, no command crashes", async (_, answer) => {
    const ended = await runAll(answer);
    expect(ended.filter(({ text }) => BROKEN.test(text))).toEqual([]);
  });

  test("the same on /api/key, no command accepts it as a relay server", async () => {
    keyIsTrue = false;
    try {
      for (const [, answer] of NO_ANSWERS) {
        said = answer;
        for (const line of ["whoami", "status", "events list", "pull --yes", "sync --yes"]) {
          const cwd = openFolder();
          const env = { RELAY_KEY: "relay_dev_key", RELAY_URL: url, HOME: cwd, XDG_CONFIG_HOME: cwd };
          const { code, said: out, told } = await runCommand(line.split(" "), { cwd, env });
          expect([line, line === "whoami" || code !== 0, BROKEN.test(out + told)]).toEqual([line, true, false]);
        }
      }
    } finally {
      keyIsTrue = true;
    }
  });
});

describe("relay pull", () => {
  const definition = (name: string, more: object = {}) => ({
    name,
    trigger: { kind: "schedule", every: "1d", at: "09:00" },
    actions: [{ type: "call_url", url: "https://example.com/" }],
    ...more,
  });
  const item = (kind: string, name: string, content: unknown) => ({ kind, name, content, mark: null, brought: null, changed: null });
  /** Lists every file below the folder. */
  const filesIn = (folder: string): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => name)
      .sort();
  async function pull(items: readonly object[], open = openFolder) {
    said = JSON.stringify({ items, next: null });
    const cwd = open();
    const env = { RELAY_KEY: "relay_dev_key", RELAY_URL: url, HOME: cwd, XDG_CONFIG_HOME: cwd };
    return { cwd, ...(await runCommand(["pull", "--yes", "--theirs"], { cwd, env })) };
  }

  const elsewhere: [string, object][] = [
    ["a relay named with a path", item("relay", "../../../evil", definition("evil"))],
    ["a relay with an absolute name", item("relay", "/tmp/evil", definition("evil"))],
    ["a relay named as a hidden file", item("relay", ".secrets", definition("evil"))],
    ["a name with a NUL", item("relay", "evil\u0000", definition("evil"))],
    ["an item of a kind that there is not", item("script", "evil", {})],
    ["a product named as an object's prototype", item("product", "__proto__", {})],
    ["content that is a text", item("relay", "evil", "rm -rf /")],
    ["a name that is a number", { ...item("relay", "evil", definition("evil")), name: 7 }],
  ];
  test.each(elsewhere)("writes nothing for %s", async (_, one) => {
    const { cwd, code, told } = await pull([one, item("relay", "good", definition("good"))]);
    expect([code, told]).toEqual([1, expect.stringContaining("nothing was written")]);
    expect(filesIn(cwd)).toEqual(["catalog.json"]);
  });

  const unchecked: [string, object][] = [
    ["a definition without a trigger", item("relay", "evil", { name: "evil", actions: [] })],
    ["a definition with another field", item("relay", "evil", definition("evil", { script: "rm" }))],
    ["a definition that calls http", item("relay", "evil", definition("evil", { actions: [{ type: "call_url", url: "http://example.com/" }] }))],
    ["a definition with another name", item("relay", "evil", definition("other"))],
    ["a product with another field", item("product", "evil", { title: "x", script: "rm" })],
    ["a collection without fields", item("collection", "evil", { kind: "shared", fields: 7 })],
    ["a plan sold at a javascript address", item("plan", "evil", { title: "x", soldThrough: { kind: "payment_link", url: "javascript:alert(1)" } })],
  ];
  test.each(unchecked)("does not write %s, gives the reason, and writes the others", async (_, one) => {
    const { cwd, code, said: out, told } = await pull([one, item("relay", "good", definition("good"))]);
    expect([code, out, told]).toEqual([
      1,
      expect.stringContaining("not valid here, never written"),
      expect.stringMatching(/evil: not written: what the server has is not valid here \(.+Update relay where the server is newer/),
    ]);
    const files = filesIn(cwd);
    expect(files).toContain("good.json");
    expect(files).not.toContain("evil.json");
    expect(readFileSync(join(cwd, "service", "catalog.json"), "utf8")).not.toContain("evil");
  });

  test("writes and reads nothing through service/relays if it is a link out of the folder", async () => {
    const outside = mkdtempSync(join(home, "outside-"));
    writeFileSync(join(outside, "old.json"), JSON.stringify(definition("old")));
    const open = (): string => {
      const cwd = openFolder();
      rmSync(join(cwd, "service", "relays"), { recursive: true });
      symlinkSync(outside, join(cwd, "service", "relays"));
      return cwd;
    };
    const { code, told } = await pull([item("relay", "good", definition("good"))], open);
    expect([code, told]).toEqual([1, expect.stringContaining("is a link to a folder outside of the service directory, so it is not followed")]);
    expect(filesIn(outside)).toEqual(["old.json"]);
    for (const line of ["sync --dry-run", "validate", "init", "init --from stripe", "send old"]) {
      const cwd = open();
      const env = { RELAY_KEY: "relay_dev_key", RELAY_URL: url, HOME: cwd, XDG_CONFIG_HOME: cwd };
      const refused = await runCommand(line.split(" "), { cwd, env });
      expect([line, refused.code, refused.told]).toEqual([line, 1, expect.stringContaining("so it is not followed")]);
    }
    expect(filesIn(outside)).toEqual(["old.json"]);
  });

  test("follows a service/relays that links to another folder inside", async () => {
    const open = (): string => {
      const cwd = openFolder();
      rmSync(join(cwd, "service", "relays"), { recursive: true });
      mkdirSync(join(cwd, "service", "own"));
      symlinkSync("own", join(cwd, "service", "relays"));
      return cwd;
    };
    const { cwd } = await pull([item("relay", "good", definition("good"))], open);
    expect(existsSync(join(cwd, "service", "own", "good.json"))).toBe(true);
  });
});
