import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { readPageRequest } from "../../src/base/page.ts";
import { deleteRelay } from "../../src/rules/relay/relay-save.ts";
import { listRelays } from "../../src/rules/relay/relay-view.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { NEXT_SEQ, relayOf } from "../kit/event-sql.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { HOOKS, makeRelayKit, receiver, schedule } from "../kit/relay-kit.ts";

const fresh = await openFreshStore();
const { store, clock, environment, direct } = fresh;
const kit = makeRelayKit(fresh);
const { id: environmentId } = await environment("development");
await kit.create(receiver("busy", HOOKS));
await kit.create(schedule("quiet"), { origin: { kind: "file", synced: true } });

async function addEvents(name: string, state: string, atMs: number, count = 1): Promise<void> {
  const sql = `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at)
    VALUES (${NEXT_SEQ}, ?1, ?2, ?3, 'receiver', ?4, '{}', ?5)`;
  await store.write("app", async (tx) => {
    const { relayKey, nameKey } = await relayOf(tx, environmentId, `rly_${name}`, name);
    for (let n = 0; n < count; n++) await tx.run(sql, environmentId, relayKey, nameKey, state, atMs);
  });
}
const FIRST = { limit: 50, after: null };
const list = async () => {
  const here = await kit.context();
  return (await store.read((tx) => listRelays(tx, here, FIRST))).items;
};

describe("the list of relays", () => {
  test("shows each relay's kind, state, origin, receiver URL and trigger in words, without the definition", async () => {
    expect(await list()).toEqual([
      {
        id: expect.stringMatching(/^rly_/),
        name: "busy",
        state: "active",
        trigger: "receiver",
        triggerInWords: "when a webhook arrives",
        actions: 1,
        version: 1,
        origin: { kind: "dashboard", at: "2026-01-15T12:00:00.000Z" },
        receiverUrl: "https://relay.example.com/hooks/app_test/busy",
        lastEventAt: null,
        last24h: { done: 0, failed: 0, dead: 0, waiting: 0 },
      },
      expect.objectContaining({ name: "quiet", origin: { kind: "file", at: "2026-01-15T12:00:00.000Z" } }),
    ]);
  });

  test("counts the last 24 hours by state and shows the newest event", async () => {
    const now = clock.now();
    await addEvents("busy", "dead", now - DAY_MS - 1, 3);
    await addEvents("busy", "done", now - DAY_MS, 4);
    await addEvents("busy", "failed", now - 4_000, 2);
    await addEvents("busy", "dead", now - 3_000);
    await addEvents("other", "dead", now - 3_000, 5);
    await addEvents("busy", "queued", now - 2_000, 2);
    await addEvents("busy", "running", now - 1_000);
    const [busy, quiet] = await list();
    expect(busy?.last24h).toEqual({ done: 4, failed: 2, dead: 1, waiting: 3 });
    expect(busy?.lastEventAt).toBe(new Date(now - 1_000).toISOString());
    expect([quiet?.last24h, quiet?.lastEventAt]).toEqual([{ done: 0, failed: 0, dead: 0, waiting: 0 }, null]);
  });

  test("comes in pages, newest first", async () => {
    await clock.advance(1);
    await kit.create(schedule("newest"));
    const here = await kit.context();
    const names: string[] = [];
    for (let after: string | null = null, rounds = 0; rounds < 9; rounds++) {
      const request = readPageRequest(after === null ? { limit: "1" } : { limit: "1", cursor: after });
      const page = await store.read((tx) => listRelays(tx, here, request));
      names.push(...page.items.map(({ name }) => name));
      if (page.next === null) break;
      after = page.next;
    }
    expect(names).toEqual(["newest", "busy", "quiet"]);
  });

  test("never shows another environment's relays and events", async () => {
    const here = await kit.context("production");
    const listHere = () => store.read((tx) => listRelays(tx, here, FIRST));
    expect(await listHere()).toEqual({ items: [], next: null, keys: new Map() });
    await kit.create(receiver("busy", HOOKS), {}, "production");
    const [busy] = (await listHere()).items;
    expect([busy?.lastEventAt, busy?.last24h.done]).toEqual([null, 0]);
  });

  test("marks counts of failed and waiting events as limited, for each relay", async () => {
    const count = async (name: string) => (await list()).find((relay) => relay.name === name)?.last24h;
    const before = { done: 0, failed: 0, dead: 0, waiting: 0, ...(await count("busy")) };
    const quiet = { done: 0, failed: 0, dead: 0, waiting: 0 };
    const now = clock.now();
    await addEvents("busy", "queued", now - 500, 1_999 - before.waiting);
    expect([await count("busy"), await count("quiet")]).toEqual([{ ...before, waiting: 1_999 }, quiet]);
    await addEvents("busy", "queued", now - 500);
    expect([await count("busy"), await count("quiet")]).toEqual([
      { ...before, waiting: 2_000, approximate: true },
      { ...quiet, approximate: true },
    ]);
  });

  test("shows the earlier events of a relay that was created again", async () => {
    await kit.create(receiver("again", HOOKS));
    await addEvents("again", "dead", clock.now() - 1_000, 2);
    const here = await kit.context();
    await store.write("dashboard", (tx) => deleteRelay(tx, here, "again"));
    const { relay } = await kit.create(receiver("again", HOOKS));
    expect([relay.last24h.dead, relay.lastEventAt]).toEqual([2, new Date(clock.now() - 1_000).toISOString()]);
    expect((await list()).find(({ name }) => name === "again")).toMatchObject({ last24h: relay.last24h, lastEventAt: relay.lastEventAt });
  });

  test("scans only indexes, whatever the number of events", async () => {
    const rows: [sql: string, ofSqlite: string, ofPostgres: [index: string, condition: string]][] = [
      [
        "SELECT seq, created_at FROM event WHERE seq >= 5 ORDER BY seq LIMIT 1",
        "USING INTEGER PRIMARY KEY (rowid>?)",
        ["Index Scan using event_pkey on event", "(seq >= 5)"],
      ],
      [
        "SELECT 1 FROM event INDEXED BY event_of_relay WHERE name_key = 999 AND seq >= 5 LIMIT 9",
        "COVERING INDEX event_of_relay (<expr>=? AND name_key=? AND rowid>?)",
        ["Index Only Scan using event_of_relay on event", "((name_key = 999) AND (seq >= 5))"],
      ],
      [
        "SELECT name_key, state FROM event INDEXED BY event_unhappy WHERE environment_id = 999 AND state IN ('failed', 'dead') AND seq >= 5 LIMIT 9",
        "COVERING INDEX event_unhappy (environment_id=? AND state=? AND seq>?)",
        ["Index Only Scan using event_unhappy on event", "(seq >= 5)"],
      ],
      [
        "SELECT name_key, state FROM event INDEXED BY event_unfinished WHERE environment_id = 999 AND state IN ('queued', 'running') AND seq >= 5 LIMIT 9",
        "INDEX event_unfinished (environment_id=? AND state=? AND seq>?)",
        ["using event_unfinished on event", "(seq >= 5)"],
      ],
    ];
    for (const [sql, ofSqlite, ofPostgres] of rows) {
      const plan = await direct.explain(sql);
      for (const part of ON_POSTGRES ? ofPostgres : [ofSqlite]) expect(plan).toContain(part);
    }
  });
});
