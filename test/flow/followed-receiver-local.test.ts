/** Tests a relay that follows a receiver in the commands: its file, `relay send`, `relay relays show`, `relay validate`, imports, sync and pull. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { runCommand } from "../kit/cli-io.ts";
import { startCli } from "../kit/cli-process.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";

const RECEIVER = receiverDefinition({ name: "stripe", actions: [{ type: "write_record", collection: "notes", data: { text: "x" } }] });
const FOLLOWER = receiverDefinition({
  name: "archive",
  verify: { scheme: "receiver", receiver: "stripe" },
  actions: [{ type: "write_record", collection: "notes", data: { text: "y" } }],
});
let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "relay-follow-"));
  mkdirSync(join(home, "service", "relays"), { recursive: true });
  writeFileSync(
    join(home, "service", "catalog.json"),
    JSON.stringify({ collections: { notes: { kind: "shared", fields: { text: { type: "text" } } } } }),
  );
  for (const definition of [FOLLOWER, RECEIVER])
    writeFileSync(join(home, "service", "relays", `${definition.name}.json`), JSON.stringify(definition));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test("files of a follower and its source are applied in any order, and relay send reaches the follower through its source", async () => {
  await using dev = startCli(["dev", "--port", "0"], { cwd: home });
  await dev.line("Dashboard");
  const sent = await runCommand(["send", "archive", "--json"], { cwd: home, clock: systemClock });
  expect([sent.code, sent.said]).toEqual([0, expect.stringContaining('"relay": "archive"')]);
  const listed = await runCommand(["events", "list", "--relay", "archive"], { cwd: home });
  expect(listed.said).toContain("archive");
  const shown = await runCommand(["relays", "show", "archive"], { cwd: home });
  expect(shown.said).toMatch(/follows\s+stripe/);
  const source = await runCommand(["relays", "show", "stripe"], { cwd: home });
  expect(source.said).toMatch(/followers\s+archive/);
});

test("relay send to the source names the result of each relay, and says why an event waits", async () => {
  await using dev = startCli(["dev", "--port", "0"], { cwd: home });
  await dev.line("Dashboard");
  const send = () => runCommand(["send", "stripe"], { cwd: home, clock: systemClock });
  const lines = [/^stripe: evt_\w+ is done; write_record done/m, /^archive: evt_\w+ is done; write_record done/m];
  const sent = await send();
  for (const line of lines) expect(sent.told).toMatch(line);
  await runCommand(["relays", "pause", "archive"], { cwd: home, clock: systemClock });
  const paused = await send();
  expect(paused.told).toMatch(/^stripe: evt_\w+ is done/m);
  expect(paused.told).toMatch(/^archive: evt_\w+ is stored and waits\. .*paused/m);
  await runCommand(["settings", "set", "held", "on"], { cwd: home, clock: systemClock });
  const held = await send();
  expect([held.code, held.told]).toEqual([0, expect.stringMatching(/^stripe: evt_\w+ is stored and waits\. The environment is on hold/m)]);
});

test("relay send says so if only the source takes the event", async () => {
  const ignoring = {
    ...FOLLOWER,
    trigger: { ...(FOLLOWER["trigger"] as object), when: { event_type: "never" }, map: { event_id: "id", event_type: "missing.path" } },
  };
  writeFileSync(join(home, "service", "relays", "archive.json"), JSON.stringify(ignoring));
  await using dev = startCli(["dev", "--port", "0"], { cwd: home });
  await dev.line("Dashboard");
  writeFileSync(join(home, "event.json"), '{"id":"a"}');
  const sent = await runCommand(["send", "archive", "--data", "event.json"], { cwd: home, clock: systemClock });
  expect([sent.code, sent.told]).toEqual([0, expect.stringContaining("stripe received the request, but archive created no event")]);
});

test("relay validate warns of a follower without the file of its source", async () => {
  rmSync(join(home, "service", "relays", "stripe.json"));
  const checked = await runCommand(["validate"], { cwd: home });
  expect([checked.code, `${checked.said}${checked.told}`]).toEqual([0, expect.stringContaining("there is no relay named stripe in these files")]);
});

test("import-missed shows in the plan what the receiver and each follower do with the lines", async () => {
  const refunds = receiverDefinition({
    name: "refunds",
    verify: { scheme: "receiver", receiver: "stripe" },
    when: { event_type: "refunded" },
    actions: [{ type: "write_record", collection: "notes", data: { text: "z" } }],
  });
  writeFileSync(join(home, "service", "relays", "refunds.json"), JSON.stringify(refunds));
  await using dev = startCli(["dev", "--port", "0"], { cwd: home });
  await dev.line("Dashboard");
  const input = [{ id: "a", type: "paid" }, { id: "b", type: "refunded" }, "x"].map((one) => JSON.stringify(one)).join("\n");
  const plan = await runCommand(["import-missed", "stripe", "--dry-run"], { cwd: home, input });
  expect([plan.code, plan.told]).toEqual([1, expect.stringContaining("This is only the plan")]);
  expect(plan.said.split("\n").slice(1)).toEqual([
    "      2  new: 0 with a valid signature, 2 unsigned",
    "      0  already known",
    "      0  ignored by when",
    "      1  refused",
    expect.stringContaining("line 3: it is no JSON object"),
    "      5  new events of stripe and its followers",
    "      2  at stripe: 0 already known, 0 ignored, 0 refused",
    "      2  at archive: 0 already known, 0 ignored, 0 refused",
    "      1  at refunds: 0 already known, 1 ignored, 0 refused",
  ]);
  const questions: string[] = [];
  const done = await runCommand(["import-missed", "stripe"], {
    cwd: home,
    input,
    confirmAside: async (question) => questions.push(question) > 0,
  });
  expect([done.code, questions]).toEqual([1, ["Import 5 events? Each runs as if it arrived now."]]);
  expect(done.told).toContain("2 new (5 events), 0 already known, 0 ignored, 1 refused.");
  expect(done.told).toContain("To see the events run: relay events list.");
  const again = await runCommand(["import-missed", "archive", "--json"], { cwd: home, input });
  expect(JSON.parse(again.said)).toMatchObject({ relay: "archive", new: 0, known: 2, refused: 1 });
});

test("sync and pull carry a receiver with its followers between a folder and a server", async () => {
  const server = mkdtempSync(join(tmpdir(), "relay-follow-server-"));
  const pulled = mkdtempSync(join(tmpdir(), "relay-follow-pulled-"));
  try {
    await using serving = startCli(["serve", "--port", "0"], { cwd: server });
    const url = `http://127.0.0.1:${/127\.0\.0\.1:(\d+)/.exec(await serving.line("127.0.0.1:"))?.[1]}`;
    await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd: server });
    const made = await runCommand(["keys", "create", "--app", "shop", "--environment", "development"], { cwd: server });
    const env = { RELAY_URL: url, RELAY_KEY: /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "" };
    expect((await runCommand(["sync", "--yes"], { cwd: home, env })).code).toBe(0);
    const carried = await runCommand(["pull", "--yes"], { cwd: pulled, env });
    expect([carried.code, carried.told]).toEqual([0, expect.anything()]);
    for (const { name, ...definition } of [FOLLOWER, RECEIVER])
      expect(JSON.parse(readFileSync(join(pulled, "service", "relays", `${name}.json`), "utf8"))).toEqual({ name, ...definition });
    rmSync(join(pulled, "service", "relays", "stripe.json"));
    const pruned = await runCommand(["sync", "--prune", "--yes"], { cwd: pulled, env });
    expect([pruned.code, `${pruned.said}${pruned.told}`]).toEqual([1, expect.stringContaining("archive follows stripe, so you cannot delete it")]);
  } finally {
    for (const folder of [server, pulled]) rmSync(folder, { recursive: true, force: true });
  }
});

test("relay validate and relay dev refuse a follower that acts on people if the sender of its source signs nothing", async () => {
  const source: Record<string, unknown> = { ...RECEIVER, trigger: { ...(RECEIVER["trigger"] as object), verify: { scheme: "shared_token" } } };
  const grants = receiverDefinition({
    name: "grants",
    verify: { scheme: "receiver", receiver: "stripe" },
    map: { event_id: "id", person_email: "email" },
    actions: [{ type: "grant_credits", amount: 1 }],
  });
  for (const definition of [source, grants]) writeFileSync(join(home, "service", "relays", `${definition["name"]}.json`), JSON.stringify(definition));
  const says = expect.stringContaining("this sender does not sign the event");
  const checked = await runCommand(["validate"], { cwd: home });
  expect([checked.code, `${checked.said}${checked.told}`]).toEqual([1, says]);
  await using dev = startCli(["dev", "--port", "0"], { cwd: home });
  await dev.line("Dashboard");
  expect(
    dev
      .lines()
      .filter((line) => line.includes("grants"))
      .join("\n"),
  ).toEqual(says);
  expect((await runCommand(["relays", "show", "grants"], { cwd: home })).code).toBe(1);
});
