/**
 * Tests that local development has one source of truth. The API writes files and edited files change the database, also if the process is killed
 * between the two.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { poll } from "../kit/patience.ts";

// biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
type Any = any;

let home: string;
let dev: CliProcess;
let port: string;
let key: string;
let secret = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "relay-truth-"));
  key = "";
});
afterEach(async () => {
  await dev[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const at = (...path: string[]): string => join(home, "service", ...path);
const file = (name: string): string => at("relays", `${name}.json`);
const text = (name: string): string => readFileSync(file(name), "utf8");
const json = (path: string): Any => JSON.parse(readFileSync(path, "utf8"));

async function start(): Promise<void> {
  dev = startCli(["dev", "--port", "0"], { cwd: home });
  port = /127\.0\.0\.1:(\d+)/.exec(await dev.line("Dashboard"))?.[1] ?? "";
  if (key !== "") return;
  const made = await runCommand(["keys", "create"], { cwd: home });
  key = /relay_(?:dev|live)_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
}
async function begin(...definitions: { name: string }[]): Promise<void> {
  mkdirSync(at("relays"), { recursive: true });
  for (const one of definitions) writeFileSync(file(one.name), JSON.stringify(one, null, 2));
  writeFileSync(at("catalog.json"), JSON.stringify(NOTES, null, 2));
  await start();
}
async function call(method: string, path: string, body?: unknown): Promise<{ status: number; json: Any }> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const url = `http://127.0.0.1:${port}/api/apps/local/local${path}`;
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status: response.status, json: response.status === 204 ? null : await response.json() };
}
const stands = async (name: string) => (await call("GET", `/relays/${name}`)).json?.relay;
async function save(definition: { name: string }) {
  const { version } = await stands(definition.name);
  return await call("PUT", `/relays/${definition.name}`, { definition, version });
}
const problems = async (): Promise<string[]> => (await call("GET", "/problems")).json.items.map(({ code }: Any) => code);
async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  if (!(await poll(holds, Boolean, 50))) throw new Error(`It never came. It said:\n${dev.lines().join("\n")}`);
}
const relay = (name: string, value = "x") => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "notes", data: { text: value } }],
});
const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };

describe("a save over HTTP", () => {
  test("writes an edited or new relay's file with its own indentation, a deletion removes it, and the watcher ignores these writes", async () => {
    await begin(relay("one"));
    const own = JSON.stringify(relay("one"), null, "\t").replace('"notes"', '  "notes"');
    writeFileSync(file("one"), own);
    const edited = await save(relay("one", "by hand"));
    expect([edited.status, edited.json.file, edited.json.warnings.map(({ code }: Any) => code)]).toEqual([200, "service/relays/one.json", []]);
    expect(text("one")).toBe(own.replace('"x"', '"by hand"'));
    const made = await call("POST", "/relays", { definition: relay("two") });
    expect([made.status, made.json.file, json(file("two"))]).toEqual([201, "service/relays/two.json", relay("two")]);
    await Bun.sleep(2_500);
    expect([(await stands("one")).version, (await stands("two")).version]).toEqual([edited.json.relay.version, 1]);
    expect(dev.lines().filter((line) => /from service\/relays/.test(line))).toEqual(["relay one: created from service/relays/one.json"]);
    const gone = await call("DELETE", "/relays/two");
    expect([gone.status, gone.json, existsSync(file("two"))]).toEqual([204, null, false]);
    expect(readdirSync(at("relays"))).toEqual(["one.json"]);
  });

  test("of the catalog writes catalog.json item by item, like a command next to the service", async () => {
    await begin(relay("one"));
    const made = await call("PUT", "/products/book", { credits: 5 });
    expect([made.status, made.json.file]).toEqual([200, "service/catalog.json"]);
    await call("PUT", "/access/beta", {});
    await call("PUT", "/plans/free", { default: true });
    await call("POST", "/collections", { name: "more", kind: "shared", fields: {} });
    const fields = { text: { type: "text" }, kept: { type: "number" } };
    await call("PUT", "/collections/notes", { kind: "shared", fields });
    const all = {
      collections: { notes: { kind: "shared", fields }, more: { kind: "shared", fields: {} } },
      products: { book: { credits: 5 } },
      access: { beta: {} },
      plans: { free: { default: true } },
    };
    expect(json(at("catalog.json"))).toEqual(all);
    expect((await call("DELETE", "/products/book")).json.warnings).toEqual([]);
    expect(json(at("catalog.json")).products).toEqual({});
    const set = await runCommand(["catalog", "set", "product", "pen", '{"credits":2}'], { cwd: home });
    expect(set.code).toBe(0);
    await until(() => json(at("catalog.json")).products.pen?.credits === 2);
    // A deletion from the file does not delete the item, and the item is not written back.
    writeFileSync(at("catalog.json"), JSON.stringify({ ...all, products: {} }, null, 2));
    await call("PUT", "/access/gamma", {});
    expect([json(at("catalog.json")).products, json(at("catalog.json")).access]).toEqual([{}, { beta: {}, gamma: {} }]);
  });

  test("after an edit of the file is version_conflict if stale, and neither side changes", async () => {
    await begin(relay("one"));
    const { version } = await stands("one");
    writeFileSync(file("one"), JSON.stringify(relay("one", "in the file")));
    const late = await call("PUT", "/relays/one", { definition: relay("one", "by hand"), version });
    expect([late.status, late.json.code, late.json.version]).toEqual([409, "version_conflict", version + 1]);
    expect([json(file("one")), (await stands("one")).definition]).toEqual([relay("one", "in the file"), relay("one", "in the file")]);
  });

  test.each([
    ["a half-written relay file", () => writeFileSync(file("one"), '{ "name": "one", '), () => save(relay("one", "by hand"))],
    ["a broken file of a new relay", () => writeFileSync(file("two"), "{"), () => call("POST", "/relays", { definition: relay("two") })],
    ["a half-written catalog", () => writeFileSync(at("catalog.json"), "{"), () => call("PUT", "/products/book", {})],
    ["a half-written relay file during a deletion", () => writeFileSync(file("one"), "{"), () => call("DELETE", "/relays/one")],
  ])("never overwrites %s: version_conflict with the file's content, and nothing is saved", async (_what, breaks, saves) => {
    await begin(relay("one"));
    const before = [(await stands("one")).version, (await stands("two")) === undefined];
    breaks();
    const files = () => [...readdirSync(at("relays")).map((name) => text(name.slice(0, -5))), readFileSync(at("catalog.json"), "utf8")];
    const held = files();
    const refused = await saves();
    expect([refused.status, refused.json.code]).toEqual([409, "version_conflict"]);
    expect(refused.json.file).toMatch(/^service\/(relays\/(one|two)|catalog)\.json$/);
    expect(held).toContain(refused.json.written);
    expect(files()).toEqual(held);
    expect([(await stands("one")).version, (await stands("two")) === undefined]).toEqual(before);
  });

  test("returns a warning and raises a problem if the file cannot be written, and writes it as soon as possible", async () => {
    await begin(relay("one"));
    const aside = join(home, "aside");
    renameSync(at(), aside);
    const edited = await save(relay("one", "by hand"));
    const made = await call("PUT", "/products/book", {});
    for (const { status, json } of [edited, made]) {
      expect([status, json.warnings.map(({ code }: Any) => code), json.file]).toEqual([200, ["file_not_written"], undefined]);
      expect(json.warnings[0].message).toContain("folder is away");
    }
    expect(existsSync(at())).toBe(false);
    expect(await problems()).toContain("file_behind");
    renameSync(aside, at());
    await until(() => json(file("one")).actions[0].data.text === "by hand" && json(at("catalog.json")).products !== undefined);
    await until(async () => (await problems()).length === 0);
  });

  test("does the same if a file blocks the folder's path", async () => {
    await begin(relay("one"));
    const aside = join(home, "aside");
    renameSync(at("relays"), aside);
    writeFileSync(at("relays"), "in the way");
    const edited = await save(relay("one", "by hand"));
    expect([edited.status, edited.json.warnings[0]?.code]).toEqual([200, "file_not_written"]);
    expect((await stands("one")).definition).toEqual(relay("one", "by hand"));
    rmSync(at("relays"));
    renameSync(aside, at("relays"));
    await until(() => json(file("one")).actions[0].data.text === "by hand");
  });
});

describe("a service that is killed", () => {
  /** Saves without the file's write, like a kill between the commit and the write. */
  async function saveUnwritten(work: () => Promise<unknown>): Promise<void> {
    const held = [
      ...readdirSync(at("relays")).map((name) => [file(name.slice(0, -5)), text(name.slice(0, -5))]),
      [at("catalog.json"), readFileSync(at("catalog.json"), "utf8")],
    ];
    await work();
    dev.kill("SIGKILL");
    await dev.exited;
    rmSync(at("relays"), { recursive: true });
    mkdirSync(at("relays"));
    for (const [path, text] of held as [string, string][]) {
      writeFileSync(path, text);
      utimesSync(path, 1, 1);
    }
  }

  test("between the commit and the file write writes the file at its next start, and says so", async () => {
    await begin(relay("one"), relay("gone"));
    // Moves the folder away, so that the stored state matches a kill.
    const aside = join(home, "aside");
    renameSync(at(), aside);
    await save(relay("one", "by hand"));
    await call("POST", "/relays", { definition: relay("made") });
    await call("DELETE", "/relays/gone");
    await call("PUT", "/products/book", {});
    dev.kill("SIGKILL");
    await dev.exited;
    renameSync(aside, at());
    await start();
    expect(json(file("one"))).toEqual(relay("one", "by hand"));
    expect(json(file("made"))).toEqual(relay("made"));
    expect(existsSync(file("gone"))).toBe(false);
    expect(json(at("catalog.json"))).toEqual({ ...NOTES, products: { book: {} } });
    for (const said of [
      "relay one: edited in the dashboard, and written",
      "relay made: made in the dashboard",
      "relay gone: deleted in the dashboard",
      "product book: written to",
    ])
      expect(await dev.line(said)).toContain(said);
    expect(await stands("gone")).toBeUndefined();
  });

  test("between the file write and its commit finds both sides equal", async () => {
    await begin(relay("one"));
    await saveUnwritten(async () => undefined);
    writeFileSync(file("one"), JSON.stringify(relay("one", "by file")));
    await start();
    expect((await stands("one")).definition).toEqual(relay("one", "by file"));
    expect(json(file("one"))).toEqual(relay("one", "by file"));
  });

  test.each([
    ["the file is newer", 4_000_000_000, "by file"],
    ["the dashboard is newer", 1, "by hand"],
  ])("after both sides changed selects one side and stores the other: %s", async (_when, mtime, wins) => {
    await begin(relay("one"));
    const aside = join(home, "aside");
    renameSync(at(), aside);
    await save(relay("one", "by hand"));
    dev.kill("SIGKILL");
    await dev.exited;
    renameSync(aside, at());
    writeFileSync(file("one"), JSON.stringify(relay("one", "by file")));
    utimesSync(file("one"), mtime, mtime);
    await start();
    expect((await stands("one")).definition).toEqual(relay("one", wins));
    expect(json(file("one"))).toEqual(relay("one", wins));
    const kept = readdirSync(at("relays")).filter((name) => name.endsWith(".orig"));
    expect(kept).toHaveLength(wins === "by hand" ? 1 : 0);
    expect(await dev.line(wins === "by hand" ? "was edited too" : "is newer than the dashboard's edit")).toMatch(
      wins === "by hand" ? /was edited too.*kept in service\/relays\/one\.json\..*\.orig/ : /is newer than the dashboard's edit.*audit/,
    );
    for (const name of kept) expect(json(at("relays", name))).toEqual(relay("one", "by file"));
  });

  test("at any moment of a save ends with both sides equal", async () => {
    await begin(relay("one"));
    for (let round = 0; round < 8; round++) {
      const saving = save(relay("one", `round ${round}`)).catch(() => null);
      await Bun.sleep(round * 3);
      dev.kill("SIGKILL");
      await dev.exited;
      await saving;
      await start();
      expect((await stands("one")).definition).toEqual(json(file("one")));
      expect(readdirSync(at("relays")).filter((name) => !name.endsWith(".part"))).toEqual(["one.json"]);
    }
  });
});

