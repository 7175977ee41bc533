/** Tests a team: two clones of one git repository, and CI, sync to one server. No sync reverts a teammate's work without a warning. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { findCommit } from "../../src/interfaces/cli/sync/git-commit.ts";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

let home: string;
let server: CliProcess;
let url: string;
let team: string;
let app: string;
let apps = 0;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-server-"));
  server = startCli(["serve", "--port", "0"], { cwd: home });
  url = /http:\/\/127\.0\.0\.1:\d+/.exec(await server.line("127.0.0.1:"))?.[0] ?? "";
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

const receiver = (name: string, text = "x") => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "notes", data: { text } }],
});
const NOTES = { collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } };

function git(cwd: string, ...words: string[]): string {
  const settings = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"];
  const done = Bun.spawnSync(["git", ...settings, ...words], { cwd, stderr: "pipe" });
  if (done.exitCode !== 0) throw new Error(`git ${words.join(" ")}: ${done.stderr}`);
  return done.stdout.toString().trim();
}

/** One member of the team: a clone, and a key with a name. */
class Member {
  readonly folder: string;
  readonly #key: string;

  private constructor(folder: string, key: string) {
    this.folder = folder;
    this.#key = key;
  }

  static async join(name: string, environment = "development"): Promise<Member> {
    const made = await runCommand(["keys", "create", "--name", name, "--app", app, "--environment", environment], { cwd: home });
    const key = /relay_(?:dev|live)_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
    const folder = join(team, name);
    git(team, "clone", "--quiet", join(team, "origin.git"), folder);
    mkdirSync(join(folder, "service", "relays"), { recursive: true });
    return new Member(folder, key);
  }

  file(name: string): string {
    return join(this.folder, "service", "relays", `${name}.json`);
  }

  write(...definitions: { name: string }[]): void {
    for (const one of definitions) writeFileSync(this.file(one.name), `${JSON.stringify(one, null, 2)}\n`);
  }

  catalog(value: object = NOTES): void {
    writeFileSync(join(this.folder, "service", "catalog.json"), JSON.stringify(value));
  }

