/** Tests `relay status` and its targets: files, a development environment, and production by a profile. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../kit/cli-io.ts";
import { type CliProcess, startCli } from "../kit/cli-process.ts";

let home: string;
let laptop: string;
let server: CliProcess;
let url: string;
const keys: Record<string, string> = {};

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "relay-server-"));
  laptop = mkdtempSync(join(tmpdir(), "relay-laptop-"));
  server = startCli(["serve", "--port", "0"], { cwd: home });
  url = /http:\/\/127\.0\.0\.1:\d+/.exec(await server.line("127.0.0.1:"))?.[0] ?? "";
  await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd: home });
  for (const environment of ["development", "production"]) {
    const name = environment === "production" ? "CI" : "Laptop of Ann";
    const made = await runCommand(["keys", "create", "--name", name, "--app", "shop", "--environment", environment], { cwd: home });
    keys[environment] = /relay_(?:dev|live)_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "";
  }
  const profileOf = (environment: string) => ({
    url,
    app: "shop",
    environment,
    key: keys[environment],
    owner: "ann@example.com",
    endsAt: "2099-01-01T00:00:00.000Z",
  });
  mkdirSync(join(laptop, "config", "relay"), { recursive: true });
  writeFileSync(
    join(laptop, "config", "relay", "profiles.json"),
    JSON.stringify({ default: "shop", profiles: { shop: profileOf("development"), "shop-live": profileOf("production") } }),
    { mode: 0o600 },
  );
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  for (const folder of [home, laptop]) rmSync(folder, { recursive: true });
});

const relay = (name: string, text = "x") => ({
  name,
  trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } },
  actions: [{ type: "write_record", collection: "notes", data: { text } }],
});
const write = (...definitions: { name: string }[]): void => {
  mkdirSync(join(laptop, "service", "relays"), { recursive: true });
  for (const one of definitions) writeFileSync(join(laptop, "service", "relays", `${one.name}.json`), JSON.stringify(one, null, 2));
  writeFileSync(join(laptop, "service", "catalog.json"), JSON.stringify({ access: { beta: {} } }));
};
const env = () => ({ XDG_CONFIG_HOME: join(laptop, "config") });
const run = (...line: string[]) => runCommand(line, { cwd: laptop, env: env() });
const alone = (environment: string) => runCommand(["status"], { cwd: laptop, env: { RELAY_URL: url, RELAY_KEY: keys[environment] ?? "" } });
async function save(environment: string, definition: { name: string }): Promise<void> {
  const place = `${url}/api/apps/shop/${environment}/relays`;
  const headers = { authorization: `Bearer ${keys[environment]}`, "content-type": "application/json" };
  const standing = await fetch(`${place}/${definition.name}`, { headers });
  const version = standing.ok ? ((await standing.json()) as { relay: { version: number } }).relay.version : undefined;
  const body = JSON.stringify({ definition, ...(version === undefined ? {} : { version }) });
  const made = await fetch(version === undefined ? place : `${place}/${definition.name}`, {
    method: version === undefined ? "POST" : "PUT",
    headers,
    body,
  });
  expect(made.ok).toBe(true);
}

test("says in one line that all targets are equal, and names them", async () => {
  write(relay("one"), relay("two"));
  expect((await run("sync")).code).toBe(0);
  const same = await alone("development");
  expect([same.code, same.said]).toEqual([0, "All the same: 3 items in files, development."]);
  expect(same.told).toContain("production was not compared, because there is no profile of it");
});

test("shows differences between files, development and production, one line each with time and author, and exits with 3", async () => {
  for (const name of ["one", "two"]) await save("production", relay(name));
  await save("development", relay("two", "dashboard"));
  write(relay("one", "file"), relay("three"));
  await save("production", relay("hotfix"));
  const drift = await run("status");
  expect(drift.code).toBe(3);
  expect(drift.told).not.toContain("was not compared");
  const rows = drift.said.split("\n").map((line) => line.split(/ {2,}/));
  expect(rows[0]).toEqual(["ITEM", "FILES", "DEVELOPMENT", "PRODUCTION", "DIFFERS"]);
  const since = String.raw`since \d{4}-\d\d-\d\d \d\d:\d\d by key (?:Laptop of Ann|CI)`;
  const wanted: [string, string, string, string, RegExp][] = [
    [
      "relay one",
      "edited",
      "as synced",
      "created there",
      new RegExp(`^files/development: actions\\.0\\.data\\.text; development ${since}; production ${since}$`),
    ],
    [
      "relay two",
      "behind",
      "edited there",
      "created there",
      /^files\/development: actions\.0\.data\.text; development\/production: actions\.0\.data\.text; /,
    ],
    ["relay hotfix", "-", "-", "created there", /^development\/production; production since /],
    ["relay three", "exists", "-", "-", /^files\/development$/],
    ["access beta", "same", "as synced", "-", /^development\/production; development since /],
  ];
  expect(rows).toHaveLength(wanted.length + 1);
  for (const [thing, files, development, production, differs] of wanted) {
    const row = rows.find(([name]) => name === thing) ?? [];
    expect(row.slice(0, 4)).toEqual([thing, files, development, production]);
    expect(row[4]).toMatch(differs);
  }
});

test("prints the same as JSON, with the targets", async () => {
  const { code, said } = await run("status", "--json");
  expect(code).toBe(3);
  const told = JSON.parse(said);
  expect(told.environments.map(({ environment }: { environment: string }) => environment)).toEqual(["development", "production"]);
  const two = told.differing.find(({ name }: { name: string }) => name === "two");
  expect(two.differs).toEqual([
    { between: ["files", "development"], fields: ["actions.0.data.text"] },
    { between: ["development", "production"], fields: ["actions.0.data.text"] },
  ]);
  expect(two.changed.production).toMatchObject({ by: expect.stringMatching(/^key:/), byName: "CI" });
  expect(Date.parse(two.changed.production.at)).toBeGreaterThan(0);
});

test("compares files with only production, and two environments without files", async () => {
  const live = await alone("production");
  expect([live.code, live.said.split("\n")[0]?.split(/ {2,}/)]).toEqual([3, ["ITEM", "FILES", "PRODUCTION", "DIFFERS"]]);
  rmSync(join(laptop, "service"), { recursive: true });
  const both = await run("status");
  expect([both.code, both.said.split("\n")[0]?.split(/ {2,}/)]).toEqual([3, ["ITEM", "DEVELOPMENT", "PRODUCTION", "DIFFERS"]]);
  const nothing = await alone("production");
  expect([nothing.code, nothing.said]).toEqual([1, ""]);
  expect(nothing.told).toContain("nothing to compare");
  const twice = await run("status", "--and", "shop");
  expect(twice.code).toBe(1);
});
