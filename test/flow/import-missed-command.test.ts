/** Tests `relay import-missed` on a data directory and through a server: its output, and processes that are killed while they import. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { bindScheme } from "../../src/rules/verify/registry.ts";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { untilNoneLeft } from "../kit/patience.ts";
import { rounds } from "../kit/rounds.ts";

const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const VERIFY = { scheme: "signature", header: "x-signature", signatureKey: "v1", timestampKey: "t", signedPayload: "{timestamp}.{body}" };
const NOTE = { type: "write_record", collection: "notes", data: { text: "{{mapped.text}}" } };

let home: string;
let server: CliProcess;
let port: string;
let key: string;
let name: string;
let relays = 0;

async function startServer(): Promise<void> {
  server = startCli(["serve", "--port", port ?? "0", "--base-url", "https://relay.example.test"], { cwd: home });
  port = /127\.0\.0\.1:(\d+)/.exec(await server.line("127.0.0.1:"))?.[1] ?? "";
}

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-missed-"));
  port = "0";
  await startServer();
  expect((await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd: home })).code).toBe(0);
  const made = await runCommand(["keys", "create", "--environment", "development"], { cwd: home });
  key = /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
  await api("POST", "/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});
beforeEach(async () => {
  relays += 1;
  name = `orders${relays}`;
  const trigger = { kind: "receiver", verify: VERIFY, map: { event_id: "id", event_type: "type", text: "text" }, when: { event_type: "paid" } };
  const made = await api("POST", "/relays", { definition: { name, trigger, actions: [NOTE] }, secret: SECRET });
  expect(made.message).toBeUndefined();
});

// An environment has few relays.
afterEach(async () => void (await api("DELETE", `/relays/${name}`)));

async function api(method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const url = `http://127.0.0.1:${port}/api/apps/shop/development${path}`;
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers by their fields
  return (response.status === 204 ? {} : await response.json()) as any;
}

const event = (id: number | string, type = "paid") => JSON.stringify({ id: `${name}-${id}`, type, text: `${name} ${id}` });
const file = (...lines: string[]): string => `${lines.join("\n")}\n`;
const many = (count: number, from = 0): string => file(...Array.from({ length: count }, (_, at) => event(from + at)));
function delivery(body: string, agoMs = 86_400_000): string {
  const receiverUrl = `https://relay.example.test/hooks/shop/${name}`;
  const draft = { body: Buffer.from(body), contentType: "application/json", receiverUrl, nowMs: Date.now() - agoMs };
  return JSON.stringify({ headers: bindScheme(VERIFY)?.sign(SECRET, draft).headers, body });
}
const clock = systemClock;
const ROADS: [road: string, env: () => Record<string, string>][] = [
  ["the data directory", () => ({})],
  ["a server", () => ({ RELAY_URL: `http://127.0.0.1:${port}`, RELAY_KEY: key })],
];
const run = (env: Record<string, string>, input: string | Uint8Array, ...line: string[]) =>
  runCommand(["import-missed", name, ...line], { cwd: home, env, input, clock });
async function events(): Promise<{ id: string; state: string; cameBy: string | null }[]> {
  const items = [];
  let cursor = "";
  do {
    const page = await api("GET", `/events?relay=${name}&limit=200${cursor}`);
    items.push(...page.items);
    cursor = page.next === null ? "" : `&cursor=${page.next}`;
  } while (cursor !== "");
  return items;
}

/** Writes the events as a provider lists them. */
type WriteList = (bodies: readonly string[]) => string;
const request = (body: string, payload: unknown) => ({ id: 1, event: "paid", request: { headers: JSON.parse(delivery(body)).headers, payload } });
const pretty = (value: unknown): string => JSON.stringify(value, null, 2);
const read = (bodies: readonly string[]) => bodies.map((body) => JSON.parse(body));

