/** relay relays on a data directory: what it shows, changes, audits and refuses. Secrets appear once, and no command creates its own master key. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { SYSTEM } from "../../src/base/system.ts";
import type { Api } from "../../src/interfaces/cli/api/api.ts";
import { recordRunning } from "../../src/interfaces/cli/data-directory.ts";
import { listRelays } from "../../src/interfaces/cli/relays/request.ts";
import { listEnvironments } from "../../src/platform/account/environment.ts";
import { raiseProblem } from "../../src/platform/audit/problem.ts";
import { setServerSecrets } from "../../src/platform/secret/local-secrets.ts";
import { openSealer } from "../../src/rules/relay/master-key-proof.ts";
import { relayTarget } from "../../src/rules/relay/relay.ts";
import { createRelay } from "../../src/rules/relay/relay-save.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { type CommandResult, runCommand } from "../kit/cli-io.ts";
import { CALL, HMAC, OWNER, receiver, schedule } from "../kit/relay-kit.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const MASTER_KEY = Buffer.alloc(32, 9).toString("base64");
const NOW_MS = Date.UTC(2030, 0, 1);
const cwd = mkdtempSync(join(tmpdir(), "relay-cli-relay-"));
const dataDir = join(cwd, ".relay");
afterAll(() => rmSync(cwd, { recursive: true }));

const run = (line: string, { input = "", env = { RELAY_MASTER_KEY: MASTER_KEY } as Record<string, string> } = {}): Promise<CommandResult> =>
  runCommand(line.split(" "), { cwd, input, env });

beforeAll(async () => {
  expect((await run("apps create Shop --id app_test")).code).toBe(0);
  const clock = new VirtualClock(NOW_MS);
  const store = await openSqlite(join(dataDir, "relay.db"), { clock });
  const sealer = await openSealer(store, { dataDir, masterKey: MASTER_KEY });
  const environments = await store.read((tx) => listEnvironments(tx, "app_test"));
  const environment = environments.find(({ name }) => name === "development");
  if (environment === undefined) throw new Error("There is no development.");
  const context = { environment, actor: OWNER, nowMs: NOW_MS, limits: DEFAULT_LIMITS, sealer, baseUrl: "https://relay.example.com" };
  await store.write("app", async (tx) => {
    for (const definition of [receiver("orders"), receiver("meta", { ...HMAC, handshake: "meta" }), schedule("nightly", [CALL])])
      await createRelay(tx, context, { definition, secret: null, signingSecret: null, origin: { kind: "dashboard", synced: false } });
    const problem = { environmentId: environment.id, code: "relay_refusing", target: relayTarget("orders") } as const;
    await raiseProblem(tx, { ...problem, message: "orders has refused \u001b[31mevery call.", nowMs: NOW_MS });
  });
  await store.close();
});

test("list shows state, trigger, last event, last day, next tick and problems, in columns and as JSON", async () => {
  const { said } = await run("relays list");
  expect(said).toMatch(/^NAME +STATE +HEALTH +TRIGGER +LAST EVENT +LAST 24 H +NEXT TICK +PROBLEMS\n/);
  expect(said).toMatch(/nightly +active +.*09:00.* never +no events +2030-01-0\dT09:00:00\.000Z/);
  expect(said).toMatch(/orders +active +.* never +no events +relay_refusing/);
  const { items } = JSON.parse((await run("relays list --json")).said);
  expect(items.map(({ name, problems }: { name: string; problems: unknown[] }) => [name, problems.length])).toEqual([
    ["orders", 1],
    ["meta", 0],
    ["nightly", 0],
  ]);
});

test.each([
  ["--limit 9", ["orders", "meta", "nightly"]],
  ["--sort name", ["meta", "nightly", "orders"]],
  ["--sort traffic --limit 1", ["meta"]],
  ["--state refusing", ["orders"]],
  ["--state new --search night", ["nightly"]],
  ["--search WEBHOOK --sort newest", ["meta", "orders"]],
  ["--state failing", []],
])("list %s shows the relays in that order", async (options, names) => {
  const { items } = JSON.parse((await run(`relays list --json ${options}`)).said);
  expect(items.map(({ name }: { name: string }) => name)).toEqual(names);
});

test.each([
  ["relays list --sort age", '--sort is "age": write one of newest, trouble, traffic, name.'],
  ["relays list --state fail", '--state is "fail": '],
])("%s is refused with the choices", async (line, words) => {
  const { code, told } = await run(line);
  expect([code, told]).toEqual([2, expect.stringContaining(words)]);
});

const OLD = new Refusal("invalid_input", "sort is unknown.", { problems: [{ field: "sort", message: "sort is unknown." }] });
test.each([
  ["lists the newest first where nothing is chosen", { sort: null, state: null, search: null }, []],
  ["refuses a chosen order", { sort: "name", state: null, search: null }, OLD],
] as const)("a server of an earlier version %s", async (_what, query, expected) => {
  const list = async (_path: string, asked: { sort?: string } = {}) => {
    if (asked.sort !== undefined) throw OLD;
    return { items: [], next: null };
  };
  const api: Api = Object.assign(Object.create(null), { list, request: async () => ({ settings: { heldAt: null } }) });
  const listed = await listRelays(api, query, 9).then(
    ({ items }) => items,
    (error: unknown) => error,
  );
  expect(listed).toEqual(expected);
});

test("a list without a match says so", async () => {
  const { said, told } = await run("relays list --search nowhere");
  expect(said + told).toContain("No relays match.");
});

test("show lists what stops the relay: problems, missing parts, a pause and a hold, each with the command that fixes it", async () => {
  expect((await run("relays pause orders")).told).toContain("orders is paused: new events wait until relay relays resume orders.");
  expect((await run("settings set held on")).code).toBe(0);
  const { said } = await run("relays show orders --base-url https://relay.example.com");
  for (const line of [
    /^orders {2}paused, on hold {2}version 1, saved 2030-/,
    /receiver +https:\/\/relay\.example\.com\/hooks\/app_test\/orders/,
    /last event +never/,
    /secret +minted, since 2030-.*, hmac:/,
    /waits +The environment has been on hold since .*relay settings set held off/,
    /waits +The relay is paused: resume it with relay relays resume orders/,
    /problem +relay_refusing: orders has refused/,
    /warning +`actions\.0\.collection`: there is no collection named orders/,
    /requests +No request has arrived yet/,
  ])
    expect(said).toMatch(line);
  expect(said).not.toContain("\u001b");
  expect(JSON.parse((await run("relays show orders --json")).said)).toMatchObject({ relay: { name: "orders", state: "paused" }, calls: [] });
  expect((await run("relays resume orders")).told).toContain("on hold, so nothing runs until relay settings set held off");
  expect((await run("settings set held off")).code).toBe(0);
});

test("prints a secret to stdout once, and nowhere else", async () => {
  const { code, said, told } = await run("relays rotate-secret orders --overlap 60");
  expect({ code, one: said.split("\n").length }).toEqual({ code: 0, one: 1 });
  expect(said).toMatch(/^rcv_\S{40,}$/);
  expect(told).not.toContain(said);
  expect(told).toContain("The previous secret is valid until 2030-01-01T00:01:00.000Z");
  expect((await run("relays show orders --json")).said).not.toContain(said);
  const signing = await run("relays rotate-secret nightly --signing --json");
  expect(JSON.parse(signing.said)).toMatchObject({ relay: "nightly", signingSecret: expect.any(String) });
  expect(signing.told).not.toContain(JSON.parse(signing.said).signingSecret);
  const secret = "theirs_0123456789_theirs_0123456789";
  const pasted = await run("relays set-secret orders", { input: `${secret}\n` });
  expect(pasted).toMatchObject({ code: 0, said: "" });
  expect(pasted.told).not.toContain(secret);
  expect((await run("relays show orders")).said).toMatch(/secret +pasted/);
});

const refused: [string, string, number, string][] = [
  ["a relay that does not exist", "relays show order", 1, "relay relays list shows the existing ones"],
  ["an unknown word", "relays stop orders", 2, "list, show, funnel, checklist, cases, rejected, skipped, pause, resume, retry, delete, history"],
  ["nothing on standard input", "relays set-secret orders", 2, "Standard input was empty"],
  ["a signing secret for a relay that signs nothing", "relays rotate-secret orders --signing", 1, "no call_url action"],
  ["an overlap of eight days", "relays rotate-secret orders --overlap 691200", 2, "from 0 to 604800"],
  ["an overlap of eight days of a signing secret", "relays rotate-secret nightly --signing --overlap 691200", 2, "from 0 to 604800"],
];
test.each(refused)("refuses %s", async (_what, line, code, words) => {
  const done = await run(line);
  expect({ code: done.code, said: done.said }).toEqual({ code, said: "" });
  expect(done.told).toContain(words);
});

const absent: [line: string, words: string][] = [
  ["relays show order", 'There is no relay "order" in this environment: relay relays list shows'],
  ["relays pause nowhere", 'There is no relay "nowhere" in this environment: relay relays list shows'],
  ["events show evt_x", "There is no event evt_x in this environment, where events are kept for 30 days: relay events list shows"],
  ["events replay evt_x", "There is no event evt_x in this environment, where events are kept for 30 days: relay events list shows"],
  ["keys revoke key_x", "There is no active key key_x in this environment: relay keys list shows"],
  ["alerts resolve alt_x", "There is no alert alt_x in this environment: relay alerts list shows"],
  ["replays stop bulk_x", "There is no bulk replay bulk_x in this environment: relay replays list shows"],
  ["calls show call_x", 'There is no request "call_x" in this environment: relay requests list shows'],
  ["emails resend eml_x", "There is no mail eml_x in this environment: relay emails list shows"],
  ["events list --person nobody", '--person is not valid: No person "nobody" exists in this environment: relay people list shows'],
  ["people show nobody", 'No person "nobody" exists in this environment: relay people list shows'],
  ["replays start --yes", "No events match, so nothing is replayed. relay events list --state dead shows"],
  ["backup copy.db --data-dir elsewhere", "elsewhere/relay.db: name the server's folder with --data-dir or RELAY_DATA_DIR."],
];
test.each(absent)("reports what does not exist, and where to look: %s", async (line, words) => {
  expect((await run(line)).told).toContain(words);
});

test.each([
  ["relays rotate-secret orders", ""],
  ["settings set processorSecret", "psec_0123456789abcdef0123456789abcdef"],
])("%s requires the server's master key, and creates none", async (line, input) => {
  const { code, told } = await run(line, { input, env: {} });
  expect(code).toBe(1);
  expect(told).toContain("set RELAY_MASTER_KEY to the key");
  expect(existsSync(join(dataDir, "master.key"))).toBe(false);
});

test("a hold and a pause require no master key, and create none, also for a relay whose handshake has a token", async () => {
  const relays = ["orders", "meta"].flatMap((name) => [`relays pause ${name}`, `relays resume ${name}`]);
  for (const line of ["settings set held on", "settings get held", "settings set held off", ...relays])
    expect(await run(line, { env: {} })).toMatchObject({ code: 0 });
  expect(existsSync(join(dataDir, "master.key"))).toBe(false);
});

test("a new data directory gets its master key with the first secret, and not before", async () => {
  const fresh = mkdtempSync(join(tmpdir(), "relay-cli-key-"));
  const key = join(fresh, ".relay", "master.key");
  const runFresh = (line: string, input = "") => runCommand(line.split(" "), { cwd: fresh, input });
  expect((await runFresh("apps create Shop --id shop")).code).toBe(0);
  for (const line of ["people invite ada@example.com", "settings set held on"])
    expect([line, (await runFresh(`${line} --environment development`)).code]).toEqual([line, 0]);
  expect(existsSync(key)).toBe(false);
  const set = await runFresh("settings set processorSecret --environment development", "psec_0123456789abcdef0123456789abcdef");
  expect([set.code, existsSync(key)]).toEqual([0, true]);
  rmSync(fresh, { recursive: true });
});

test("shows the limits of the running server, and whose limits they are", async () => {
  const own = await run("settings get limits.relaysPerEnvironment", { env: { RELAY_LIMIT_RELAYS: "33" } });
  expect(own.said).toMatch(/relaysPerEnvironment +33$/);
  expect(own.told).toContain("RELAY_LIMIT_… variables of this command");
  const forget = recordRunning(dataDir, {
    url: "https://relay.example.com",
    near: "http://127.0.0.1:1",
    limits: { ...DEFAULT_LIMITS, relaysPerEnvironment: 44 },
    allowPrivate: [],
  });
  const served = await run("settings get limits.relaysPerEnvironment", { env: { RELAY_LIMIT_RELAYS: "33" } });
  expect(served.said).toMatch(/relaysPerEnvironment +44$/);
  expect(served.told).toContain("the limits with which the server started");
  expect(readFileSync(join(dataDir, "running.json"), "utf8")).not.toContain("secret");
  // A pause and a hold apply as soon as they are stored. The service checks the file once a second for work that it may resume.
  expect((await run("relays pause orders")).told).toEndWith("until relay relays resume orders.");
  expect((await run("relays resume orders")).told).toEndWith("The running service reads the change within a second.");
  expect((await run("settings set held on")).told).not.toContain("within a second");
  expect((await run("settings set held off")).told).toEndWith(". The running service reads the change within a second.");
  for (const line of ["relays rotate-secret orders --overlap 60", "relays end-overlap orders", "relays rotate-secret orders"])
    expect((await run(line)).told).toEndWith(". The running service reads the change within a second.");
  expect((await run("settings set connector.writes on")).told).toBe("connector.writes is on.");
  forget();
  expect((await run("settings set held off")).told).toBe("held is off.");
  expect((await run("relays pause orders")).told).toEndWith("until relay relays resume orders.");
  expect((await run("relays resume orders")).told).toEndWith("no event of the last 24 hours waits.");
});

test("send with a server running uses the secret that a sync stored for it, and names where it looked", async () => {
  const heard: string[] = [];
  await using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      heard.push(new URL(request.url).pathname);
      return Response.json({ received: true, ignored: "when" });
    },
  });
  const url = server.url.origin;
  const forget = recordRunning(dataDir, { url, near: url, limits: {}, allowPrivate: [] });
  const place = `${url}/app_test/development`;
  expect((await run("send orders")).told).toContain(`.secrets.json under ${place}: set RELAY_SECRET`);
  await setServerSecrets(join(cwd, "service"), place, new Map([["orders", { receiverSecret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }]]));
  const { told } = await run("send orders");
  expect([heard, told]).toEqual([["/hooks/app_test/orders"], expect.stringContaining(`200 from ${url}/hooks/app_test/orders`)]);
  forget();
});

test("a command next to a running server can reach the private addresses that the server allows", async () => {
  const set = ["settings", "set", "mail.smtp", '{"host":"10.0.0.9","port":25,"security":"none"}'];
  const told = async () => (await runCommand(set, { cwd, env: { RELAY_MASTER_KEY: MASTER_KEY } })).told;
  expect(await told()).toContain("--allow-private");
  const forget = recordRunning(dataDir, { url: "https://relay.example.com", near: "http://127.0.0.1:1", limits: {}, allowPrivate: ["10.0.0.0/8"] });
  expect(await told()).not.toContain("--allow-private");
  forget();
  expect(await told()).toContain("--allow-private");
});

test("suggests the relay's name for a mistyped one, in a refusal and in a filter", async () => {
  expect((await run("relays show order")).told).toContain("Did you mean orders?");
  expect((await run("relays pause nightli --json")).said).toContain("Did you mean nightly?");
  expect((await run("calls list --relay ordres")).told).toBe('No requests match.\nThere is no relay "ordres": did you mean orders?');
  expect((await run("calls list --relay frobnicate")).told).toBe("No requests match.");
  for (const command of ["events list", "events tail", "replays start --plan"])
    expect(await run(`${command} --relay ordres`)).toMatchObject({ code: 1, told: expect.stringContaining("did you mean orders?") });
  expect((await run("events list --relay orders")).told).toBe("No events match.");
});

test("completion lists the names of relays, and prints nothing if it cannot read them", async () => {
  expect((await run("__complete = relays show")).said.split("\n")).toEqual(["meta", "nightly", "orders"]);
  expect((await run("__complete =or events list --relay")).said).toBe("orders");
  expect((await run("__complete =--relay=o events list")).said).toBe("--relay=orders");
  // The shell completes paths itself when a path is a whole word.
  expect((await run("__complete =back restore")).said).toBe(":files");
  expect((await run("__complete = restore --key")).said).toBe(":files");
  expect(await run("__complete =--key= restore copy.db")).toEqual({ code: 0, said: "", told: "" });
  const { said } = await run("completion powershell");
  expect([said.includes('$value -ne ":files" -and $value -ne ":folders"'), said.includes("Get-ChildItem")]).toEqual([true, false]);
  expect(await run("__complete = relays show --data-dir nowhere")).toEqual({ code: 0, said: "", told: "" });
  expect(await run("__complete = frobnicate")).toEqual({ code: 0, said: "", told: "" });
});

test("a search for names prints no message", async () => {
  const env = { HOME: join(cwd, "home"), APPDATA: join(cwd, "home"), RELAY_PROFILE: "shop" };
  const file = join(SYSTEM.settingsFolder(env) ?? "", "relay", "profiles.json");
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const profile = {
    url: "http://127.0.0.1:1",
    app: "shop",
    environment: "development",
    key: "relay_dev_0",
    owner: "ann@example.com",
    endsAt: "2031-01-01T00:00:00.000Z",
  };
  writeFileSync(file, JSON.stringify({ default: null, profiles: { shop: profile } }), { mode: 0o600 });
  expect((await run("relays list", { env })).told).toContain("from RELAY_PROFILE");
  expect(await run("__complete = relays show", { env })).toEqual({ code: 0, said: "", told: "" });
});

test("config shows each value with its source, and no secret", async () => {
  const env = { RELAY_MASTER_KEY: MASTER_KEY, RELAY_PORT: "8000", RELAY_LIMIT_RELAYS: "30", RELAY_KEY: "relay_dev_0123456789abcdefghijk" };
  const { said } = await run("config --json --concurrency 4", { env });
  const { items } = JSON.parse(said);
  const from = (name: string) => items.find((one: { name: string }) => one.name === name);
  expect(from("port")).toEqual({ name: "port", value: "8000", from: "RELAY_PORT" });
  expect(from("concurrency")).toEqual({ name: "concurrency", value: "4", from: "--concurrency" });
  expect(from("data-dir")).toEqual({ name: "data-dir", value: dataDir, from: "default" });
  expect(from("limits.relaysPerEnvironment")).toEqual({ name: "limits.relaysPerEnvironment", value: "30", from: "RELAY_LIMIT_RELAYS" });
  expect(from("master-key")).toEqual({ name: "master-key", value: "••••", from: "RELAY_MASTER_KEY" });
  expect(from("key")).toMatchObject({ from: "RELAY_KEY", value: expect.stringMatching(/^relay_dev_….{4}$/) });
  for (const secret of [MASTER_KEY, env.RELAY_KEY]) expect(said).not.toContain(secret);
});
