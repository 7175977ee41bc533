import { describe, expect, test } from "bun:test";
import { parseJson } from "../../src/base/json.ts";
import { DAY_MS } from "../../src/base/limit.ts";
import { type AuditView, listAudit } from "../../src/platform/audit/audit.ts";
import { createRelay, deleteRelay, pauseRelay, resumeRelay, updateRelay } from "../../src/rules/relay/relay-save.ts";
import type { SavedRelay } from "../../src/rules/relay/relay-view.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";
import { BASE_URL, CALL, GRANT, HOOKS, makeRelayKit, receiver, schedule, TOKEN, WRITE } from "../kit/relay-kit.ts";
import { openTimetable } from "../kit/timetable.ts";

const fresh = await openFreshStore();
const { store, clock, environment } = fresh;
const kit = makeRelayKit(fresh);
const { id: environmentId } = await environment("development");

async function changesOf(name: string): Promise<AuditView[]> {
  const page = await store.read((tx) => listAudit(tx, environmentId, { target: `relay:${name}` }, { limit: 200, after: null }));
  return page.items;
}
const rowsOf = (sql: string, ...values: string[]) => store.read((tx) => tx.all<Record<string, unknown>>(sql, ...values));
const relayNames = async () => (await rowsOf("SELECT name FROM relay ORDER BY name")).map((row) => row.name);

describe("creating a relay", () => {
  test("returns the relay at version 1, its receiver URL, and each new secret once", async () => {
    const saved = await kit.create(receiver("orders", HOOKS, [WRITE, CALL]));
    expect(saved.relay).toMatchObject({
      name: "orders",
      version: 1,
      state: "active",
      trigger: "receiver",
      actions: 2,
      origin: { kind: "dashboard", at: "2026-01-15T12:00:00.000Z" },
      receiverUrl: `${BASE_URL}/hooks/app_test/orders`,
      secret: { kind: "minted", setAt: "2026-01-15T12:00:00.000Z" },
      signingSecret: { setAt: "2026-01-15T12:00:00.000Z" },
      definition: receiver("orders", HOOKS, [WRITE, CALL]),
      problems: [],
    });
    expect(saved.receiverUrl).toBe(`${BASE_URL}/hooks/app_test/orders`);
    expect(saved.receiverSecret).toStartWith("whsec_");
    expect(saved.signingSecret).toStartWith("whsec_");
  });

  test("gives a relay that is no receiver neither a receiver URL nor a receiver secret", async () => {
    const saved = await kit.create(schedule("daily", [CALL]));
    expect(Object.keys(saved).sort()).toEqual(["relay", "signingSecret", "warnings"]);
    expect(saved.relay.secret).toEqual({ kind: "none", setAt: null });
    expect("receiverUrl" in saved.relay).toBe(false);
  });

  test("gives a relay without a call_url no signing secret", async () => {
    const saved = await kit.create(receiver("no-call"));
    expect([saved.signingSecret, saved.relay.signingSecret]).toEqual([undefined, undefined]);
  });

  const refused: [string, () => Promise<unknown>, string, string][] = [
    ["refuses a definition that breaks a rule", () => kit.create({ name: "x" }), "invalid_definition", "name"],
    ["refuses a name that exists", () => kit.create(schedule("orders")), "name_taken", "orders"],
    [
      "refuses a signing secret for a relay that signs nothing",
      () => kit.create(receiver("unsigned"), { signingSecret: "s3cret-S3cret-s3cret-0001" }),
      "no_call_url",
      "call_url",
    ],
    ["refuses a weak signing secret", () => kit.create(schedule("weak"), { signingSecret: "short" }), "invalid_input", "short"],
    [
      "refuses a receiver secret for a relay that is no receiver",
      () => kit.create(schedule("weak"), { secret: "s3cret-S3cret-s3cret-0001" }),
      "invalid_input",
      "receiver",
    ],
  ];
  test.each(refused)("%s, and stores nothing", async (_rule, work, code, word) => {
    const before = [await relayNames(), await rowsOf("SELECT count(*) AS n FROM audit")];
    const refusal = await refusalOf(work);
    expect([refusal.code as string, refusal.message]).toEqual([code, expect.stringContaining(word)]);
    expect([await relayNames(), await rowsOf("SELECT count(*) AS n FROM audit")]).toEqual(before);
  });

  test("refuses a relay over the environment's limit, and names the limit", async () => {
    const here = await kit.context("development", 3);
    const origin = { kind: "dashboard", synced: false } as const;
    const input = { definition: schedule("fourth"), secret: null, signingSecret: null, origin };
    const refusal = await refusalOf(() => store.write("dashboard", (tx) => createRelay(tx, here, input)));
    expect([refusal.code, refusal.message]).toEqual(["relay_capped", expect.stringContaining("limit is 3")]);
    expect(await relayNames()).toHaveLength(3);
  });

  test("writes one audit row with the author and the new definition", async () => {
    expect(await changesOf("daily")).toEqual([
      expect.objectContaining({
        actor: "owner:ada@example.com",
        action: "relay.created",
        target: "relay:daily",
        before: null,
        after: expect.objectContaining({ version: 1, definition: schedule("daily", [CALL]) }),
      }),
    ]);
  });
});