const LISTS: readonly [from: string, Record<string, WriteList>][] = [
  [
    "stripe",
    {
      "a list on one line": (bodies) => JSON.stringify({ object: "list", data: read(bodies), has_more: false }),
      "a list on many lines": (bodies) => pretty({ object: "list", data: read(bodies), has_more: false }),
      "several pages, one a line": (bodies) => bodies.map((body) => `${JSON.stringify({ data: read([body]) })}\n`).join(""),
      "a list without its wrapper": (bodies) => pretty(read(bodies)),
      "one event a line": (bodies) => file(...bodies),
    },
  ],
  [
    "github",
    {
      "deliveries, one a line": (bodies) => file(...bodies.map((body) => JSON.stringify(request(body, JSON.parse(body))))),
      "a list of deliveries": (bodies) => pretty(bodies.map((body) => request(body, JSON.parse(body)))),
    },
  ],
  [
    "gitlab",
    {
      "events whose body is a text": (bodies) =>
        pretty(bodies.map((body) => ({ id: 1, request_headers: JSON.parse(delivery(body)).headers, request_data: body }))),
    },
  ],
  ["shopify", { "a list of orders": (bodies) => pretty({ orders: read(bodies) }) }],
  [
    "paddle",
    {
      "a list of notifications": (bodies) => pretty({ data: read(bodies).map((payload) => ({ id: "ntf_1", status: "failed", payload })), meta: {} }),
      "a list of events": (bodies) => pretty({ data: read(bodies), meta: {} }),
    },
  ],
  ["chargebee", { "a list of events": (bodies) => pretty({ list: read(bodies).map((event) => ({ event })) }) }],
];

const UNKNOWN_FORMS: readonly [what: string, input: string, line: string[], code: number, sentence: string][] = [
  [
    "a list in data without --from",
    pretty({ data: [{ n: 1 }] }),
    [],
    1,
    "The file is one JSON document with a list in data, and this command reads one event a line. Add --from paddle or --from stripe, or make lines: jq -c '.data[]' export.json | relay import-missed NAME",
  ],
  ["a list in an unknown place", `{"results":[{"n":1}]}`, [], 1, "Make lines: jq -c '.results[]' export.json | relay import-missed NAME"],
  ["a list without a wrapper", "[{},{}]", [], 1, "jq -c '.[]' export.json | relay import-missed NAME"],
  ["one event on several lines", pretty({ a: 1 }), [], 1, "jq -c '.' export.json | relay import-missed NAME"],
  ["a list of deliveries without payloads", `[{"id":1,"guid":"0b98"}]`, ["--from", "github"], 1, "Item 1 has no event in request.payload"],
  ["text that is no JSON", "one\ntwo\n", ["--from", "stripe"], 1, "The export is not one JSON document, and its line 1 is not JSON"],
  ["an unknown provider", "[]", ["--from", "strip"], 2, "stripe"],
];

