/** Tests `relay pull` with two real processes: a folder on a laptop, and a server whose dashboard is used too. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";

let home: string;
let laptop: string;
let server: CliProcess;
let port: string;
let app: string;
let key: string;
let apps = 0;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-server-"));
  server = startCli(["serve", "--port", "0"], { cwd: home });
  port = /127\.0\.0\.1:(\d+)/.exec(await server.line("127.0.0.1:"))?.[1] ?? "";
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

async function makeKey(environment: string): Promise<string> {
  const made = await runCommand(["keys", "create", "--app", app, "--environment", environment], { cwd: home });
  return /relay_(?:dev|live)_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
}

/** Gives each test a separate app. */
beforeEach(async () => {
  apps += 1;
  app = `shop${apps}`;
  laptop = mkdtempSync(join(tmpdir(), "relay-laptop-"));
  mkdirSync(join(laptop, "service", "relays"), { recursive: true });
  expect((await runCommand(["apps", "create", "Shop", "--id", app], { cwd: home })).code).toBe(0);
  key = await makeKey("development");
});

// biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
type Any = any;
const receiver = (name: string, text = "x", more: object = {}) => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" }, ...more },
  actions: [{ type: "write_record", collection: "notes", data: { text } }],
});
const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };

const at = (...path: string[]): string => join(laptop, "service", ...path);
const file = (name: string): string => at("relays", `${name}.json`);
const text = (name: string): string => readFileSync(file(name), "utf8");
const json = (path: string): Any => JSON.parse(readFileSync(path, "utf8"));
const write = (...definitions: { name: string }[]): void => {
  for (const one of definitions) writeFileSync(file(one.name), JSON.stringify(one, null, 2));
};
const catalog = (value: object = NOTES): void => writeFileSync(at("catalog.json"), JSON.stringify(value, null, 2));
const given = (more: object = {}) => ({
  cwd: laptop,
  env: { RELAY_KEY: key, RELAY_URL: `http://127.0.0.1:${port}`, RELAY_SERVICE_DIR: at() },
  ...more,
});
const relay = (...line: string[]) => runCommand(line, given());
const pull = (...line: string[]) => relay("pull", ...line);
async function api(method: string, path: string, body?: unknown, environment = "development"): Promise<Any> {
  const url = `http://127.0.0.1:${port}/api/apps/${app}/${environment}${path}`;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  expect(response.status).toBeLessThan(300);
  return response.status === 204 ? null : await response.json();
}
const edit = async (definition: { name: string }) => {
  const { relay } = await api("GET", `/relays/${definition.name}`);
  await api("PUT", `/relays/${definition.name}`, { definition, version: relay.version });
};
const states = async (...line: string[]) => {
  const { said } = await pull("--dry-run", "--json", ...line);
  return JSON.parse(said).entries.map(({ kind, name, state }: Any) => `${state} ${kind}:${name}`);
};