describe("saving a definition", () => {
  test("replaces it, increases the version, and audits before and after", async () => {
    await kit.create(schedule("edited"));
    await clock.advance(1_000);
    const saved = await kit.update("edited", schedule("edited", [CALL, CALL]), 1);
    expect([saved.relay.version, saved.relay.actions, saved.signingSecret]).toEqual([2, 2, undefined]);
    const [change] = await changesOf("edited");
    expect(change).toMatchObject({
      action: "relay.updated",
      before: { version: 1, definition: schedule("edited") },
      after: { version: 2, definition: schedule("edited", [CALL, CALL]) },
    });
  });

  const refused: [string, string, object, number, string, Record<string, unknown> | undefined][] = [
    ["at an older version, with the current one in the refusal", "edited", schedule("edited"), 1, "version_conflict", { version: 2 }],
    ["at a future version", "edited", schedule("edited"), 3, "version_conflict", { version: 2 }],
    ["under another name", "edited", schedule("renamed"), 2, "invalid_definition", undefined],
    ["that breaks a rule", "edited", schedule("edited", []), 2, "invalid_definition", undefined],
    ["of a relay that does not exist", "nobody", schedule("nobody"), 1, "not_found", undefined],
  ];
  test.each(refused)("is refused %s, and changes nothing", async (_rule, name, definition, version, code, details) => {
    const before = await rowsOf("SELECT * FROM relay ORDER BY name");
    const refusal = await refusalOf(() => kit.update(name, definition, version));
    expect([refusal.code as string, refusal.extra.details]).toEqual([code, details]);
    expect(await rowsOf("SELECT * FROM relay ORDER BY name")).toEqual(before);
  });

  test("at one version twice at the same time stores only one", async () => {
    await kit.create(schedule("raced"));
    const ends = await Promise.allSettled([
      kit.update("raced", schedule("raced", [CALL, CALL]), 1),
      kit.update("raced", schedule("raced", [CALL, CALL, CALL]), 1),
    ]);
    expect(ends.map((end) => end.status)).toEqual(["fulfilled", "rejected"]);
    expect((await kit.view("raced")).actions).toBe(2);
  });

  test("with the first call_url mints a signing secret, shown once, and without any call_url deletes it", async () => {
    await kit.create(receiver("calls"));
    const first = await kit.update("calls", receiver("calls", undefined, [CALL]), 1);
    expect(first.signingSecret).toStartWith("whsec_");
    const second = await kit.update("calls", receiver("calls", undefined, [CALL, WRITE]), 2);
    expect([second.signingSecret, second.relay.signingSecret !== undefined]).toEqual([undefined, true]);
    const third = await kit.update("calls", receiver("calls", undefined, [WRITE]), 3);
    expect(third.relay.signingSecret).toBeUndefined();
    expect(messagesOf(third)).toContainEqual(expect.stringContaining("signing secret was removed"));
    expect(await rowsOf("SELECT signing_secret AS s FROM relay WHERE name = 'calls'")).toEqual([{ s: null }]);
  });

  test("can change the trigger's kind of a relay that was never synced", async () => {
    await kit.create(schedule("free"));
    const saved = await kit.update("free", receiver("free", HOOKS), 1);
    expect([saved.relay.trigger, saved.receiverSecret !== undefined]).toEqual(["receiver", true]);
  });

  test("cannot change the trigger's kind of a synced relay, and names two alternatives", async () => {
    await kit.create(schedule("fixed"), { origin: { kind: "file", synced: true } });
    const refusal = await refusalOf(() => kit.update("fixed", receiver("fixed"), 1));
    expect([refusal.code, refusal.status]).toEqual(["trigger_kind_fixed", 409]);
    expect(refusal.message).toMatch(/rename the relay.*relay sync --prune in development/);
    expect((await kit.update("fixed", schedule("fixed", [CALL], { at: "10:00" }), 1)).relay.version).toBe(2);
  });

  test("cannot change the trigger's kind of a synced relay even after an edit in the dashboard", async () => {
    expect((await kit.view("fixed")).origin.kind).toBe("dashboard");
    expect((await refusalOf(() => kit.update("fixed", receiver("fixed"), 2))).code).toBe("trigger_kind_fixed");
  });

  test("can change the trigger's kind in local development", async () => {
    const origin = { kind: "file", synced: true } as const;
    await kit.create(schedule("local-one"), { origin }, "local");
    const here = await kit.context("local");
    const saved = await store.write("dashboard", (tx) =>
      updateRelay(tx, here, "local-one", { definition: receiver("local-one"), version: 1, origin }),
    );
    expect(saved.row.definition.trigger.kind).toBe("receiver");
  });

  test("keeps a schedule's clock unless its trigger changes", async () => {
    const since = async () => (await rowsOf("SELECT active_since AS at FROM relay WHERE name = 'ticks'"))[0]?.at;
    await kit.create(schedule("ticks"));
    const created = clock.now();
    await clock.advance(1_000);
    await kit.update("ticks", schedule("ticks", [CALL, CALL]), 1);
    expect(await since()).toBe(created);
    const { trigger } = schedule("ticks") as { trigger: object };
    const reordered = { ...schedule("ticks"), trigger: Object.fromEntries(Object.entries(trigger).toReversed()) };
    await kit.update("ticks", reordered, 2);
    expect(await since()).toBe(created);
    await kit.update("ticks", schedule("ticks", [CALL], { at: "10:00" }), 3);
    expect(await since()).toBe(clock.now());
  });

  test.each([
    [{ every: "1d" }, { every: "1d", at: "00:00" }],
    [
      { every: "1w", at: "00:00" },
      { every: "1w", on: "monday" },
    ],
  ])("keeps a schedule's clock if the trigger %j becomes the equivalent %j", async (one, other) => {
    await using table = await openTimetable("2026-01-15T12:00:00Z");
    await table.make("ticks", one);
    await table.clock.advance(8 * DAY_MS);
    const definition = { ...schedule("ticks"), trigger: { kind: "schedule", ...other } };
    await table.kit.update("ticks", definition, 1);
    await table.start();
    expect((await table.ticks("ticks")).length).toBeGreaterThan(0);
  });
});

