/** Tests `relay sync` with two real processes: a folder on a laptop, and a server with the development environment. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
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

/** Gives each test a separate app. */
beforeEach(async () => {
  apps += 1;
  app = `shop${apps}`;
  laptop = mkdtempSync(join(tmpdir(), "relay-laptop-"));
  mkdirSync(join(laptop, "service", "relays"), { recursive: true });
  expect((await runCommand(["apps", "create", "Shop", "--id", app], { cwd: home })).code).toBe(0);
  const made = await runCommand(["keys", "create", "--app", app, "--environment", "development"], { cwd: home });
  key = /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
});

const receiver = (name: string, text = "x") => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "notes", data: { text } }],
});
const schedule = (name: string) => ({ ...receiver(name), trigger: { kind: "schedule", every: "1d" } });
const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };

const file = (name: string): string => join(laptop, "service", "relays", `${name}.json`);
const write = (...definitions: { name: string }[]): void => {
  for (const one of definitions) writeFileSync(file(one.name), JSON.stringify(one, null, 2));
  writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify(NOTES));
};
const given = () => ({ cwd: laptop, env: { RELAY_KEY: key, RELAY_URL: `http://127.0.0.1:${port}` } });
const sync = (...line: string[]) => runCommand(["sync", ...line], given());
const api = async (method: string, path: string, body?: unknown) => {
  const url = `http://127.0.0.1:${port}/api/apps/${app}/development${path}`;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
  return (response.status === 204 ? null : await response.json()) as any;
};
const edit = async (definition: { name: string }) => {
  const { relay } = await api("GET", `/relays/${definition.name}`);
  await api("PUT", `/relays/${definition.name}`, { definition, version: relay.version });
};
const names = async (): Promise<string[]> => (await api("GET", "/relays")).items.map(({ name }: { name: string }) => name).sort();
const textOf = async (name: string): Promise<string> => (await api("GET", `/relays/${name}`)).relay.definition.actions[0].data.text;