describe("relay pull", () => {
  test("restores an empty folder on a laptop: it validates, a sync plans no changes, and no secret is pulled", async () => {
    const catalogue = {
      collections: { notes: { kind: "shared", fields: { text: { type: "text" }, kept: { type: "number", required: true } } } },
      access: { beta: { title: "Beta" } },
      products: { book: { credits: 5, soldThrough: { kind: "relay", relay: "sells" } }, pen: {} },
      plans: { free: { default: true }, pro: { title: "Pro" } },
    };
    await api("POST", "/collections", { name: "notes", ...catalogue.collections.notes });
    await api("PUT", "/access/beta", { title: "Beta" });
    const sells = {
      ...receiver("sells", "x", { map: { event_id: "id", person_id: "who" } }),
      actions: [{ type: "call_url", url: "https://example.com/x" }],
    };
    const made = await api("POST", "/relays", { definition: sells });
    await api("PUT", "/products/book", catalogue.products.book);
    await api("PUT", "/products/pen", {});
    await api("PUT", "/plans/free", { default: true });
    await api("PUT", "/plans/pro", { title: "Pro" });
    rmSync(at(), { recursive: true });
    const pulled = await pull();
    expect([pulled.code, pulled.told]).toEqual([0, `7 items written to ${at()}.`]);
    expect(json(file("sells"))).toEqual(sells);
    expect(Object.keys(json(file("sells")))).toEqual(["name", "trigger", "actions"]);
    expect(json(at("catalog.json"))).toEqual(catalogue);
    const valid = await relay("validate", "--strict");
    expect([valid.code, valid.told]).toEqual([0, "2 files checked, no problems, no warnings."]);
    const synced = await relay("sync");
    expect([synced.code, synced.told]).toEqual([0, "Nothing to do."]);
    const again = await pull();
    expect([again.code, again.told]).toEqual([0, "Nothing to do."]);
    const all = readdirSync(at(), { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    for (const one of all) {
      const held = readFileSync(join(one.parentPath, one.name), "utf8");
      for (const secret of [made.receiverSecret, made.signingSecret, key]) expect(held).not.toContain(secret);
    }
    expect(readFileSync(at(".gitignore"), "utf8")).toContain(".synced.json");
  });

  test("previews created, changed, unchanged, conflicting, local and deleted files with a diff, and --dry-run writes nothing", async () => {
    write(receiver("one"), receiver("two"), receiver("three"), receiver("gone"), receiver("here"));
    catalog();
    expect((await relay("sync")).code).toBe(0);
    await edit(receiver("two", "theirs"));
    await edit(receiver("three", "theirs"));
    await api("POST", "/relays", { definition: receiver("new") });
    await api("DELETE", "/relays/gone");
    write(receiver("three", "mine"), receiver("here", "mine"), receiver("fresh"));
    const before = readdirSync(at("relays")).map((name) => text(name.slice(0, -5)));
    expect((await states()).sort()).toEqual(
      [
        "created relay:new",
        "changed relay:two",
        "unchanged relay:one",
        "unchanged collection:notes",
        "changed_both relay:three",
        "changed_here relay:here",
        "only_here relay:fresh",
        "deleted_there relay:gone",
      ].sort(),
    );
    const dry = await pull("--dry-run");
    expect(dry.code).toBe(3);
    expect(dry.said).toContain(
      '~ relay two  changed on the server  service/relays/two.json\n    - actions.0.data.text: "x"\n    + actions.0.data.text: "theirs"',
    );
    expect(dry.said).toContain('    actions.0.data.text\n      was     "x"\n      file    "mine"\n      server  "theirs"');
    expect(readdirSync(at("relays")).map((name) => text(name.slice(0, -5)))).toEqual(before);
    const done = await pull();
    expect(done.code).toBe(3);
    expect([json(file("two")), json(file("new"))]).toEqual([receiver("two", "theirs"), receiver("new")]);
    expect([json(file("three")), json(file("here")), existsSync(file("gone"))]).toEqual([receiver("three", "mine"), receiver("here", "mine"), true]);
    expect(done.told).toContain("--theirs");
    // A pulled file is no edit that a sync asks about, and a skipped file still is.
    const plan = JSON.parse((await relay("sync", "--dry-run", "--json")).said).entries;
    expect(plan.map(({ name, state }: Any) => `${state} ${name}`)).toEqual([
      "created fresh",
      "behind gone",
      "changed here",
      "unchanged new",
      "unchanged one",
      "conflict three",
      "unchanged two",
      "unchanged notes",
    ]);
  });

  test("resolves a conflict as told, for the server's version or the local one", async () => {
    write(receiver("one"));
    catalog();
    await relay("sync");
    await edit(receiver("one", "theirs"));
    write(receiver("one", "mine"));
    expect((await pull()).code).toBe(3);
    expect(json(file("one"))).toEqual(receiver("one", "mine"));
    expect((await pull("--ours")).code).toBe(0);
    expect(json(file("one"))).toEqual(receiver("one", "mine"));
    expect(await states()).toContain("changed_here relay:one");
    const synced = await relay("sync");
    expect([synced.code, (await api("GET", "/relays/one")).relay.definition]).toEqual([0, receiver("one", "mine")]);
    await edit(receiver("one", "theirs again"));
    write(receiver("one", "mine again"));
    expect((await pull("--theirs")).code).toBe(0);
    expect(json(file("one"))).toEqual(receiver("one", "theirs again"));
    expect((await relay("sync")).told).toBe("Nothing to do.");
  });

  test("keeps a file's indentation, order and spacing, and the items that only the catalog file has", async () => {
    const own =
      '{\n\t"name": "one",\n\t"actions": [ { "type": "write_record", "collection": "notes", "data": {"text": "x"} } ],\n\n\t"trigger": {"kind": "receiver", "verify": { "scheme": "hooks" }, "map": {"event_id":"id"}}\n}\n';
    writeFileSync(file("one"), own);
    const cat =
      '{ "products": { "pen": {}, "book": {"credits": 5} },\n  "collections": {"notes": {"fields": {"text": {"type": "text", "required": false}}, "kind": "shared"}} }';
    writeFileSync(at("catalog.json"), cat);
    await relay("sync");
    await edit(JSON.parse(own.replace('"x"', '"y"')));
    await api("PUT", "/products/book", { credits: 6 });
    await api("POST", "/collections", { name: "more", kind: "shared", fields: {} });
    expect((await pull()).code).toBe(0);
    expect(text("one")).toBe(own.replace('"x"', '"y"'));
    expect(readFileSync(at("catalog.json"), "utf8")).toBe(
      cat.replace("5}", "6}").replace('"kind": "shared"}}', '"kind": "shared"}, "more": { "kind": "shared", "fields": {} }}'),
    );
  });

  test("deletes files of deleted items only with --prune, and never one with local changes", async () => {
    write(receiver("one"), receiver("two"));
    catalog({ ...NOTES, access: { beta: {}, gamma: {} } });
    await relay("sync");
    for (const path of ["/relays/one", "/relays/two", "/access/beta"]) await api("DELETE", path);
    write(receiver("two", "mine"));
    const kept = await pull();
    expect([kept.code, existsSync(file("one")), existsSync(file("two"))]).toEqual([3, true, true]);
    expect(kept.said).toContain("- relay one  gone on the server, deleted only with --prune");
    expect(await pull("--prune")).toMatchObject({ code: 3 });
    expect([existsSync(file("one")), existsSync(file("two"))]).toEqual([false, true]);
    expect(json(at("catalog.json"))).toEqual({ ...NOTES, access: { gamma: {} } });
    expect((await pull("--prune", "--theirs")).code).toBe(0);
    expect(existsSync(file("two"))).toBe(false);
  });

  test("leaves a locally deleted file deleted, unless told otherwise", async () => {
    write(receiver("one"), receiver("two"));
    catalog();
    await relay("sync");
    rmSync(file("one"));
    expect(await states()).toContain("deleted_here relay:one");
    expect((await pull()).told).toBe("Nothing to do.");
    expect(existsSync(file("one"))).toBe(false);
    await pull("one", "--theirs");
    expect(json(file("one"))).toEqual(receiver("one"));
  });

  test("never overwrites unknown files: a clone without sync state, a file with invalid JSON", async () => {
    write(receiver("one"), receiver("two"), receiver("three"));
    catalog();
    await relay("sync");
    rmSync(at(".synced.json"));
    await edit(receiver("one", "theirs"));
    await edit(receiver("two", "theirs"));
    await edit(receiver("three", "theirs"));
    write(receiver("two", "mine"));
    writeFileSync(file("three"), "{ half");
    // The server stores the state of the last sync.
    expect((await states()).sort()).toEqual([
      "changed relay:one",
      "changed_both relay:three",
      "changed_both relay:two",
      "unchanged collection:notes",
    ]);
    await pull();
    expect([json(file("one")), json(file("two")), text("three")]).toEqual([receiver("one", "theirs"), receiver("two", "mine"), "{ half"]);
    await pull("three", "--theirs");
    expect([json(file("three")), json(file("two"))]).toEqual([receiver("three", "theirs"), receiver("two", "mine")]);
    writeFileSync(at("catalog.json"), "{ half");
    const refused = await pull("--theirs");
    expect([refused.code, readFileSync(at("catalog.json"), "utf8")]).toEqual([1, "{ half"]);
    expect(refused.told).toContain("catalog.json");
  });

  test("does not overwrite a change made during its question, and asks before it writes", async () => {
    write(receiver("one"), receiver("two"));
    catalog();
    await relay("sync");
    await edit(receiver("one", "theirs"));
    await edit(receiver("two", "theirs"));
    const asks = (answer: boolean, meanwhile = () => {}) =>
      runCommand(["pull"], given({ interactive: true, confirm: () => Promise.resolve(meanwhile()).then(() => answer) }));
    const no = await asks(false);
    expect([no.code, no.told, json(file("one"))]).toEqual([1, "Nothing was written.", receiver("one")]);
    const raced = await asks(true, () => write(receiver("one", "typed meanwhile")));
    expect(raced.code).toBe(1);
    expect(raced.told).toContain("changed while it was to be written");
    expect([json(file("one")), json(file("two"))]).toEqual([receiver("one", "typed meanwhile"), receiver("two", "theirs")]);
  });

  test("writes through no link", async () => {
    write(receiver("one"));
    catalog();
    await relay("sync");
    await edit(receiver("one", "theirs"));
    const outside = join(laptop, "outside.json");
    writeFileSync(outside, text("one"));
    rmSync(file("one"));
    symlinkSync(outside, file("one"));
    const refused = await pull();
    expect([refused.code, JSON.parse(readFileSync(outside, "utf8"))]).toEqual([1, receiver("one")]);
    expect(refused.told).toContain("link");
  });

  test("reads production too, and changes nothing there", async () => {
    const production = await makeKey("production");
    key = production;
    await api("POST", "/relays", { definition: receiver("live") }, "production");
    const pulled = await pull();
    expect([pulled.code, json(file("live"))]).toEqual([0, receiver("live")]);
  });

  test.each([
    ["../../escape", "relay"],
    ["/etc/passwd", "relay"],
    ["..", "product"],
    ["Upper", "relay"],
    ["__proto__", "access"],
    ["fine", "../kind"],
  ])("rejects an invalid name (%s) from a malicious server", async (name, kind) => {
    const liar = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) =>
        Response.json(
          url.includes("/api/key")
            ? { app: "shop", environment: "development", name: "x", id: "x" }
            : { items: [{ kind, name, content: { name }, mark: "x", brought: null, changed: null }], next: null },
        ),
    });
    const before = readdirSync(laptop, { recursive: true });
    const refused = await runCommand(["pull", "--yes"], given({ env: { RELAY_KEY: "relay_dev_x", RELAY_URL: `http://127.0.0.1:${liar.port}` } }));
    await liar.stop(true);
    expect([refused.code, readdirSync(laptop, { recursive: true })]).toEqual([1, before]);
    expect(refused.told).toContain("invalid_input");
  });

  test.each([
    ["both sides at once", ["--theirs", "--ours"], 2],
    ["an unknown item", ["nowhere"], 1],
  ])("with %s prints an error", async (_name, line, code) => {
    expect((await pull(...line)).code).toBe(code);
  });
});
