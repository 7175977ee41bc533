/** The settings, catalog, people, domain, problems and alerts commands on a data directory: what they show, change, audit and refuse. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { insertEvent, makePayload } from "../../src/engine/event/insert.ts";
import { raiseAlert } from "../../src/platform/audit/alert.ts";
import { raiseProblem } from "../../src/platform/audit/problem.ts";
import { grantManually } from "../../src/shop/people/access-grant.ts";
import { addCreditsManually } from "../../src/shop/people/credit.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { type CommandResult, runCommand } from "../kit/cli-io.ts";
import { relayOf, seqOf } from "../kit/event-sql.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const cwd = mkdtempSync(join(tmpdir(), "relay-cli-care-"));
afterAll(() => rmSync(cwd, { recursive: true }));
const run = (line: string | string[], input = ""): Promise<CommandResult> =>
  runCommand(typeof line === "string" ? line.split(" ") : line, { cwd, input });
const NOW_MS = Date.UTC(2030, 0, 1);
let personId: string;

async function within<Result>(work: (store: Awaited<ReturnType<typeof openSqlite>>, environmentId: number) => Promise<Result>): Promise<Result> {
  const store = await openSqlite(join(cwd, ".relay", "relay.db"), { clock: new VirtualClock(NOW_MS) });
  try {
    const row = await store.read((tx) => tx.get<{ id: number }>("SELECT id FROM environment WHERE name = 'development'"));
    return await work(store, row?.id ?? 0);
  } finally {
    await store.close();
  }
}

async function audited(): Promise<string[]> {
  const sql = "SELECT actor, action, target FROM audit ORDER BY seq";
  const rows = await within((store) => store.read((tx) => tx.all<{ actor: string; action: string; target: string }>(sql)));
  return rows.map(({ actor, action, target }) => `${actor} ${action} ${target}`);
}

beforeAll(async () => {
  expect((await run("apps create Shop --id app_test")).code).toBe(0);
  for (const [kind, name, json] of [
    ["access", "beta", "{}"],
    ["plan", "free", '{"default":true}'],
  ])
    expect((await run(["catalog", "set", kind ?? "", name ?? "", json ?? ""])).code).toBe(0);
  personId = await within((store, environmentId) =>
    store.write("app", async (tx) => {
      const invite = { environmentId, email: "ada@example.com", createdBy: "test", nowMs: NOW_MS, invitesPerDay: 9 };
      const { person } = await invitePerson(tx, invite);
      const grant = { environmentId, personId: person.id, entitlement: "access:beta", by: "owner:o@example.com", nowMs: NOW_MS };
      await grantManually(tx, { ...grant, reason: "early \u001b[31mbird", expiresAtMs: null }).catch(() => undefined);
      await grantManually(tx, { ...grant, reason: "early bird", expiresAtMs: null });
      await addCreditsManually(tx, { ...grant, amount: 7, reason: "welcome", key: "k1" });
      const payload = makePayload({
        event: { note: `${"long ".repeat(200)}END` },
        mapped: { order: "A-1001", buyer: "Ada Lovelace of London", note: "the second of two parcels", from: "shop.example.com" },
      });
      const row = { ...(await relayOf(tx, environmentId, "rly_a", "orders")), payload, unsigned: false, dedupe: null, nowMs: NOW_MS };
      const { id } = await insertEvent(tx, { ...row, trigger: "receiver" });
      await tx.run("UPDATE event SET state = 'done', person_id = ?2 WHERE seq = ?1", seqOf(id), person.id);
      return person.id;
    }),
  );
});

describe("relay people", () => {
  test("list shows the people of the environment", async () => {
    expect((await run("people list")).said).toMatch(
      /^SINCE +STATUS +HAS ACCESS +ACCESS TO +CREDITS +ADDRESS +ID\n2030-01-01T00:00:00.000Z {2}invited {2}never expires {2}access:beta +7 +ada@example.com {2}per_/,
    );
    expect((await run("people list --text nobody")).told).toBe("No people match.");
  });

  test.each(["address", "id"])("show by %s prints the person's access with its reasons and dates, and the last events", async (by) => {
    const { code, said } = await run(["people", "show", by === "id" ? personId : "ADA@example.com"]);
    expect(code).toBe(0);
    const lines = said.split("\n");
    expect(lines[0]).toStartWith("ada@example.com  invited  per_");
    expect(lines).toContain("  plan      free");
    expect(lines).toContain("  credits   7");
    expect(said).toContain("  access    access:beta since 2030-01-01T00:00:00.000Z, never expires, by hand owner:o@example.com");
    expect(said).toContain("early bird");
    expect(said).toMatch(/ {2}2030-01-01T00:00:00.000Z {2}done {8}.* at orders: done.* {2}evt_/);
    expect(said).toMatch(/ {2}2030-01-01T00:00:00.000Z {2}access {6}Access to access:beta, by o@example.com \(early bird\)/);
    const story = JSON.parse((await run("people show ada@example.com --json")).said);
    expect(story).toMatchObject({ person: { id: personId }, credits: { balance: 7 }, plan: { name: "free", since: null } });
  });

  test("reports results beyond the limit, also in a pipe and with --json", async () => {
    const more = "There are more than this one: --limit 200 shows more.";
    for (const line of ["people show ada@example.com", "audit list"]) {
      for (const as of ["", " --json"]) {
        expect((await run(`${line} --limit 1${as}`)).told).toContain(more);
        expect((await run(`${line} --limit 200${as}`)).told).not.toContain("There are more");
      }
    }
    expect((await run("people show ada@example.com --limit 1")).told).toStartWith("The timeline has more entries. ");
  });

  test("a pipe gets the full preview of each event, one line each", async () => {
    const { items } = JSON.parse((await run("events list --json")).said);
    expect(items[0].preview.length).toBeGreaterThan(72);
    expect((await run("events list")).said).toContain(items[0].preview);
  });

  test("a pipe gets the full payload of an event", async () => {
    const { items } = JSON.parse((await run("events list --json")).said);
    expect((await run(["events", "show", items[0].id])).said).toContain("END");
  });

  const UNKNOWN = [
    "people show eve@example.com",
    "people show per_none",
    "events list --person eve@example.com",
    "events list --person per_none",
    "emails list --person per_0199b7a1f3c07d3e8a5b6c7d8e9f0a1b",
  ];
  test.each(UNKNOWN)("%s: an unknown person is an error, not an empty list", async (line) => {
    const { code, told, said } = await run(line);
    expect([code, said]).toEqual([1, ""]);
    expect(told).toContain("exists in this environment: relay people list shows the existing people.");
  });

  test("events list --person accepts an address", async () => {
    expect(JSON.parse((await run("events list --person ada@example.com --json")).said).items).toHaveLength(1);
  });
});

describe("relay settings", () => {
  const SETS: [string[], string, string, unknown][] = [
    [["held", "on"], "", "heldAt", "2030-01-01T00:00:00.000Z"],
    [["held", "off"], "", "heldAt", null],
    [["alerts.relay_silent", "off"], "", "alerts.relay_silent", false],
    [["mail.sends", "off"], "", "mail.sends", false],
    [["mail.fromName", "Ada's Shop"], "", "mail.fromName", "Ada's Shop"],
    [["mail.fromName", "none"], "", "mail.fromName", null],
    [["mail.smtp", '{"host":"smtp.example.com","username":"ada"}'], "thePassword\n", "mail.smtp.host", "smtp.example.com"],
    [["receipts.collection", "sales"], "", "receipts.collection", "sales"],
    [["signin.invitedOnly", "on"], "", "signin.invitedOnly", true],
  ];
  test.each(SETS)("set %p", async (words, input, name, value) => {
    expect(await run(["settings", "set", ...words], input)).toMatchObject({ code: 0 });
    expect(JSON.parse((await run(["settings", "get", name, "--json"])).said)).toEqual(value);
    expect((await audited()).at(-1)).toBe("command line settings.changed settings");
  });

  test("reads the processor's secret from stdin and shows only its fingerprint", async () => {
    const secret = "whsec_TheProcessorsOwn_Secret_42";
    const set = await run("settings set processorSecret", `${secret}\n`);
    const got = await run("settings get");
    expect([set.code, got.code]).toEqual([0, 0]);
    expect(got.said).toMatch(/processorSecret\.fingerprint {2,}hmac:/);
    for (const text of [set.told, set.said, got.said]) expect(text).not.toContain(secret);
    expect(await run("settings set processorSecret none")).toMatchObject({ code: 0 });
    expect((await run("settings get processorSecret")).said).toMatch(/processorSecret {2,}none/);
  });

  const REFUSED: [string[], string, number, string][] = [
    [["color", "red"], "", 2, "There is no setting color: write one of held, processorSecret,"],
    [["held", "maybe"], "", 2, 'held is "maybe": write on or off.'],
    [["held"], "", 2, "relay settings set held needs a value"],
    [["processorSecret", "oops_on_the_command_line_22"], "", 2, "is a secret: give it on standard input"],
    [["processorSecret"], "", 2, "Standard input was empty"],
    [["processorSecret"], "short", 1, ""],
    [["mail.smtp", '{"host":"smtp.example.com","password":"x"}'], "", 2, "password is a secret"],
    [["alerts.relay_nothing", "on"], "", 1, "relay_nothing"],
  ];
  test.each(REFUSED)("set %p is refused and changes nothing", async (words, input, exit, sentence) => {
    const before = (await run("settings get --json")).said;
    const { code, told } = await run(["settings", "set", ...words], input);
    expect([code, told]).toEqual([exit, expect.stringContaining(sentence)]);
    expect((await run("settings get --json")).said).toBe(before);
  });
});

describe("relay catalog", () => {
  const ITEMS: [string, string, string, string][] = [
    ["access", "gamma", '{"title":"Gamma"}', "access.changed access:gamma"],
    ["product", "lamp", '{"credits":10}', "product.created product:lamp"],
    ["plan", "pro", '{"title":"Pro"}', "plan.created plan:pro"],
    ["collection", "orders", '{"kind":"shared","fields":{"order":"text"}}', "collection.created collection:orders"],
  ];
  test.each(ITEMS)("%s %s is set, listed, deleted, and audited", async (kind, name, json, row) => {
    expect(await run(["catalog", "set", kind, name], json)).toMatchObject({ code: 0, told: `The ${kind} ${name} is saved.` });
    expect((await audited()).at(-1)).toBe(`command line ${row}`);
    const listed = JSON.parse((await run(`catalog list ${kind} --json`)).said).items;
    expect(listed.map((item: { name: string }) => item.name)).toContain(name);
    expect((await run(`catalog delete ${kind} ${name}`)).code).toBe(0);
    expect((await audited()).at(-1)).toContain(`${kind}.deleted ${kind}:${name}`);
    expect(await run(`catalog delete ${kind} ${name}`)).toMatchObject({ code: 1 });
  });

  const REFUSED: [string[], string, number, string][] = [
    [["catalog", "set", "thing", "x", "{}"], "", 2, "write one of access, product, plan, collection."],
    [["catalog", "set", "product", "x", "[]"], "", 2, "is not a JSON object"],
    [["catalog", "set", "product", "x", '{"colour":1}'], "", 1, "colour"],
    [["catalog", "set", "product", "x", '{"soldThrough":{"kind":"relay","relay":"nowhere"}}'], "", 1, "nowhere"],
    [["catalog", "set", "collection", "x", '{"kind":"odd","fields":{}}'], "", 1, "kind"],
    [["catalog", "delete", "access", "beta"], "", 1, "is held by 1 person"],
  ];
  test.each(REFUSED)("%p is refused", async (words, input, exit, sentence) => {
    const { code, told } = await run(words, input);
    expect([code, told]).toEqual([exit, expect.stringContaining(sentence)]);
  });

  test("reports the relays that a change breaks", async () => {
    expect((await run("catalog list")).said).toContain("beta");
    expect((await run("catalog delete access beta --force")).code).toBe(0);
  });
});

describe("relay domain", () => {
  test("is set, and shown with the DNS record to create", async () => {
    expect((await run("domain show")).told).toBe("There is no sender domain: relay domain set <domain> sets one.");
    const set = await run("domain set shop.example");
    expect(set).toMatchObject({ code: 0, told: "Create this DNS record, then run relay domain verify." });
    expect((await run("domain show")).said).toBe(set.said);
    expect(set.said).toMatch(/^shop\.example {2}not verified\n {2}TXT {2}\S+shop\.example {2}\S+$/);
  });

  test("keeps the local parts of addresses that it already has", async () => {
    await run("domain set shop.example --event-word hello --account-word login");
    await run("domain set shop.example --account-word account");
    expect(JSON.parse((await run("domain show --json")).said).senderDomain).toMatchObject({ eventWord: "hello", accountWord: "account" });
    expect(await run("domain set shop.example --event-word a@b")).toMatchObject({ code: 1, told: expect.stringContaining("`eventWord`") });
  });

  test("is removed after its name is repeated, and a second removal changes nothing", async () => {
    const silent = await run("domain remove");
    expect([silent.code, silent.told]).toEqual([
      1,
      expect.stringContaining(
        "Without shop.example no mail leaves: mail of relays fails, and alerts appear only in the dashboard.\nNothing was removed, because there is no terminal for the question: write relay domain remove --confirm shop.example to confirm.",
      ),
    ]);
    expect(await run("domain remove --confirm other.example")).toMatchObject({
      code: 2,
      told: expect.stringContaining('--confirm is "other.example", but the sender domain is shop.example: write --confirm shop.example'),
    });
    expect(await run("domain remove --confirm shop.example")).toMatchObject({
      code: 0,
      told: "shop.example is removed. No mail leaves until relay domain set names a domain and it is verified.",
    });
    expect((await audited()).at(-1)).toBe("command line sender_domain.removed sender_domain:shop.example");
    const again = await run("domain remove --json");
    expect([again.code, JSON.parse(again.said), again.told]).toEqual([0, { removed: null }, "There is no sender domain: nothing changed."]);
  });
});

describe("relay problems and alerts", () => {
  test("list a hold while it lasts", async () => {
    expect((await run("settings set held on")).code).toBe(0);
    expect((await run("problems list")).said).toMatch(/environment_held {2}environment {2}.*on hold.*relay settings set held off/);
    expect((await run("settings set held off")).code).toBe(0);
    expect((await run("problems list")).told).toBe("There is no problem now.");
  });

  test("are listed, and resolving an alert resolves its problem, with one audit row", async () => {
    expect((await run("problems list")).told).toBe("There is no problem now.");
    await within((store, environmentId) =>
      store.write("app", async (tx) => {
        const key = { environmentId, code: "relay_ignoring", target: "relay:orders", nowMs: NOW_MS } as const;
        const message = "orders has ignored every call\u001b[2J.";
        await raiseProblem(tx, { ...key, message });
        await raiseAlert(tx, { ...key, message });
        await raiseAlert(tx, { ...key, code: "relay_failed", message: "One died." });
      }),
    );
    expect((await run("problems list")).said).toMatch(/relay_ignoring {2}relay:orders {2}orders has ignored every call\?\[2J\./);
    const { items } = JSON.parse((await run("alerts list --json")).said);
    expect(items).toHaveLength(2);
    const { id } = items.find(({ code }: { code: string }) => code === "relay_ignoring");
    expect(await run(`alerts resolve ${id}`)).toMatchObject({ code: 0, told: `${id} is resolved: relay_ignoring of relay:orders.` });
    expect((await audited()).at(-1)).toBe(`command line alert.resolved alert:${id}`);
    expect((await run("problems list")).told).toBe("There is no problem now.");
    expect(await run("alerts resolve alt_none")).toMatchObject({ code: 1, told: expect.stringContaining("relay alerts list") });
    expect((await run("alerts resolve --all")).told).toContain("relay_failed of relay:orders");
    expect((await run("alerts list")).told).toBe("No alert is open.");
    expect((await run("alerts list --all")).said).toContain("resolved by command line");
    expect((await run("alerts resolve")).code).toBe(1);
  });
});