describe("write_record into a collection whose records need a recipient", () => {
  const fields = '{"id":{"type":"text"}}';
  test.each(["addressed", "direct"])("is refused at save on kind %s without to", async (kind) => {
    await store.write("app", (tx) => tx.run(`INSERT INTO collection VALUES (${environmentId}, 'for-${kind}', '${kind}', '${fields}', 1, 1, 1)`));
    const map = { event_id: "id", person_id: "p" };
    const of = (more: object) => receiver(`to-${kind}`, HOOKS, [CALL, { ...WRITE, collection: `for-${kind}`, ...more }], { map });
    const refusal = await refusalOf(() => kit.create(of({})));
    expect([refusal.code, refusal.extra.problems?.map(({ field }) => field)]).toEqual(["invalid_definition", ["actions.1.to"]]);
    expect(await relayNames()).not.toContain(`to-${kind}`);
    const saved = await kit.create(of({ to: "person" }));
    expect(saved.warnings).toEqual([]);
    expect((await refusalOf(() => kit.update(`to-${kind}`, of({}), 1))).code).toBe("invalid_definition");
  });
});

/** Leaves out sales that overlap, which have their own test file. */
const messagesOf = ({ warnings }: SavedRelay) => warnings.filter(({ code }) => code !== "sales_overlap").map(({ message }) => message);