describe("relay sync", () => {
  test("as a process: applies a folder to the server, with new secrets in the local file and never on the terminal", async () => {
    write(receiver("orders"), { ...receiver("notify"), actions: [{ type: "call_url", url: "https://example.com/x" }] } as never);
    await using run = startCli(["sync"], given());
    expect(await run.exited).toBe(0);
    const lines = run.lines();
    expect(lines).toContain("+ relay orders  created");
    expect(lines).toContain("+ collection notes  created");
    expect(lines.filter((line) => line.includes(".secrets.json")).length).toBe(1);
    const secretsFile = join(laptop, "service", ".secrets.json");
    expect(statSync(secretsFile).mode & 0o777).toBe(0o600);
    const held = JSON.parse(readFileSync(secretsFile, "utf8"))[`http://127.0.0.1:${port}/${app}/development`];
    expect(Object.keys(held.notify)).toEqual(["receiverSecret", "signingSecret"]);
    expect(held.orders.receiverSecret).toStartWith("whsec_");
    for (const secret of [held.orders.receiverSecret, held.notify.signingSecret, key]) expect(lines.join("\n")).not.toContain(secret);
    expect(readFileSync(join(laptop, "service", ".gitignore"), "utf8")).toContain(".secrets.json");
    expect(await names()).toEqual(["notify", "orders"]);
    const again = await sync();
    expect([again.code, again.told]).toEqual([0, "Nothing to do."]);
  });

  test("shows the preview as JSON, and with --dry-run changes nothing", async () => {
    write(receiver("one"), receiver("two"));
    await sync();
    write(receiver("two", "y"), receiver("three"));
    const dry = await sync("--dry-run", "--json");
    expect(dry.code).toBe(0);
    const { plan, ...rest } = JSON.parse(dry.said);
    expect(plan).toMatch(/^pln_[0-9a-f]{40}$/);
    const entry = (kind: string, name: string, state: string, diff: unknown[] = []) => ({
      kind,
      name,
      state,
      diff,
      warnings: [],
      refusal: null,
      capturedCall: null,
    });
    expect(rest).toEqual({
      changes: 2,
      entries: [
        entry("relay", "one", "unchanged"),
        entry("relay", "three", "created"),
        entry("relay", "two", "changed", [{ field: "actions.0.data.text", before: "x", after: "y" }]),
        entry("collection", "notes", "unchanged"),
      ],
      warnings: [],
      refusal: null,
      applied: false,
    });
    expect(await names()).toEqual(["one", "two"]);
    const shown = await sync("--dry-run");
    expect(shown.said.split("\n")).toEqual([
      "+ relay three  created",
      "~ relay two  changed",
      '    - actions.0.data.text: "x"',
      '    + actions.0.data.text: "y"',
      "= 2 items unchanged",
    ]);
  });

  test("asks before it replaces the dashboard's edits, accepts a flag, and otherwise fails without a change", async () => {
    write(receiver("one"));
    await sync();
    await edit(receiver("one", "by hand"));
    write(receiver("one", "by file"), receiver("two"));
    const refused = await sync();
    expect([refused.code, await names()]).toEqual([1, ["one"]]);
    expect(refused.told).toContain("relay one");
    expect(refused.told).toContain("--yes");
    expect(refused.told).toContain("To keep the edits, run relay pull first.");
    expect(refused.told).toContain("edited_in_dashboard");
    const asked: string[] = [];
    const answers = (answer: boolean) => ({
      ...given(),
      interactive: true,
      confirm: async (question: string) => {
        asked.push(question);
        return answer;
      },
    });
    const kept = await runCommand(["sync"], answers(false));
    expect([kept.code, kept.told.includes("Not replaced: relay one.")]).toEqual([3, true]);
    expect([await names(), await textOf("one")]).toEqual([["one", "two"], "by hand"]);
    expect((await runCommand(["sync"], answers(true))).code).toBe(0);
    expect(await textOf("one")).toBe("by file");
    expect(asked.length).toBe(2);
    expect(asked[0]).toContain("relay one");
    await edit(receiver("one", "by hand"));
    expect((await sync("--yes")).code).toBe(0);
    expect(await textOf("one")).toBe("by file");
  });

  test("applies nothing if the environment or a file changed after the preview", async () => {
    for (const move of [() => edit(receiver("one", "moved")), async () => write(receiver("new"))]) {
      write(receiver("one"));
      await sync("--yes");
      await edit(receiver("one", "by hand"));
      write(receiver("one", "by file"));
      const before = await names();
      const raced = await runCommand(["sync"], {
        ...given(),
        interactive: true,
        confirm: async () => {
          await move();
          return true;
        },
      });
      expect(raced.code).toBe(1);
      expect(raced.told).toContain("version_conflict");
      expect(await names()).toEqual(before);
    }
  });

  test("deletes only with --prune, and names working remedies for a fixed trigger kind", async () => {
    write(receiver("one"), receiver("two"));
    await sync();
    write(schedule("two"));
    const fixed = await sync("--yes");
    expect(fixed.code).toBe(1);
    expect(fixed.told).toMatch(/rename the relay.*relay sync --prune/);
    expect(fixed.told).toContain("trigger_kind_fixed");
    rmSync(file("two"));
    expect((await sync("--yes")).told).toBe("Nothing to do.");
    expect(await names()).toEqual(["one", "two"]);
    const pruned = await sync("--prune");
    expect([pruned.code, await names()]).toEqual([0, ["one"]]);
    expect(pruned.said).toContain("- relay two  deleted, because its file is gone; no event waits");
    write(schedule("two"));
    expect((await sync()).code).toBe(0);
    rmSync(join(laptop, "service", "relays"), { recursive: true });
    expect((await sync("--prune")).code).toBe(1);
    expect(await names()).toEqual(["one", "two"]);
  });

  test("reports a renamed file as a rename, with the URL and the secrets that change", async () => {
    write(receiver("checkout"), { ...schedule("daily"), actions: [{ type: "call_url", url: "https://example.com/x" }] } as never, schedule("kept"));
    await sync();
    for (const name of ["checkout", "daily"]) rmSync(file(name));
    write(
      receiver("payment"),
      { ...schedule("nightly"), actions: [{ type: "call_url", url: "https://example.com/x" }] } as never,
      receiver("new", "other"),
    );
    const planned = await sync("--dry-run");
    expect(planned.code).toBe(0);
    const url = `http://127.0.0.1:${port}/hooks/${app}/payment`;
    expect(planned.said.split("\n")).toEqual([
      "+ relay new  created",
      "+ relay nightly  created",
      "    renamed from daily: nightly is a new relay, and the events stay with daily",
      "    new signing secret: store it in the app that the relay calls",
      "    daily stays active: delete it with --prune",
      "+ relay payment  created",
      "    renamed from checkout: payment is a new relay, and the events stay with checkout",
      `    new URL: change it at the provider to ${url}`,
      "    new secret: set it at the provider",
      "    checkout stays active: delete it with --prune after the change at the provider",
      "? relay checkout  only on the server, not changed",
      "? relay daily  only on the server, not changed",
      "= 2 items unchanged",
    ]);
    const pruned = await sync("--prune");
    expect(pruned.said).toContain("    checkout is deleted, and its URL answers 404");
    expect(pruned.said).toContain("    daily is deleted");
    expect(await names()).toEqual(["kept", "new", "nightly", "payment"]);
    expect((await sync()).told).toBe("Nothing to do.");
  });

  test("sends no files with problems, and reports each problem at its position", async () => {
    write(receiver("one"));
    writeFileSync(file("bad"), '{\n  "name": "bad",\n  "extra": 1\n}');
    const refused = await sync();
    expect(refused.code).toBe(1);
    expect(refused.told).toContain("bad.json:3:12");
    expect(refused.told).toContain("invalid_definition");
    expect(await names()).toEqual([]);
  });

  test("escapes control characters of a file on the terminal", async () => {
    write(receiver("one"));
    await sync();
    const nasty = "\u001b]0;owned\u0007\u202e\u009b31m";
    const one = receiver("one");
    const when = { event_id: nasty };
    write({ ...one, trigger: { ...one.trigger, when } } as never);
    const { said, told } = await sync("--dry-run");
    expect(said).toContain("trigger.when");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    expect(`${said}${told}`).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  });

  test.each([
    ["no server", { RELAY_URL: "" }, 2, "--url"],
    ["no key", { RELAY_KEY: "" }, 1, "RELAY_KEY"],
    ["http to another machine", { RELAY_URL: "http://relay.example.com" }, 2, "https"],
    ["an unreachable server", { RELAY_URL: "http://127.0.0.1:9" }, 1, "service_not_running"],
    ["a revoked or wrong key", { RELAY_KEY: "sk_dev_aaaaaaaaaaaaaaaaaaaaaaaa" }, 1, "unauthenticated"],
  ] as const)("with %s says so", async (_name, env, code, words) => {
    write(receiver("one"));
    const result = await runCommand(["sync"], { cwd: laptop, env: { ...given().env, ...env } });
    expect([result.code, result.told.includes(words)]).toEqual([code, true]);
    expect(result.told).not.toContain(key);
  });
});