for (const [road, env] of ROADS)
  describe(`on ${road}`, () => {
    test("shows the preview, imports with --yes, and finds nothing new the second time", async () => {
      const export1 = file(event(1), event(2, "made"), "garbage", delivery(event(3)), "", event(1));
      const plan = await run(env(), export1, "--dry-run");
      expect([plan.code, plan.told]).toEqual([1, expect.stringContaining("This is only the plan: nothing was imported.")]);
      expect(plan.said).toContain(`${name}: 6 lines of standard input (sha256 `);
      expect(plan.said).toContain("      2  new: 1 with a valid signature, 1 unsigned\n      1  already known\n      1  ignored by when\n");
      expect(plan.said).toContain('line 2: when.event_type must be "paid" and the request has "made"');
      expect(plan.said).toContain("line 3: it is not JSON in UTF-8");
      expect(await events()).toEqual([]);
      const done = await run(env(), export1, "--yes");
      expect([done.code, done.told]).toEqual([1, expect.stringContaining("2 new, 1 already known, 1 ignored, 1 refused.")]);
      expect((await events()).map(({ cameBy }) => cameBy)).toEqual(["import", "import"]);
      const again = await run(env(), file(event(1), delivery(event(3))), "--yes");
      expect([again.code, again.told.split("\n").at(-1)]).toEqual([0, "Nothing to import."]);
      expect(again.said).toContain("      0  new\n      2  already known\n");
    });

    describe.each(LISTS)("--from %s", (from, forms) => {
      test.each(Object.entries(forms))("reads %s", async (_form, write) => {
        const bodies = [1, 2].map((id) => event(id));
        const { code, told, said } = await run(env(), write(bodies), "--from", from, "--yes");
        expect([code, told]).toEqual([0, expect.stringContaining("2 new, 0 already known")]);
        const hasHeaders = write(bodies).includes("eaders");
        expect(said).toContain(hasHeaders ? "2 with a valid signature, 0 unsigned" : "0 with a valid signature, 2 unsigned");
        expect((await events()).length).toBe(2);
        const again = await run(env(), write(bodies), "--from", from, "--yes");
        expect([again.code, again.told.split("\n").at(-1)]).toEqual([0, "Nothing to import."]);
      });
    });

    test.each([
      ["stripe", (events: unknown) => ({ data: events, has_more: true })],
      ["paddle", (events: unknown) => ({ data: events, meta: { pagination: { has_more: true } } })],
      ["chargebee", (events: unknown[]) => ({ list: events.map((event) => ({ event })), next_offset: "[1]" })],
    ] as const)("--from %s says that another page follows, and exits with 1", async (from, write) => {
      const { code, told } = await run(env(), pretty(write(read([event(1)]))), "--from", from, "--yes");
      expect([code, told]).toEqual([1, expect.stringContaining("the provider says that another page follows")]);
      expect((await events()).length).toBe(1);
    });

    test("--from shows and audits the SHA-256 of the file, and not of the lines that it makes", async () => {
      const list = pretty({ data: read([event(1)]), has_more: false });
      const sha256 = new Bun.CryptoHasher("sha256").update(list).digest("hex");
      const plan = await run(env(), list, "--from", "stripe", "--dry-run");
      expect(plan.said).toContain(`(sha256 ${sha256.slice(0, 12)}…)`);
      const done = await run(env(), list, "--from", "stripe", "--yes", "--json");
      expect(JSON.parse(done.said)).toMatchObject({ imported: true, new: 1, sha256 });
      const { items } = await api("GET", `/audit?action=events.imported&target=relay:${name}`);
      expect(items.map(({ after }: { after: { file: string } }) => after.file)).toEqual([`sha256:${sha256}`]);
    });

    test("--from keeps integers that a double cannot hold", async () => {
      const body = `{"id":"${name}-820982911946154567","type":"paid","text":820982911946154567}`;
      expect((await run(env(), `{"orders": [\n ${body}\n]}`, "--from", "shopify", "--yes")).code).toBe(0);
      await untilNoneLeft(async () => (await events()).filter(({ state }) => state !== "done").length);
      const { items } = await api("GET", "/collections/notes/records?limit=50");
      expect(items.map(({ data }: { data: { text: unknown } }) => String(data.text))).toContain("820982911946154567");
    });

    test.each(UNKNOWN_FORMS)("explains %s", async (_what, input, line, code, sentence) => {
      const { code: exit, told } = await run(env(), input, ...line);
      expect([exit, told]).toEqual([code, expect.stringContaining(sentence.replaceAll("NAME", name))]);
      expect(await events()).toEqual([]);
    });

    test("imports nothing from an empty export, and rejects an unknown relay even then", async () => {
      for (const empty of ["", "\n \n"]) {
        const none = await run(env(), empty, "--yes");
        expect([none.code, none.told.split("\n").at(-1)]).toEqual([0, "Nothing to import."]);
        const unknown = await runCommand(["import-missed", "nope"], { cwd: home, env: env(), input: empty, clock });
        expect([unknown.code, unknown.told]).toEqual([1, expect.stringContaining('There is no relay "nope"')]);
      }
    });

    test("imports nothing without a terminal or --yes", async () => {
      const asked = await run(env(), event(1));
      expect([asked.code, asked.told]).toEqual([1, expect.stringContaining("Add --yes to import without a question.\nnot_confirmed")]);
      expect(await events()).toEqual([]);
      const no = await runCommand(["import-missed", name], { cwd: home, env: env(), input: event(1), clock, confirmAside: async () => false });
      expect([no.code, (await events()).length]).toEqual([1, 0]);
      const questions: string[] = [];
      const yes = await runCommand(["import-missed", name], {
        cwd: home,
        env: env(),
        input: event(1),
        clock,
        confirmAside: async (question) => questions.push(question) > 0,
      });
      expect([yes.code, questions]).toEqual([0, ["Import 1 event? Each runs as if it arrived now."]]);
      expect((await events()).length).toBe(1);
    });

    test("prints the preview and the result as one object with --json", async () => {
      const { code, said } = await run(env(), file(event(1), "garbage"), "--yes", "--json");
      const { told, sha256, ...counts } = JSON.parse(said);
      expect(counts).toEqual({
        relay: name,
        version: 1,
        imported: true,
        lines: 2,
        new: 1,
        known: 0,
        ignored: 0,
        refused: 1,
        verified: 0,
        unsigned: 1,
      });
      expect([code, sha256.length, told[0].line, told[0].code]).toEqual([1, 64, 2, "invalid_json"]);
    });

    test("imports a file of several batches, and reports a line that is too long", async () => {
      const { code, said } = await run(env(), `${many(1_500)}${"x".repeat(2 ** 20)}\n${many(900, 1_500)}`, "--yes");
      expect([code, (await events()).length]).toEqual([1, 2_400]);
      expect(said).toContain("line 1501: the line is too long to send.  body_too_large");
      const again = await run(env(), many(2_400), "--yes");
      expect(`${again.said}${again.told}`).toContain("   2400  already known");
    });

    test("reads a file by name, and rejects a missing file and an unknown relay", async () => {
      writeFileSync(join(home, "export.jsonl"), Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(event(1)), Buffer.from("\r\n")]));
      expect((await run(env(), "", "export.jsonl", "--yes")).code).toBe(0);
      expect((await run(env(), "", "nowhere.jsonl", "--yes")).told).toContain("file_unusable");
      expect((await runCommand(["import-missed", "nobody"], { cwd: home, env: env(), input: event(1), clock })).told).toContain("not_found");
    });
  });