describe("a folder that git changes", () => {
  const git = (...line: string[]) => {
    const done = Bun.spawnSync(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "core.hooksPath=/dev/null", ...line], {
      cwd: home,
    });
    if (done.exitCode !== 0) throw new Error(done.stderr.toString());
  };
  const send = async (id: string): Promise<number> => {
    const [body, timestamp] = [JSON.stringify({ id }), String(Math.floor(Date.now() / 1000))];
    const hmac = createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64")).update(`${id}.${timestamp}.${body}`);
    const headers = { "hooks-id": id, "hooks-timestamp": timestamp, "hooks-signature": `v1,${hmac.digest("base64")}` };
    return (await fetch(`http://127.0.0.1:${port}/hooks/local/one`, { method: "POST", headers, body })).status;
  };

  test("deletes nothing during stash, switch and mv while events arrive, and each relay keeps its secret, version and events", async () => {
    await begin(relay("base"));
    writeFileSync(join(home, ".gitignore"), ".relay/\n");
    git("init", "-q", "-b", "main");
    git("add", "-A");
    git("commit", "-qm", "base");
    git("switch", "-qc", "feature");
    writeFileSync(file("one"), JSON.stringify(relay("one"), null, 2));
    await until(async () => (await stands("one")) !== undefined);
    await until(() => existsSync(at(".secrets.json")) && readFileSync(at(".secrets.json"), "utf8").includes('"one"'));
    const secrets = readFileSync(at(".secrets.json"), "utf8");
    secret = JSON.parse(secrets).one.receiverSecret;
    const before = await stands("one");
    await call("POST", "/relays/one/pause");
    let sent = 0;
    const turns = [
      () => git("stash", "-uq"),
      () => git("stash", "pop", "-q"),
      () => {
        git("add", "-A");
        git("commit", "-qm", "one");
        git("switch", "-q", "main");
      },
      () => git("switch", "-q", "feature"),
      () => renameSync(at("relays"), at("aside")),
      () => renameSync(at("aside"), at("relays")),
      () => renameSync(at(), join(home, "away")),
      () => renameSync(join(home, "away"), at()),
    ];
    for (let round = 0; round < 2; round++)
      for (const turn of round === 0 ? turns : turns.slice(4)) {
        turn();
        for (let at = 0; at < 4; at++) {
          expect(await send(`event${sent}`)).toBe(200);
          sent += 1;
          await Bun.sleep(100);
        }
      }
    const after = await stands("one");
    expect([after.id, after.version, after.secret]).toEqual([before.id, before.version, before.secret]);
    expect(readFileSync(at(".secrets.json"), "utf8")).toBe(secrets);
    await call("POST", "/relays/one/resume");
    await until(async () => (await call("GET", "/events?relay=one&state=done&limit=200")).json.items.length === sent);
    expect(dev.lines().filter((line) => /deleted/.test(line) && !/unless it comes back/.test(line))).toEqual([]);
  });

  test("changes only the written text if an editor saves by delete and rename", async () => {
    await begin(relay("one"));
    const { id } = await stands("one");
    for (let round = 0; round < 20; round++) {
      writeFileSync(`${file("one")}.tmp`, JSON.stringify(relay("one", `round ${round}`)));
      rmSync(file("one"));
      await Bun.sleep(round * 10);
      renameSync(`${file("one")}.tmp`, file("one"));
    }
    await until(async () => (await stands("one")).definition.actions[0].data.text === "round 19");
    expect((await stands("one")).id).toBe(id);
  });
});

describe("a selling kit that is saved", () => {
  test("is written to a file for each relay and to the catalog", async () => {
    await begin();
    const { status, json: saved } = await call("POST", "/kits/stripe", {});
    expect([status, saved.file, saved.warnings]).toEqual([201, "service/catalog.json", []]);
    for (const name of saved.relays) expect(json(file(name)).name).toBe(name);
    expect(Object.keys(json(at("catalog.json")).products)).toContain("course");
  });

  test("is refused while a file of one of its relays has an error, and the file stays", async () => {
    await begin();
    writeFileSync(file("stripe-purchase"), '{ "name": "stripe-purchase", ');
    const { status, json: refused } = await call("POST", "/kits/stripe", {});
    expect([status, refused.code]).toEqual([409, "version_conflict"]);
    expect(refused.message).toContain("service/relays/stripe-purchase.json was changed and is not in force");
    expect(text("stripe-purchase")).toBe('{ "name": "stripe-purchase", ');
    expect((await call("GET", "/relays")).json.items).toEqual([]);
  });
});