  /** Runs a command. `answer` makes it interactive, and is the answer to its question. */
  async run(line: readonly string[], answer?: boolean, more: { clock?: Clock; meanwhile?: () => Promise<void>; hear?: (text: string) => void } = {}) {
    const asked: string[] = [];
    const { clock = new VirtualClock(Date.now() + 120_000), meanwhile, hear } = more;
    const confirm = async (question: string): Promise<boolean> => {
      asked.push(question);
      await meanwhile?.();
      return answer === true;
    };
    const terminal = answer === undefined ? {} : { interactive: true, confirm };
    const env = { RELAY_KEY: this.#key, RELAY_URL: url };
    const given = { cwd: this.folder, env, clock, findCommit, ...terminal, ...(hear === undefined ? {} : { hear }) };
    return { ...(await runCommand(line, given)), asked };
  }

  /** Commits and pushes everything, and returns the commit. */
  push(): string {
    git(this.folder, "add", "--all");
    git(this.folder, "commit", "--quiet", "--message", "change");
    if (git(this.folder, "ls-remote", "origin", "main") !== "") this.pull();
    git(this.folder, "push", "--quiet", "origin", "HEAD:main");
    return git(this.folder, "rev-parse", "HEAD");
  }

  pull(): void {
    git(this.folder, "pull", "--quiet", "--no-rebase", "origin", "main");
  }

  async api(method: string, path: string, body?: unknown) {
    const headers = { authorization: `Bearer ${this.#key}`, "content-type": "application/json" };
    const place = `${url}/api/apps/${app}/development${path}`;
    const response = await fetch(place, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads answers by their fields
    const json = (response.status === 204 ? null : await response.json()) as any;
    expect(response.status).toBeLessThan(300);
    return json;
  }

  async textOf(name: string): Promise<string> {
    return (await this.api("GET", `/relays/${name}`)).relay.definition.actions[0].data.text;
  }

  async edit(definition: { name: string }): Promise<void> {
    const { relay } = await this.api("GET", `/relays/${definition.name}`);
    await this.api("PUT", `/relays/${definition.name}`, { definition, version: relay.version });
  }
}

let ann: Member;
let bob: Member;

/** Gives each test an app, and two clones that both have synced the same files. */
beforeEach(async () => {
  apps += 1;
  app = `shop${apps}`;
  team = mkdtempSync(join(tmpdir(), "relay-team-"));
  git(team, "init", "--quiet", "--bare", "origin.git");
  expect((await runCommand(["apps", "create", "Shop", "--id", app], { cwd: home })).code).toBe(0);
  ann = await Member.join("ann");
  ann.write(receiver("checkout"), receiver("other"));
  ann.catalog();
  expect((await ann.run(["sync"])).code).toBe(0);
  ann.push();
  bob = await Member.join("bob");
  expect(await bob.run(["sync"])).toMatchObject({ code: 0, told: "Nothing to do." });
});

describe("a sync from a folder that is behind", () => {
  test("does not revert a teammate's work: it names the teammate, the commit and the command, and a dry run refuses the same", async () => {
    bob.write(receiver("checkout", "bob"));
    const commit = bob.push();
    expect((await bob.run(["sync"])).code).toBe(0);
    ann.write(receiver("other", "ann"));
    const said = `! relay checkout  the server has a newer version, synced by key bob from commit ${commit.slice(0, 7)}, 2 min ago; this file has not changed: run relay pull first`;
    for (const line of [["sync"], ["sync", "--dry-run"]]) {
      const refused = await ann.run(line);
      expect([refused.code, refused.said.split("\n")]).toEqual([1, expect.arrayContaining([said])]);
      expect(refused.told).toContain(
        "The server has a newer version of relay checkout, and the file has not changed. Nothing was changed: run relay pull first.",
      );
      expect(refused.told).toContain("newer_on_server");
      expect(await ann.run(line, true)).toMatchObject({ code: 1, asked: [] });
    }
    expect([await ann.textOf("checkout"), await ann.textOf("other")]).toEqual(["bob", "x"]);
    const json = JSON.parse((await ann.run(["sync", "--json"])).said);
    expect(json.refusal.code).toBe("newer_on_server");
    expect(json.entries.find(({ name }: { name: string }) => name === "checkout")).toMatchObject({
      state: "behind",
      newer: { how: "synced", byName: "bob", commit },
    });

    const status = await ann.run(["status"]);
    const rows = status.said.split("\n").map((row) => row.split(/ {2,}/).slice(0, 3));
    expect(rows).toContainEqual(["relay checkout", "behind", "as synced"]);
    expect(rows).toContainEqual(["relay other", "edited", "as synced"]);
    expect((await ann.run(["pull"])).said).toContain("~ relay checkout  changed on the server");
    expect(await ann.run(["sync"])).toMatchObject({ code: 0 });
    expect([await bob.textOf("checkout"), await bob.textOf("other")]).toEqual(["bob", "ann"]);
    // The other clone is behind in turn, and git brings its files up to date.
    expect((await bob.run(["sync"])).code).toBe(1);
    ann.push();
    bob.pull();
    expect(await bob.run(["sync"])).toMatchObject({ code: 0, told: "Nothing to do." });
  });

  test("does not revert an edit in the dashboard after git brought the file of a teammate's sync", async () => {
    ann.write(receiver("checkout", "ann"));
    expect((await ann.run(["sync"])).code).toBe(0);
    ann.push();
    bob.pull();
    await ann.edit(receiver("checkout", "hotfix"));
    bob.write(receiver("other", "bob"));
    const refused = await bob.run(["sync"], true);
    expect(refused).toMatchObject({ code: 1, asked: [] });
    expect(refused.said).toMatch(/! relay checkout {2}the server has a newer version, edited by key ann/);
    expect((await bob.run(["pull"])).said).toContain("~ relay checkout  changed on the server");
    expect(await bob.run(["sync"])).toMatchObject({ code: 0 });
    expect([await ann.textOf("checkout"), await ann.textOf("other")]).toEqual(["hotfix", "bob"]);
  });

  test("in a new clone, a no to replacing leaves an edit that relay pull then writes", async () => {
    const cay = await Member.join("cay");
    await ann.edit(receiver("checkout", "hotfix"));
    expect(await cay.run(["sync"], false)).toMatchObject({ code: 3 });
    expect((await cay.run(["pull"])).said).toContain("~ relay checkout  changed on the server");
    expect(await cay.run(["sync"])).toMatchObject({ code: 0, told: "Nothing to do." });
    expect(await ann.textOf("checkout")).toBe("hotfix");
  });

  test("compares the items of the catalog too, and a field that a file leaves out is no difference", async () => {
    const catalog = (credits: number, title = "Free") => ({ ...NOTES, products: { book: { credits } }, plans: { free: { title }, pro: {} } });
    ann.catalog(catalog(1));
    expect((await ann.run(["sync"])).code).toBe(0);
    // The file says nothing of the default plan, which the dashboard chose before the next sync.
    await ann.api("PUT", "/plans/free", { title: "Free", default: true, version: (await ann.api("GET", "/plans/free")).plan?.version ?? 1 });
    expect(await ann.run(["sync"])).toMatchObject({ code: 0, told: "Nothing to do." });
    ann.push();
    bob.pull();
    expect(await bob.run(["sync"])).toMatchObject({ code: 0, told: "Nothing to do." });
    bob.catalog(catalog(2));
    expect((await bob.run(["sync"])).code).toBe(0);
    ann.catalog(catalog(1, "Free of charge"));
    const refused = await ann.run(["sync"]);
    expect(refused.code).toBe(1);
    expect(refused.said).toMatch(/! product book {2}the server has a newer version, synced by key bob/);
    expect(refused.said).toContain("~ plan free  changed");
    expect((await ann.run(["pull", "--yes"])).code).toBe(0);
    expect((await ann.run(["sync"])).code).toBe(0);
    expect((await ann.api("GET", "/products/book")).product.credits).toBe(2);
    expect((await ann.api("GET", "/plans/free")).plan).toMatchObject({ title: "Free of charge", default: true });
  });

  test("replaces the newer version with --yes", async () => {
    bob.write(receiver("checkout", "bob"));
    await bob.run(["sync"]);
    const forced = await ann.run(["sync", "--yes"]);
    expect(forced.code).toBe(0);
    expect(forced.said).toMatch(/! relay checkout {2}the server has a newer version, synced by key bob.*; this file has not changed, replaced/);
    expect(await ann.textOf("checkout")).toBe("x");
  });

  test("does not create again what a teammate deleted, and does not prune what a teammate added", async () => {
    rmSync(bob.file("other"));
    bob.write(receiver("added"));
    expect((await bob.run(["sync", "--prune"])).code).toBe(0);
    const refused = await ann.run(["sync", "--prune"]);
    expect(refused.code).toBe(1);
    expect(refused.said).toMatch(
      /! relay other {2}gone on the server, deleted by key bob, 2 min ago; this file has not changed: run relay pull --prune first/,
    );
    expect(refused.said).toContain("? relay added  only on the server, not changed");
    expect(await ann.run(["pull", "--prune", "--yes"])).toMatchObject({ code: 0 });
    expect([existsSync(ann.file("other")), existsSync(ann.file("added"))]).toEqual([false, true]);
    expect(await ann.run(["sync", "--prune"])).toMatchObject({ code: 0, told: "Nothing to do." });
  });

  test("creates everything in a new server at the same address", async () => {
    const made = await runCommand(["apps", "create", "Shop", "--id", `${app}-new`], { cwd: home });
    expect(made.code).toBe(0);
    const synced = join(ann.folder, "service", ".synced.json");
    writeFileSync(synced, readFileSync(synced, "utf8").replaceAll(`/${app}/`, `/${app}-new/`));
    app = `${app}-new`;
    const moved = await Member.join("moved");
    writeFileSync(join(moved.folder, "service", ".synced.json"), readFileSync(synced));
    expect(await moved.run(["sync"])).toMatchObject({ code: 0 });
    expect(await moved.textOf("checkout")).toBe("x");
  });
});

describe("both sides changed", () => {
  test("refuses without a terminal, asks at one, and pull shows the conflict", async () => {
    bob.write(receiver("checkout", "bob"));
    await bob.run(["sync"]);
    ann.write(receiver("checkout", "ann"), receiver("new"));
    const refused = await ann.run(["sync"]);
    expect(refused.code).toBe(1);
    expect(refused.said).toMatch(/! relay checkout {2}changed in the file and on the server, synced by key bob/);
    expect(refused.told).toContain("Changed on both sides since the last sync: relay checkout.");
    expect((await ann.run(["status"])).said).toMatch(/relay checkout +conflict +as synced/);
    expect((await ann.run(["pull"])).code).toBe(3);
    const kept = await ann.run(["sync"], false);
    expect([kept.code, kept.asked]).toEqual([3, ["Replace the server's newer version (relay checkout) with the files?"]]);
    expect(kept.told).toContain("Not replaced: relay checkout. The server keeps its version: relay pull --theirs writes it to the files.");
    expect([await ann.textOf("checkout"), await ann.textOf("new")]).toEqual(["bob", "x"]);
    expect((await ann.run(["sync"], true)).code).toBe(0);
    expect(await ann.textOf("checkout")).toBe("ann");
  });

  test("after a no, names the pull that deletes from the files what the server deleted", async () => {
    rmSync(bob.file("other"));
    expect((await bob.run(["sync", "--prune"])).code).toBe(0);
    ann.write(receiver("other", "ann"));
    const kept = await ann.run(["sync"], false);
    expect([kept.code, kept.told]).toEqual([
      3,
      "Not created: relay other. The server does not have it: relay pull --prune --theirs deletes it from the files.",
    ]);
    expect((await ann.run(["pull", "--prune"])).code).toBe(3);
    expect((await ann.run(["pull", "--prune", "--theirs", "--yes"])).code).toBe(0);
    expect(existsSync(ann.file("other"))).toBe(false);
    expect(await ann.run(["sync"])).toMatchObject({ code: 0, told: "Nothing to do." });
  });

  test("of a relay that both created is a conflict", async () => {
    bob.write(receiver("new", "bob"));
    await bob.run(["sync"]);
    ann.write(receiver("new", "ann"));
    expect((await ann.run(["sync"])).told).toContain("newer_on_server");
    expect(await ann.textOf("new")).toBe("bob");
    expect((await ann.run(["pull", "--ours"])).code).toBe(0);
    expect((await ann.run(["sync"])).code).toBe(0);
    expect(await ann.textOf("new")).toBe("ann");
  });

  test("of a hotfix in the dashboard names the dashboard", async () => {
    await bob.edit(receiver("checkout", "hotfix"));
    const refused = await ann.run(["sync"]);
    expect([refused.code, refused.told.includes("edited_in_dashboard")]).toEqual([1, true]);
    expect(refused.said).toMatch(/! relay checkout {2}the server has a newer version, edited by key bob, 2 min ago; this file has not changed/);
    expect((await ann.run(["pull"])).code).toBe(0);
    expect(await ann.run(["sync"])).toMatchObject({ code: 0, told: "Nothing to do." });
  });
});

describe("--wait", () => {
  const race = (line: readonly string[]) => {
    const clock = new VirtualClock(Date.now());
    let moves = 0;
    return ann.run(line, true, {
      clock,
      // The teammate syncs between the plan and the answer to its question, once.
      meanwhile: async () => {
        moves += 1;
        if (moves === 1) await bob.edit(receiver("other", "bob"));
      },
      hear: (text: string) => {
        if (text.includes("plans again")) setTimeout(() => clock.advance(3_000), 0);
      },
    });
  };

  test("plans again after another sync came between the plan and its change, and without it the sync fails", async () => {
    await bob.edit(receiver("checkout", "bob"));
    ann.write(receiver("checkout", "ann"), receiver("other", "ann"));
    const failed = await race(["sync"]);
    expect([failed.code, failed.told.includes("version_conflict")]).toEqual([1, true]);
    await bob.edit(receiver("other", "x"));
    const waited = await race(["sync", "--wait"]);
    expect([waited.code, waited.asked.length]).toEqual([0, 2]);
    expect(waited.told).toContain("Another sync changed the environment: the command waits for it, then plans again.");
    expect([await bob.textOf("checkout"), await bob.textOf("other")]).toEqual(["ann", "ann"]);
  });
});

test("a server of an earlier version, which knows no base and no commit, gets the files", async () => {
  const seen: string[] = [];
  const earlier = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const body = await request.text();
      const unknown = ["base", "commit"].filter((field) => body.includes(`"${field}":`));
      seen.push(`${pathname.split("/").at(-1)} ${unknown.join()}`);
      const problems = unknown.map((field) => ({ field, message: `${field} is not a known field.` }));
      if (unknown.length > 0) return Response.json({ code: "invalid_input", message: "Not known.", problems }, { status: 400 });
      const sent = { method: request.method, headers: request.headers, ...(body === "" ? {} : { body }) };
      return await fetch(`${url}${pathname}`, sent);
    },
  });
  const address = `http://127.0.0.1:${earlier.port}`;
  const synced = join(ann.folder, "service", ".synced.json");
  writeFileSync(synced, readFileSync(synced, "utf8").replaceAll(url, address));
  ann.write(receiver("checkout", "ann"));
  const done = await ann.run(["sync", "--url", address]);
  await earlier.stop(true);
  expect(done.code).toBe(0);
  expect([seen, await ann.textOf("checkout")]).toEqual([["key ", "plan base,commit", "plan ", "apply "], "ann"]);
});

