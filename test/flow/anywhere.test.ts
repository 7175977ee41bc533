/**
 * Compares every command on a data directory with the same command on a server. The registry must list both targets, or the table here must say why a
 * command has only one.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { recordRunning } from "../../src/interfaces/cli/data-directory.ts";
import { COMMANDS } from "../../src/interfaces/cli/registry.ts";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { raiseProblem } from "../../src/platform/audit/problem.ts";
import { readPlace } from "../../web/base/place.ts";
import { type CommandResult, runCommand } from "../kit/cli-io.ts";
import { CALL, sendEvent, WRITE } from "../kit/event-flow.ts";
import { HOOK_SECRET } from "../kit/relay-definition.ts";
import { startRunningService } from "../kit/running-service.ts";
import { settle } from "../kit/virtual-clock.ts";

/** Maps each command that works only on a data directory to the reason. */
const HERE_ALONE: Readonly<Record<string, string>> = {
  dev: "it is the service",
  serve: "it is the service",
  ready: "it asks the service of this machine",
  init: "it writes files here",
  send: "it posts to a receiver URL, which --url names, as the sender does",
  "apps create": "a key is of one environment, and makes no app",
  "apps list": "a key is of one environment, and knows no other",
  "apps rename": "an app is of its owners, and a key is of one environment",
  "apps delete": "an app is deleted by its owners, in the dashboard or on the server",
  "keys create": "a key makes no key",
  "keys revoke": "a key revokes no key but its own: relay logout",
  "admin create": "an owner is made on the server",
  "admin reset": "an owner is made on the server",
  "admin list": "a key is of one environment, and owners are of the whole server",
  "admin sign-out": "a key is of one environment, and owners are of the whole server",
  "admin remove": "a key is of one environment, and owners are of the whole server",
  "admin audit": "a key is of one environment, and owners are of the whole server",
  "members list": "a key is of one environment, and members are of the whole server",
  "members invite": "a key is of one environment, and members are of the whole server",
  "members resend": "a key is of one environment, and members are of the whole server",
  "members change": "a key is of one environment, and members are of the whole server",
  "members remove": "a key is of one environment, and members are of the whole server",
  "members reset-factor": "a key is of one environment, and members are of the whole server",
  "members unlink": "a key is of one environment, and members are of the whole server",
  "members require-factor": "a key is of one environment, and members are of the whole server",
  backup: "a backup is a file of the server",
  "backups list": "a backup is a file of the server",
  "backups copy": "a backup is a file of the server",
  "backups endpoint": "a key is of one environment, and backups are of the whole server",
  "oidc provider": "members are of the whole server",
  "oidc passwords": "it is for a server whose provider is not available",
  "backups schedule": "a backup is a file of the server",
  restore: "a backup is a file of the server",
  move: "it moves the database of a stopped server",
  doctor: "it looks at the files",
};

/** Matches the names of commands that only read. */
const READING = / (list|show|get|tail)$/;

const running = await startRunningService({ ports: { mailer: { send: async () => ({ kind: "sent" as const }) }, resolveTxt: async () => [] } });
const ids: Record<string, string> = {};
const cwd = mkdtempSync(join(tmpdir(), "relay-anywhere-"));
let unnote = (): void => undefined;