test("a server that is killed during an apply has all or nothing of the changes", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "relay-killed-"));
  try {
    let whole = 0;
    for (let round = 0; round < 6; round++) {
      await using killed = startCli(["serve", "--port", "0"], { cwd });
      port = /127\.0\.0\.1:(\d+)/.exec(await killed.line("127.0.0.1:"))?.[1] ?? "";
      app = `kill${round}`;
      await runCommand(["apps", "create", "Kill", "--id", app], { cwd });
      const made = await runCommand(["keys", "create", "--app", app, "--environment", "development"], { cwd });
      key = /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
      const relays = Array.from({ length: 15 }, (_, at) => receiver(`relay${at}`));
      const { plan } = await api("POST", "/sync/plan", { relays, catalog: NOTES });
      const applying = api("POST", "/sync/apply", { relays, catalog: NOTES, plan }).catch(() => null);
      await Bun.sleep(round * 6);
      killed.kill("SIGKILL");
      await killed.exited;
      await applying;
      await using again = startCli(["serve", "--port", "0"], { cwd });
      port = /127\.0\.0\.1:(\d+)/.exec(await again.line("127.0.0.1:"))?.[1] ?? "";
      const found = (await names()).length + (await api("GET", "/collections")).items.length;
      expect([0, 16]).toContain(found);
      if (found === 16) whole += 1;
      const left = await api("POST", "/sync/plan", { relays, catalog: NOTES });
      expect(left.changes).toBe(16 - found);
    }
    expect(whole).toBeLessThan(7);
    expect(existsSync(join(cwd, ".relay"))).toBe(true);
  } finally {
    rmSync(cwd, { recursive: true });
  }
});