describe("sync --check, for a pull request", () => {
  test("exits with 0 for nothing, 3 for changes and 1 for a refusal, and prints Markdown, and changes nothing", async () => {
    const none = await ann.run(["sync", "--check"]);
    expect([none.code, none.said]).toEqual([0, `### relay sync: no changes\n\nTarget: \`${url}/${app}/development\`\n\n3 items unchanged.`]);
    rmSync(ann.file("other"));
    ann.write(receiver("checkout", "ann"), receiver("renamed"));
    const base = readFileSync(join(ann.folder, "service", ".synced.json"), "utf8");
    const changes = await ann.run(["sync", "--check", "--prune"], true);
    expect([changes.code, changes.asked]).toEqual([3, []]);
    expect(changes.said.split("\n\n")).toEqual([
      "### relay sync: 3 changes",
      `Target: \`${url}/${app}/development\``,
      [
        "| | Item | Plan |",
        "|---|---|---|",
        "| `~` | `relay checkout` | changed |",
        [
          "| `+` | `relay renamed` | created",
          "renamed from other: renamed is a new relay, and the events stay with other",
          `new URL: change it at the provider to ${url}/hooks/${app}/renamed`,
          "new secret: set it at the provider",
          "other is deleted, and its URL answers 404 |",
        ].join("<br>"),
        "| `-` | `relay other` | deleted, because its file is gone; no event waits |",
      ].join("\n"),
      "<details><summary>Fields that change</summary>",
      '```diff\nrelay checkout\n- actions.0.data.text: "x"\n+ actions.0.data.text: "ann"\n```',
      "</details>",
      "1 item unchanged.",
    ]);
    expect(readFileSync(join(ann.folder, "service", ".synced.json"), "utf8")).toBe(base);
    expect(await ann.textOf("checkout")).toBe("x");

    bob.write(receiver("checkout", "bob"));
    await bob.run(["sync"]);
    const refused = await ann.run(["sync", "--check"], true);
    expect([refused.code, refused.asked]).toEqual([1, []]);
    expect(refused.said).toContain("### relay sync: refused");
    expect(refused.said).toMatch(
      /\*\*The sync would be refused:\*\* Changed on both sides since the last sync: relay checkout\..* \(`newer\\?_on_server`\)/,
    );
    expect(JSON.parse((await ann.run(["sync", "--check", "--json"])).said).refusal.code).toBe("newer_on_server");
    expect((await ann.run(["sync", "--check", "--yes"])).code).toBe(3);

    writeFileSync(ann.file("bad"), '{\n  "name": "bad",\n  "extra": 1\n}');
    const invalid = await ann.run(["sync", "--check"]);
    expect([invalid.code, invalid.said.split("\n\n").slice(0, 2)]).toEqual([1, ["### relay sync: refused", "**The files have 3 problems:**"]]);
    expect(invalid.said).toContain("- `service/relays/bad.json:3`: ");
  });

  test("renders no text of a file or of the server as Markdown", async () => {
    const nasty = "```\n@team <img src=x> | [x](https://evil.example)";
    const one = receiver("checkout");
    ann.write({ ...one, trigger: { ...one.trigger, when: { event_id: nasty } } } as never);
    const { said } = await ann.run(["sync", "--check"]);
    const [, fence = ""] = /\n(`{3,})diff\n/.exec(said) ?? [];
    expect(fence.length).toBeGreaterThan(3);
    const outside = said.slice(0, said.indexOf(fence)) + said.slice(said.lastIndexOf(fence));
    expect(outside).not.toContain("@team");
    expect(outside).not.toContain("<img");
  });
});

test("a fresh clone that pulls only one item keeps the base of the others", async () => {
  const clone = await Member.join("clone");
  await bob.edit(receiver("checkout", "hotfix"));
  clone.write(receiver("other", "clone"));
  expect((await clone.run(["pull", "checkout"])).code).toBe(0);
  expect(JSON.parse(readFileSync(clone.file("checkout"), "utf8"))).toEqual(receiver("checkout", "hotfix"));
  expect((await clone.run(["sync"])).code).toBe(0);
  expect(await clone.textOf("other")).toBe("clone");
});

test("the history shows who synced each version and from which commit, with changes that are not committed", async () => {
  const first = git(ann.folder, "rev-parse", "HEAD");
  bob.write(receiver("checkout", "bob"));
  await bob.run(["sync"]);
  const [newest] = (await ann.api("GET", "/relays/checkout/versions")).items;
  expect(newest).toMatchObject({ actorName: "bob", origin: "file", commit: `${first}-dirty` });
  const history = await ann.run(["relays", "history", "checkout"]);
  expect(history.said).toContain(`commit ${first.slice(0, 7)} with changes that are not committed`);
});