beforeAll(async () => {
  const { api } = running;
  await running.service.store.write("app", (tx) => tx.run("UPDATE api_key SET last_used_at = ?1", running.clock.now()));
  unnote = recordRunning(running.dataDir, {
    url: running.service.baseUrl,
    near: running.service.url,
    limits: (await api("GET", "/settings")).body.settings.limits,
    allowPrivate: [],
  });
  await api("PUT", "/access/beta", { title: "The beta" });
  await api("PUT", "/products/lamp", { title: "Lamp", credits: 5 });
  await api("PUT", "/plans/pro", { title: "Pro", default: true });
  await api("PUT", "/plans/team", { title: "Team" });
  await api("POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" } } });
  const verify = { scheme: "signature", header: "x-signature", encoding: "hex", signedPayload: "{body}" };
  const trigger = { kind: "receiver", verify, map: { event_id: "id", person_email: "email" } };

  for (const [name, actions] of [
    ["orders", [WRITE]],
    ["notify", [CALL]],
    ["broken", [{ type: "grant_access", entitlement: "nothing-of-this-name" }]],
  ] as const)
    await api("POST", "/relays", { definition: { name, trigger, actions }, secret: HOOK_SECRET });
  await api("POST", "/relays", { definition: { name: "daily", trigger: { kind: "schedule", every: "1d", at: "09:00" }, actions: [CALL] } });
  await api("POST", "/relays/notify/pause", {});
  ids.person = (await api("POST", "/persons", { email: "ada@example.com" })).body.person.id;
  await api("POST", "/persons", { email: "bob@example.com" });
  await api("PATCH", `/persons/${ids.person}`, { status: "active" });
  await api("POST", `/persons/${ids.person}/grants`, { entitlement: "access:beta", reason: "a friend" });
  const grant = await api("POST", `/persons/${ids.person}/grants`, { entitlement: "team", reason: "for a while" });
  await api("DELETE", `/grants/${grant.body.grant?.id ?? grant.body.id}`);
  await api("POST", `/persons/${ids.person}/credits`, { amount: 7, reason: "welcome", key: "k1" });
  await api("POST", "/receipts", { kind: "subscription", ref: "sub1", person: ids.person, plan: "team", amountMinor: 100, currency: "EUR" });
  await api("POST", "/receipts", { kind: "purchase", ref: "r1", person: ids.person, product: "lamp", amountMinor: 100, currency: "EUR" });
  ids.event = await sendEvent(running, "one", { email: "ada@example.com" });
  await sendEvent(running, "one");
  await sendEvent(running, "two", {}, "notify");
  await running.hook("orders", { headers: { "x-signature": "0".repeat(64) }, body: "{}" });
  await running.hook("ordrs", { headers: {}, body: "{}" });
  await running.drain();
  await running.service.store.write("app", async (tx) => {
    const [row] = await tx.all<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
    const environmentId = row?.id ?? 0;
    const nowMs = running.clock.now();
    await raiseProblem(tx, { environmentId, code: "relay_silent", target: "relay:orders", message: "Nothing came.", nowMs });
    await raiseProblem(tx, { environmentId, code: "relay_misfit", target: "relay:orders", message: "It fails.", nowMs: nowMs + 1 });
    await raiseAlert(tx, { environmentId, code: "relay_failed", target: "relay:orders", message: "An event died.", nowMs });
  });
  await api("PUT", "/sender-domain", { domain: "example.com" });
  await running.clock.advance(2_000);
  await settle();
  await api("GET", "/calls");
  ids.call = (await api("GET", "/calls")).body.items[0].id;
});
afterAll(async () => {
  unnote();
  await running[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

const io = () => ({ cwd, clock: running.clock });
function here(line: string, input = ""): Promise<CommandResult> {
  return runCommand([...wordsOf(line), "--data-dir", running.dataDir], { ...io(), input, env: running.commandEnv });
}
function there(line: string, input = "", env: Record<string, string> = {}): Promise<CommandResult> {
  const given = { RELAY_KEY: running.keys.development ?? "", ...env };
  return runCommand([...wordsOf(line), "--url", running.service.url], { ...io(), input, env: given });
}
const wordsOf = (line: string): string[] =>
  line
    .replace(/\{(\w+)\}/g, (_all, name) => ids[name] ?? "")
    .match(/'[^']*'|\S+/g)
    ?.map((word) => word.replace(/^'|'$/g, "")) ?? [];

/** Maps each command that reads to its arguments. `events tail` and `requests tail` are stopped at once and print nothing. */
const READS: Readonly<Record<string, readonly string[]>> = {
  "relays list": ["", "--limit 1"],
  "relays show": ["orders", "notify", "broken", "daily", "nobody"],
  "relays funnel": ["orders", "notify", "broken", "daily", "nobody"],
  "relays checklist": ["orders", "notify", "broken", "daily", "nobody"],
  "events list": [
    "",
    "--relay orders",
    "--state done",
    "--person ada@example.com",
    "--person nobody@example.com",
    "--text one",
    "--since 2020-01-01",
    "--until 2020-01-01",
    "--limit 1",
    "--trigger schedule",
  ],
  "events show": ["{event}", "evt_nothing"],
  "events replay": ["{event} --plan", "evt_nothing --plan"],
  "events tail": ["", "--relay orders"],
  "requests list": ["", "--relay orders", "--outcome refused", "--outcome duplicate", "--limit 1", "--since 2100-01-01"],
  "requests show": ["{call}", "cal_nothing"],
  "requests tail": [""],
  "problems list": ["", "--all", "--limit 1"],
  "alerts list": ["", "--all"],
  "alerts channels": ["--kinds"],
  "limits list": [""],
  "replays list": ["", "--limit 1"],
  "replays start": ["--plan", "--plan --relay orders --state failed", "--plan --person nobody@example.com"],
  "people list": ["", "--text ada", "--status invited", "--limit 1"],
  "people show": ["ada@example.com", "{person}", "bob@example.com", "nobody@example.com", "per_nothing"],
  "audit list": ["", "--target relay:orders", "--action nothing", "--runs --limit 2", "--actor owner:nobody@example.com"],
  "catalog list": ["", "plan", "collection"],
  "settings get": ["", "mail", "limits", "nothing"],
  "domain show": [""],
  "emails list": ["", "--state failed"],
  "emails stopped": ["", "--limit 1"],
  "records list": ["orders", "orders --text one", "orders --owner ada@example.com", "nothing"],
  "records show": ["orders rec_nothing", "nothing rec_nothing"],
  "files list": ["", "--limit 1"],
  "receipts list": ["", "--ref nothing", "--person ada@example.com", "--kind refund"],
  "keys list": [""],
};

/** Lists commands that write: the line, its input, and a part of its output that proves the effect. */
const ACTS: readonly [line: string, input: string, told: string][] = [
  ["relays pause orders", "", "orders is paused"],
  ["relays resume orders", "", "orders is resumed"],
  ["relays rotate-secret notify --signing", "", "Copy the new signing secret of notify now: it is shown once"],
  [
    "relays set-secret orders --overlap 60",
    "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnT",
    "The new secret of orders is stored. The previous secret is valid until",
  ],
  ["events replay {event}", "", "is queued again"],
  ["events expunge {event}", "", "is expunged"],
  ["alerts resolve --all", "", "is resolved: relay_failed"],
  ["alerts add-channel slack --name Ops", "https://hooks.slack.com/services/T0/B0/x", "Ops is added. Send a test"],
  ["alerts set-channel Ops --alert relay_failed", "", "Ops is changed."],
  ["alerts remove-channel Ops --confirm Ops", "", "Ops is removed."],
  ["catalog set access gamma '{}'", "", "The access gamma is saved."],
  [`catalog set product mug '{"title":"Mug"}'`, "", "The product mug is saved."],
  ["catalog set plan gold '{}'", "", "The plan gold is saved."],
  [`catalog set collection notes '{"kind":"shared","fields":{"text":{"type":"text"}}}'`, "", "The collection notes is saved."],
  [`catalog set collection notes '{"kind":"shared","fields":{"words":{"type":"text"}}}'`, "", "The collection notes is saved."],
  ["catalog delete collection notes --force", "", "The collection notes is deleted."],
  ["catalog delete access gamma", "", "The access gamma is deleted."],
  ["catalog delete product mug", "", "The product mug is deleted."],
  ["catalog delete plan gold", "", "The plan gold is deleted."],
  ["people grant ada@example.com access:beta --until 30d", "", "ada@example.com has access:beta now. The grant expires at 20"],
  ["people credits ada@example.com 5 --reason welcome", "", "ada@example.com has"],
  ["people suspend ada@example.com", "", "ada@example.com is suspended"],
  ["people activate ada@example.com", "", "ada@example.com is active again."],
  [`people set ada@example.com '{"team":"red"}'`, "", "ada@example.com has the attributes team now."],
  ["people end ada@example.com access:beta", "", "The access of ada@example.com to access:beta has ended"],
  ["settings set held on", "", "held is on since"],
  ["settings set held off", "", "held is off."],
  ["settings set processorSecret", "a-secret-of-the-processor-1234567890", "processorSecret is set"],
  ["settings set mail.fromName Shop", "", "mail.fromName is Shop."],
  ["domain set shop.example.com", "", "Create this DNS record"],
  ["domain remove --confirm shop.example.com", "", "shop.example.com is removed"],
  ["domain remove", "", "There is no sender domain: nothing changed."],
  ["people invite dora@example.com", "", "dora@example.com is added, and no mail was sent."],
  ["people add-token dora@example.com", "tok-dora", "The token is added to dora@example.com"],
  ["people remove-token dora@example.com tok-dora", "", "The token is removed from dora@example.com"],
  ["people link dora@example.com --customers orders cus_dora", "", "cus_dora of orders is linked to dora@example.com."],
  ["people unlink dora@example.com --customers orders cus_dora", "", "cus_dora of orders is removed from dora@example.com."],
  ["people stop-mail dora@example.com", "", "dora@example.com no longer gets mail of kind event"],
  ["people allow-mail dora@example.com", "", "dora@example.com gets mail of kind event again"],
  ["receipts record pay_9 --person dora@example.com --product lamp --confirm pay_9", "", "The payment pay_9 is recorded"],
  ["files upload --name note.txt", "hello", "note.txt is stored as fil_"],
  ["relays delete broken --confirm broken", "", "broken is deleted: "],
];
/** Lists commands that both targets must reject with the same message. */
const REFUSED_ALIKE: readonly string[] = [
  "relays pause nobody",
  "relays rotate-secret nobody",
  "relays set-secret nobody",
  "events replay evt_nothing",
  "events expunge evt_nothing",
  "alerts resolve alt_nothing",
  "alerts add-channel slack --field url=https://evil.example/x",
  "alerts add-channel pager",
  "alerts set-channel nobody --name x",
  "alerts remove-channel nobody --confirm nobody",
  'catalog set product lamp \'{"credits":"many"}\'',
  "catalog delete plan nothing",
  "settings set connector.writes maybe",
  "settings set mail.smtp '{}'",
  "people grant ada@example.com nothing",
  "people grant nobody@example.com access:beta",
  "people credits ada@example.com 900000 --spend --reason x",
  "people credits nobody@example.com 5 --reason x",
  "people suspend nobody@example.com",
  "people set nobody@example.com '{}'",
  "people end ada@example.com nothing",
  "people invite nobody",
  "people add-token nobody@example.com tok-1",
  "people remove-token ada@example.com tok-nothing",
  "people link nobody@example.com --customers orders cus_1",
  "people link ada@example.com --customers nothing cus_1",
  "people unlink ada@example.com --customers orders cus_nothing",
  "people stop-mail nobody@example.com",
  "relays delete nobody --confirm nobody",
  "relays delete orders",
  "domain remove --confirm nothing",
  "receipts refund nothing --confirm nothing",
  "files delete fil_nothing --confirm fil_nothing",
  "files download fil_nothing",
  "receipts record pay_9 --person nobody@example.com --product lamp --confirm pay_9",
  "receipts record pay_9 --person per_nothing --product lamp --confirm pay_9",
  "receipts record pay_9 --person ada@example.com --product nothing --confirm pay_9",
  "people end nobody@example.com pro",
  "emails resend eml_nothing",
  "emails test --to nobody@example.com",
  "domain set nonsense",
];

test("every command that takes a data directory also takes a server or says why not, and the table holds each one that reads", () => {
  const open = COMMANDS.map(({ words, options }) => ({ name: words.join(" "), takes: options.map(({ name }) => name) }));
  const missing = open.filter(({ name, takes }) => takes.includes("data-dir") && !takes.includes("profile") && !Object.hasOwn(HERE_ALONE, name));
  expect(missing.map(({ name }) => name)).toEqual([]);
  const untested = open.filter(({ name, takes }) => takes.includes("profile") && READING.test(name) && !Object.hasOwn(READS, name));
  expect(untested.map(({ name }) => name)).toEqual([]);
  for (const name of Object.keys(HERE_ALONE)) expect(open.map((one) => one.name)).toContain(name);
});

const LINES = Object.entries(READS).flatMap(([name, all]) => all.flatMap((more) => [`${name} ${more}`.trim(), `${name} ${more} --json`.trim()]));

/** Matches the lines whose docs address depends on the target. */
const CODE_LINE = /^(\w+) {2}\S+ {2}/gm;
const plainly = ({ code, said, told }: CommandResult) => ({
  code,
  said: said.replace(/"docs": "[^"]*"/, ""),
  told: told.replace(CODE_LINE, "$1  "),
});

describe("a command that reads prints the same for a server and for its data directory", () => {
  test.each(LINES)("%s", async (line) => {
    const [near, far] = [await here(line), await there(line)];
    expect(plainly(far)).toEqual(plainly(near));
    if (!/nobody|nothing|tail|records|files|replays|receipts|duplicate|2100|2020|schedule|failed|emails|domain/.test(line))
      // A relay that has an open step exits with 3.
      expect([line, line.startsWith("relays checklist") ? [0, 3] : [0], near.said.length > 20]).toEqual([
        line,
        expect.arrayContaining([near.code]),
        true,
      ]);
  });
});

/** The pages of the dashboard. Their modules need a browser, so the test reads the text. */
const PAGES = readFileSync(join(import.meta.dir, "../../web/shell/navigation-pages.ts"), "utf8");

describe("--web opens the page of an item at the service, and prints its address", () => {
  const opened: string[] = [];
  const open = async (line: string, target: readonly string[]): Promise<CommandResult> =>
    await runCommand([...wordsOf(line), "--web", ...target], {
      ...io(),
      env: { ...running.commandEnv, RELAY_KEY: running.keys.development ?? "" },
      openBrowser: (link) => Promise.resolve(opened.push(link) > 0),
    });

  beforeAll(async () => {
    ids.record = JSON.parse((await here("records list orders --json")).said).items[0].id;
  });

  test.each([
    ["relays show orders", "/orders"],
    ["events show {event}", "/{event}"],
    ["people show ada@example.com", "/{person}"],
    ["records show orders {record}", "/orders/{record}"],
    ["requests show {call}", "?relay=or"],
  ])("%s", async (line, ending) => {
    const { service, dataDir } = running;
    for (const [origin, target] of [
      [service.baseUrl, ["--data-dir", dataDir]],
      [service.url, ["--url", service.url]],
    ] as const) {
      opened.length = 0;
      const { code, said, told } = await open(line, target);
      expect({ code, told, opened }).toEqual({ code: 0, told: "", opened: [said] });
      expect(said).toStartWith(`${origin}/apps/app_test/development/`);
      expect(said).toContain(wordsOf(ending)[0] ?? "?");
      expect(PAGES).toContain(`path: "${readPlace(new URL(said).pathname)?.rest[0]}"`);
    }
  });

  test("says what to do without a browser, and opens nothing for an item that does not exist", async () => {
    const { said, told } = await here("events show {event} --web");
    expect(said).toStartWith("http");
    expect(told).toBe("No browser is available here: open the address yourself.");
    for (const line of ["events show evt_nothing", "people show nobody@example.com", "people show per_nobody", "relays show nobody"]) {
      const { code, told: refusal } = await there(line);
      expect(code).toBe(1);
      expect(await there(`${line} --web`)).toMatchObject({ code, said: "", told: refusal });
    }
  });
});

describe("a command that writes has the same effect on a server", () => {
  test.each(REFUSED_ALIKE)("%s is rejected on both", async (line) => {
    const [near, far] = [await here(line, "x"), await there(line, "x")];
    expect(far.code).toBe(near.code);
    expect(far.code).not.toBe(0);
    expect(plainly(far).told.split("\n").at(-1)).toBe(plainly(near).told.split("\n").at(-1) ?? "");
  });

  test.each(ACTS)("%s", async (line, input, words) => {
    const { code, told } = await there(line, input);
    expect({ code, told }).toEqual({ code: 0, told: expect.stringContaining(words) });
    await running.drain();
  });

  test("is audited under the key that ran it", async () => {
    const { items } = (await running.api("GET", "/audit?target=relay:orders")).body;
    expect(items.filter(({ actor }: { actor: string }) => actor.startsWith("key:")).length).toBeGreaterThan(1);
  });

  test("rejects another environment than the key's, and changes nothing", async () => {
    const { code, told } = await there("relays pause orders --environment production");
    expect({ code, told }).toEqual({ code: 1, told: expect.stringContaining("wrong_environment") });
    expect((await running.api("GET", "/relays/orders")).body.relay.state).toBe("active");
  });
});

test("setting a secret next to a running server says that the server reads it within a second", async () => {
  const { code, told } = await here("settings set processorSecret", "a-secret-of-the-processor-0987654321");
  expect({ code, told }).toEqual({ code: 0, told: expect.stringContaining("The running service reads the change within a second.") });
});

test("relay changes prints the changes of the named server", async () => {
  const [near, far] = [await runCommand(["changes", "--json"], io()), await runCommand(["changes", "--json", "--url", running.service.url], io())];
  expect(far).toEqual(near);
  expect((await runCommand(["changes", "--url", "http://relay.example.com"], io())).code).toBe(2);
});