/** Counts the new events of all imports in the audit. */
async function countImported(): Promise<number> {
  let [counted, cursor] = [0, ""];
  do {
    const { items, next } = await api("GET", `/audit?action=events.imported&target=relay:${name}&limit=200${cursor}`);
    for (const { after } of items as { after: { new: number } }[]) counted += after.new;
    cursor = next === null ? "" : `&cursor=${encodeURIComponent(next)}`;
  } while (cursor !== "");
  return counted;
}

const KILLS = rounds({ slice: 1, soak: 2, long: 4 });
/** Exceeds what a fast machine imports before the test reads the progress. */
const LINES = rounds({ slice: 4_000, soak: 15_000 });

describe("processes", () => {
  for (const [road, env] of ROADS)
    test(`the command, killed during its import on ${road}: the same file imports the rest and duplicates nothing`, async () => {
      const path = join(home, `${name}.jsonl`);
      let lines = 0;
      let entered = 0;
      do {
        // If every line was imported before the check, the kill proved nothing, so the next round uses more lines.
        lines += LINES;
        writeFileSync(path, many(lines));
        for (let round = 0; round < KILLS; round++) {
          const command = startCli(["import-missed", name, path, "--yes"], { cwd: home, env: env() });
          const before = entered;
          for (; entered < before + 300 && entered < lines; entered = (await events()).length) await Bun.sleep(5);
          command.kill("SIGKILL");
          await command.exited;
        }
        entered = (await events()).length;
      } while (entered === lines);
      await using last = startCli(["import-missed", name, path, "--yes"], { cwd: home, env: env() });
      expect(await last.exited).toBe(0);
      const all = await events();
      expect([all.length, new Set(all.map(({ id }) => id)).size]).toEqual([lines, lines]);
      const again = await runCommand(["import-missed", name, path, "--yes"], { cwd: home, env: env(), clock });
      expect(`${again.said}${again.told}`).toContain(`${String(lines).padStart(7)}  already known`);
      expect(await countImported()).toBe(lines);
    });

  test("the server, killed during an import: the command reports the progress, and the rest can follow", async () => {
    const path = join(home, `${name}.jsonl`);
    writeFileSync(path, many(6_000));
    const env = { RELAY_URL: `http://127.0.0.1:${port}`, RELAY_KEY: key };
    const command = startCli(["import-missed", name, path, "--yes"], { cwd: home, env });
    while ((await events()).length < 700) await Bun.sleep(5);
    server.kill("SIGKILL");
    expect(await command.exited).toBe(1);
    expect(command.lines().join("\n")).toContain("Import the same file again: Relay skips the events that it already has.");
    await startServer();
    await using again = startCli(["import-missed", name, path, "--yes"], { cwd: home, env });
    expect(await again.exited).toBe(0);
    expect((await events()).length).toBe(6_000);
    await untilNoneLeft(async () => (await events()).filter(({ state }) => state !== "done").length);
    const { items } = await api("GET", "/collections/notes/records?limit=1");
    expect(items.length).toBe(1);
    const notes = new Set<string>();
    let cursor = "";
    let count = 0;
    do {
      const page = await api("GET", `/collections/notes/records?limit=200${cursor}`);
      for (const { data } of page.items) {
        if (!data.text.startsWith(`${name} `)) continue;
        notes.add(data.text);
        count += 1;
      }
      cursor = page.next === null ? "" : `&cursor=${page.next}`;
    } while (cursor !== "");
    expect([notes.size, count]).toEqual([6_000, 6_000]);
  });
});