describe("a save's warnings", () => {
  const write = (sql: string) => store.write("app", (tx) => tx.run(sql));
  const saveOf = async (actions: object[], name: string) =>
    messagesOf(await kit.create(receiver(name, HOOKS, actions, { map: { event_id: "id", person_id: "p" } })));

  test.each([
    ["own", "https://relay.example.com/notice", true],
    ["own-port", "https://RELAY.example.com.:8443/", true],
    ["near", "https://hooks.relay.example.com/", false],
  ])("%s: report a call_url to %s as the service's own host: %s", async (name, url, isOwn) => {
    const warnings = await saveOf([{ type: "call_url", url }], name);
    expect(warnings.some((text) => text.includes("`actions.0.url` is this service's own host"))).toBe(isOwn);
  });

  test("name each missing collection, entitlement, product and plan, and refuse nothing", async () => {
    const warnings = await saveOf(
      [
        WRITE,
        { type: "grant_access", entitlement: "access:pro" },
        { type: "revoke_access", entitlement: "gold" },
        { type: "fulfil_product", product: "lamp", ref: "{{mapped.event_id}}" },
        { type: "grant_plan", plan: "team", ref: "{{mapped.event_id}}-plan" },
      ],
      "missing",
    );
    const missing = ["collection named orders", "access slug named pro", "plan or product named gold", "product named lamp", "plan named team"];
    expect(warnings).toEqual(missing.map((what, index) => expect.stringMatching(new RegExp(`^\`actions\\.${index}\\..*there is no ${what} in`))));
  });

  test("disappear once everything exists and is sold through this relay", async () => {
    const at = "2000";
    await write(`INSERT INTO collection VALUES (${environmentId}, 'orders', 'shared', '{"id":{"type":"text"}}', 1, ${at}, ${at})`);
    await write(`INSERT INTO access_slug VALUES (${environmentId}, 'pro', 'Pro', ${at})`);
    await write(
      `INSERT INTO product (environment_id, name, title, key, sold_through, created_at, updated_at)
       VALUES (${environmentId}, 'lamp', 'Lamp', 'lamp', '{"kind":"relay","relay":"present"}', ${at}, ${at})`,
    );
    await write(
      `INSERT INTO plan (environment_id, name, title, sold_through, created_at, updated_at)
       VALUES (${environmentId}, 'team', 'Team', '{"kind":"payment_link","url":"https://x.example"}', ${at}, ${at})`,
    );
    const actions = [
      WRITE,
      { type: "grant_access", entitlement: "access:pro" },
      { type: "revoke_access", entitlement: "lamp" },
      { type: "grant_access", entitlement: "team" },
      { type: "fulfil_product", product: "lamp", ref: "{{mapped.event_id}}" },
    ];
    expect(await saveOf(actions, "present")).toEqual([]);
    expect(await saveOf(actions, "other")).toEqual([expect.stringContaining("not sold through this relay")]);
    expect(await saveOf([{ type: "grant_plan", plan: "team", ref: "{{mapped.event_id}}" }], "plans")).toEqual([
      expect.stringContaining("not sold through this relay"),
    ]);
  });

  test("name the fields of write_record that its collection lacks, and the missing required ones, in one sentence each", async () => {
    await write(
      `INSERT INTO collection VALUES (${environmentId}, 'notes', 'shared',
        '{"title":{"type":"text","required":true},"size":{"type":"number","required":true},"more":{"type":"text"}}', 1, 1, 1)`,
    );
    const data = { title: "{{mapped.event_id}}", titel: "x" };
    expect(await saveOf([{ type: "write_record", collection: "notes", data }], "noting")).toEqual([
      "`actions.0.data.titel` is not a field of the collection notes: remove it or add the field to the collection, or every event becomes dead.",
      "`actions.0.data` leaves out size, which the collection notes requires: fill it, or every event becomes dead.",
    ]);
    const several = { a: "1", b: "2", more: "x" };
    expect(await saveOf([{ type: "write_record", collection: "notes", data: several }], "several")).toEqual([
      "`a` and `b` in `actions.0.data` are not fields of the collection notes: remove them or add them to the collection, or every event becomes dead.",
      "`title` and `size` are missing in `actions.0.data`, and the collection notes requires them: fill them, or every event becomes dead.",
    ]);
    const many = Object.fromEntries([["title", "1"], ["size", "2"], ...Array.from({ length: 13 }, (_, at) => [`f${at}`, "x"])]);
    expect(await saveOf([{ type: "write_record", collection: "notes", data: many }], "many")).toEqual([
      expect.stringMatching(/^`f0`, `f1`, .*, `f9` and 3 more in `actions\.0\.data` are not fields of the collection notes: /),
    ]);
  });

  test("consider only this environment", async () => {
    const saved = await kit.create(receiver("elsewhere"), {}, "production");
    expect(messagesOf(saved)).toEqual([expect.stringContaining("no collection named orders")]);
  });

  test("report the unsigned opt-in when it is set and when a save widens it, and audit it before and after", async () => {
    const map = { event_id: "id", person_id: "p" };
    const definition = (actions: object[], trusted: boolean) =>
      receiver("trusting", TOKEN, actions, trusted ? { map, trustUnsignedEvents: true } : { map });
    const told = (warnings: string[]) => warnings.some((text) => text.includes("trustUnsignedEvents"));
    const steps: [string, object[], boolean, boolean][] = [
      ["taken", [GRANT], true, true],
      ["the same", [GRANT, WRITE], true, false],
      ["widened by an amount", [{ ...GRANT, amount: 6 }], true, true],
      ["narrowed", [{ ...GRANT, amount: 1 }], true, false],
      [
        "widened by an action",
        [
          { ...GRANT, amount: 1 },
          { type: "grant_access", entitlement: "lamp" },
        ],
        true,
        true,
      ],
      ["removed", [WRITE], false, false],
    ];
    await kit.create(definition([WRITE], false));
    for (const [index, [, actions, trusted, expected]] of steps.entries()) {
      const saved = await kit.update("trusting", definition(actions, trusted), index + 1);
      expect([steps[index]?.[0], told(messagesOf(saved))]).toEqual([steps[index]?.[0], expected]);
    }
    const [givenUp] = await changesOf("trusting");
    const trustOf = (side: unknown) =>
      (side as { definition: { trigger: { trustUnsignedEvents?: boolean } } }).definition.trigger.trustUnsignedEvents;
    expect([trustOf(givenUp?.before), trustOf(givenUp?.after)]).toEqual([true, undefined]);
  });
});

describe("pausing, resuming and deleting", () => {
  test("pause and resume change the state once each, with one audit row", async () => {
    await kit.create(schedule("halted"));
    const here = await kit.context();
    const pause = () => store.write("dashboard", (tx) => pauseRelay(tx, here, "halted"));
    expect([(await pause()).state, (await pause()).state]).toEqual(["paused", "paused"]);
    await clock.advance(DAY_MS);
    const later = await kit.context();
    const resumed = await store.write("dashboard", (tx) => resumeRelay(tx, later, "halted"));
    expect(resumed.state).toBe("active");
    expect((await changesOf("halted")).map((row) => [row.action, row.before, row.after])).toEqual([
      ["relay.resumed", { state: "paused" }, { state: "active" }],
      ["relay.paused", { state: "active" }, { state: "paused" }],
      ["relay.created", null, expect.anything()],
    ]);
    expect(await rowsOf("SELECT active_since AS at FROM relay WHERE name = 'halted'")).toEqual([{ at: clock.now() }]);
  });

  test("a deleted relay loses its secrets and problems, and its signatures are stored for 24 more hours", async () => {
    await kit.create(receiver("gone"));
    const remember = (hash: number, until: number | null) =>
      store.write("app", (tx) =>
        tx.run("INSERT INTO signature_memory VALUES (?1, 'gone', ?2, ?2, NULL, ?3, NULL)", environmentId, Uint8Array.of(hash), until),
      );
    const [soon, later, dayLater] = [clock.now() + 5, clock.now() + 3 * DAY_MS, clock.now() + DAY_MS];
    await remember(1, null);
    await remember(2, soon);
    await remember(3, later);
    const here = await kit.context();
    await store.write("dashboard", (tx) => deleteRelay(tx, here, "gone"));
    expect(await rowsOf("SELECT until FROM signature_memory WHERE relay_name = 'gone' ORDER BY signed_text_hash")).toEqual([
      { until: null },
      { until: soon },
      { until: later },
    ]);
    expect(await rowsOf("SELECT until FROM retired_secret WHERE relay_name = 'gone'")).toEqual([{ until: dayLater }, { until: dayLater }]);
    expect(await relayNames()).not.toContain("gone");
    expect((await changesOf("gone"))[0]).toMatchObject({ action: "relay.deleted", after: null });
    expect((await refusalOf(() => kit.view("gone"))).code).toBe("not_found");
    expect((await refusalOf(() => store.write("dashboard", (tx) => deleteRelay(tx, here, "gone")))).code).toBe("not_found");
    expect((await kit.create(receiver("gone"))).relay.version).toBe(1);
  });

  test("affect only their own environment", async () => {
    await kit.create(schedule("both"), {}, "production");
    const here = await kit.context();
    for (const work of [pauseRelay, resumeRelay, deleteRelay]) {
      const refusal = await refusalOf(() => store.write("dashboard", async (tx) => void (await work(tx, here, "both"))));
      expect(refusal.code).toBe("not_found");
    }
    expect((await kit.view("both", "production")).state).toBe("active");
  });

  test("a stored definition keeps integers beyond 2^53", async () => {
    const definition = receiver("exact", HOOKS, [{ type: "write_record", collection: "orders", data: { n: 9007199254740993n } }]);
    const saved = await kit.create(definition);
    expect(saved.relay.definition.actions[0]?.data).toEqual({ n: 9007199254740993n });
    const [row] = await rowsOf("SELECT definition FROM relay WHERE name = 'exact'");
    expect(parseJson(String(row?.definition))).toEqual(definition as never);
  });
});
