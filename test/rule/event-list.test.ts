/** The list of events and the view of one event: every filter, complete pages without repeats, and times. */
import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readNumberedId } from "../../src/base/id.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { readPageRequest } from "../../src/base/page.ts";
import type { EventState, EventTrigger } from "../../src/engine/event/event.ts";
import { insertEvent, keyOfEventId, makeReceiverPayload } from "../../src/engine/event/insert.ts";
import { type EventFilter, listEvents } from "../../src/engine/event/list.ts";
import { newestSpan, oldestSpan } from "../../src/engine/event/number-range.ts";
import { findEventView, type ListedEvent } from "../../src/engine/event/view.ts";
import { roundsOf } from "../kit/chosen-store.ts";
import { relayOf } from "../kit/event-sql.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const { store, environment } = await openFreshStore();
const here = (await environment("development")).id;
const there = (await environment("production")).id;

interface Seed {
  relay?: string;
  trigger?: EventTrigger;
  state?: EventState;
  reason?: string;
  person?: string;
  atMs?: number;
  payload?: string;
  mapped?: JsonObject;
  environmentId?: number;
}

let count = 0;

/** Stores events in the given state, and returns their ids in the order in which they were stored. */
async function seed(seeds: readonly Seed[]): Promise<string[]> {
  return store.write("app", async (tx) => {
    const ids: string[] = [];
    for (const one of seeds) {
      const environmentId = one.environmentId ?? here;
      const name = one.relay ?? "orders";
      const { id, seq } = await insertEvent(tx, {
        ...(await relayOf(tx, environmentId, environmentId === here ? `rly_${name}` : `rly_there_${name}`, name)),
        trigger: one.trigger ?? "receiver",
        payload: makeReceiverPayload(one.payload ?? "{}", one.mapped ?? {}),
        unsigned: false,
        dedupe: keyOfEventId(here, "orders", `${count++}`),
        nowMs: one.atMs ?? START_MS,
      });
      const state = one.state ?? "done";
      await tx.run("UPDATE event SET state = ?2, person_id = ?3, reason = ?4 WHERE seq = ?1", seq, state, one.person ?? null, one.reason ?? null);
      ids.push(id);
    }
    return ids;
  });
}

/** Stores events that differ only in their numbers and times. */
async function seedAlike(times: number, everyMs = 0): Promise<void> {
  await seed([{}]);
  await store.write("app", (tx) =>
    tx.run(
      `INSERT INTO event (seq, environment_id, relay_key, name_key, "trigger", state, payload, created_at)
       WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
       SELECT seq + i, environment_id, relay_key, name_key, "trigger", state, payload, created_at + i * ?2
       FROM n CROSS JOIN (SELECT * FROM event ORDER BY seq DESC LIMIT 1) AS one`,
      times - 1,
      everyMs,
    ),
  );
}

const list = (filter: EventFilter = {}, limit = "200", cursor?: string) =>
  store.read((tx) => listEvents(tx, here, filter, readPageRequest({ limit, cursor })));

/** Collects every item of every page, and counts the pages. */
async function listAll(
  filter: EventFilter,
  limit = "3",
  between: () => Promise<unknown> = async () => undefined,
): Promise<{ items: ListedEvent[]; pages: number }> {
  const items: ListedEvent[] = [];
  let cursor: string | undefined;
  for (let pages = 1; ; pages++) {
    const page = await list(filter, limit, cursor);
    items.push(...page.items);
    if (page.next === null) return { items, pages };
    cursor = page.next;
    await between();
  }
}

beforeEach(() =>
  store.write("app", async (tx) => {
    await tx.run("DELETE FROM event");
    await tx.run("DELETE FROM person");
  }),
);

const idsOf = (items: readonly ListedEvent[]) => items.map((item) => item.id);

describe("filters", () => {
  const SEEDS: Seed[] = [
    { relay: "orders", state: "done", person: "per_1", atMs: START_MS, payload: '{"note":"Café 100%"}' },
    { relay: "orders", state: "dead", reason: "call_failed", atMs: START_MS + 1, payload: '{"note":"under_score"}' },
    { relay: "ticks", trigger: "schedule", state: "failed", atMs: START_MS + 2 },
    { relay: "changes", trigger: "data_change", state: "queued", reason: "sends_off", person: "per_2", atMs: START_MS + 3 },
    { relay: "orders", state: "running", person: "per_1", atMs: START_MS + 4 },
    { relay: "orders", state: "done", person: "per_1", environmentId: there, atMs: START_MS + 5 },
    { relay: "ticks", trigger: "schedule", state: "done", atMs: START_MS + 6 },
    { relay: "orders", state: "dead", person: "per_2", atMs: START_MS + 7, payload: '{"x":"underXscore"}' },
  ];
  const rows: [string, EventFilter, number[]][] = [
    ["none: everything of this environment, newest first", {}, [7, 6, 4, 3, 2, 1, 0]],
    ["relay", { relay: "orders" }, [7, 4, 1, 0]],
    ["a relay that never existed", { relay: "nothing" }, []],
    ["state queued", { state: "queued" }, [3]],
    ["state running", { state: "running" }, [4]],
    ["state done", { state: "done" }, [6, 0]],
    ["state failed", { state: "failed" }, [2]],
    ["state dead", { state: "dead" }, [7, 1]],
    ["trigger receiver", { trigger: "receiver" }, [7, 4, 1, 0]],
    ["trigger schedule", { trigger: "schedule" }, [6, 2]],
    ["trigger data_change", { trigger: "data_change" }, [3]],
    ["reason", { reason: "call_failed" }, [1]],
    ["any reason", { reason: "any" }, [3, 1]],
    ["reason and state", { reason: "any", state: "queued" }, [3]],
    ["reason and relay", { reason: "any", relay: "orders" }, [1]],
    ["person", { person: "per_1" }, [4, 0]],
    ["since, inclusive", { sinceMs: START_MS + 4 }, [7, 6, 4]],
    ["since before everything", { sinceMs: 0 }, [7, 6, 4, 3, 2, 1, 0]],
    ["since after everything", { sinceMs: START_MS + 100_000 }, []],
    ["until, exclusive", { untilMs: START_MS + 3 }, [2, 1, 0]],
    ["until before everything", { untilMs: START_MS }, []],
    ["until after everything", { untilMs: START_MS + 100_000 }, [7, 6, 4, 3, 2, 1, 0]],
    ["since and until", { sinceMs: START_MS + 1, untilMs: START_MS + 4 }, [3, 2, 1]],
    ["q: text anywhere in the payload", { q: "Café" }, [0]],
    ["q takes % literally", { q: "100%" }, [0]],
    ["q takes _ literally", { q: "under_score" }, [1]],
    ["q ignores case in ASCII", { q: "UNDERX" }, [7]],
    ["q that matches nothing", { q: "nowhere" }, []],
    ["an empty q", { q: "" }, [7, 6, 4, 3, 2, 1, 0]],
    ["relay and state", { relay: "orders", state: "dead" }, [7, 1]],
    ["person and state", { person: "per_2", state: "dead" }, [7]],
    ["person and relay", { person: "per_2", relay: "orders" }, [7]],
    ["trigger and state", { trigger: "schedule", state: "done" }, [6]],
    ["state and since", { state: "dead", sinceMs: START_MS + 2 }, [7]],
    [
      "everything at once",
      {
        relay: "orders",
        state: "dead",
        trigger: "receiver",
        person: "per_2",
        sinceMs: START_MS,
        untilMs: START_MS + 8,
        q: "underx",
      },
      [7],
    ],
  ];
  for (const [name, filter, expected] of rows) {
    test(name, async () => {
      const ids = await seed(SEEDS);
      const whole = await list(filter);
      expect(idsOf(whole.items)).toEqual(expected.map((index) => ids[index] as string));
      expect(whole.next).toBeNull();
      expect(idsOf((await listAll(filter, "1")).items)).toEqual(idsOf(whole.items));
    });
  }

  const written: [q: string, payload: string][] = [
    ["https://shop.example/a", String.raw`{"url":"https:\/\/shop.example\/a"}`],
    ["Zoë", String.raw`{"name":"Zo\u00eb"}`],
    ["Zoë/ü", String.raw`{"name":"Zo\u00EB\/\u00fc"}`],
    ["Zoë/ü", String.raw`{"name":"Zoë\/ü"}`],
    ['say "hi"', String.raw`{"text":"say \"hi\""}`],
    ["c:\\data", String.raw`{"path":"c:\\data"}`],
    ["one\ntwo", String.raw`{"text":"one\ntwo"}`],
    ['{"text":', '{"text":"a"}'],
    [String.raw`Zo\u00eb`, String.raw`{"name":"Zo\u00eb"}`],
  ];
  test.each(written)("q: %s is found however its sender encoded it: %s", async (q, payload) => {
    const [id] = await seed([{ payload }, { payload: '{"other":"one"}' }]);
    expect(idsOf((await list({ q })).items)).toEqual([id as string]);
  });

  const mapped: [sought: string, value: JsonObject[string], found: boolean][] = [
    ["paid:true", true, true],
    ["paid:tr", true, true],
    ["paid:1", true, false],
    ["paid:false", false, true],
    ["paid:0", false, false],
    ["paid:TRUE", "true", true],
    ["paid:1", 1, true],
    ["paid:42", 4200, true],
    ["paid:00", 4200, false],
    ["paid:cs_", "CS_live", true],
    ["paid:é", "été", true],
    ["paid:null", null, false],
    ['paid:{"a', { a: 1 }, true],
    ["other:1", 1, false],
  ];
  test.each(mapped)("mapped: %s with the stored value %p is found: %p", async (sought, value, found) => {
    const [id] = await seed([{ mapped: { paid: value } }, { mapped: {} }, {}]);
    expect(idsOf((await list({ mapped: sought })).items)).toEqual(found ? [id as string] : []);
  });

  test("q: an event's id finds only that event, at once, however many events are newer", async () => {
    const [first] = await seed([{}]);
    await seedAlike(4_100);
    const page = await list({ q: first as string }, "1");
    expect([idsOf(page.items), page.next]).toEqual([[first as string], null]);
  });

  test("q: the id of another environment's event finds nothing", async () => {
    const [foreign] = await seed([{ environmentId: there }]);
    expect((await list({ q: foreign as string })).items).toEqual([]);
  });
});

describe("pages", () => {
  test("are complete and without repeats while rows arrive and change their state", async () => {
    const ids = await seed(Array.from({ length: 50 }, () => ({})));
    const { items, pages } = await listAll({}, "7", () => seed([{}, {}, {}]));
    expect(idsOf(items)).toEqual(ids.toReversed());
    expect(pages).toBe(8);
  });

  test("of as many as there are have no next", async () => {
    await seed(Array.from({ length: 6 }, () => ({})));
    expect((await list({}, "6")).next).toBeNull();
    expect((await list({}, "5")).next).not.toBeNull();
  });

  const SPARSE: [string, EventFilter, Seed, number][] = [
    ["trigger", { trigger: "schedule" }, { trigger: "schedule" }, 2],
    ["q", { q: "needle" }, { payload: '{"a":"needle"}' }, 24],
    ["relay and trigger", { relay: "orders", trigger: "schedule" }, { trigger: "schedule" }, 96],
  ];
  for (const [name, filter, rare, most] of SPARSE) {
    test(`of a filter with few distant matches (${name}) are short, and together complete`, async () => {
      const rares = [...(await seed([rare])), ...(await seedAlike(4_500).then(() => seed([rare, rare])))];
      await seedAlike(4_500);
      const { items, pages } = await listAll(filter, "2");
      expect(idsOf(items)).toEqual(rares.toReversed());
      expect(pages).toBeLessThanOrEqual(most);
    });
  }

  test("are complete when more rows match than one step reads", async () => {
    await seedAlike(4_300);
    const { items } = await listAll({ state: "done" }, "200");
    expect(new Set(idsOf(items)).size).toBe(4_300);
  });

  test("refuse a cursor of another list", async () => {
    const refusal = await refusalOf(() => list({}, "5", Buffer.from("abc").toString("base64url")));
    expect(refusal.code).toBe("invalid_input");
  });
});

describe("a filter without matches takes one step, however many other events there are", () => {
  const SINCE = { sinceMs: START_MS, untilMs: START_MS + 9_999 };
  const NOTHING: EventFilter[] = [
    ...(["queued", "running", "failed", "dead"] as const).map((state) => ({ state })),
    ...(["schedule", "data_change"] as const).flatMap((trigger) => [
      { trigger },
      { trigger, state: "queued" as const },
      { trigger, state: "done" as const },
      { trigger, state: "dead" as const },
      { trigger, ...SINCE },
      { trigger, q: "needle" },
      { trigger, mapped: "order:cs_" },
    ]),
    { relay: "none" },
    { relay: "orders", state: "dead" },
    { person: "per_none" },
    { person: "per_none", trigger: "receiver", state: "done" },
    { untilMs: START_MS - 99_999 },
    { sinceMs: START_MS + 99_999 },
  ];
  for (const filter of NOTHING)
    test(JSON.stringify(filter), async () => {
      await seedAlike(1_200, 1);
      await seed([{ environmentId: there, trigger: "schedule", state: "dead" }]);
      expect(await list(filter)).toEqual({ items: [], next: null });
    });
});

describe("an environment's events", () => {
  /** Stores rows with the given name and number. */
  async function place(rows: readonly { seq: number; environmentId: number; name: string }[]): Promise<void> {
    await store.write("app", async (tx) => {
      for (const { seq, environmentId, name } of rows) {
        const { relayKey, nameKey } = await relayOf(tx, environmentId, `rly_${environmentId}_${name}`, name);
        await tx.run(
          `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at)
           VALUES (?1, ?2, ?3, ?4, 'receiver', 'done', '{}', ?5)`,
          seq,
          environmentId,
          relayKey,
          nameKey,
          START_MS + seq,
        );
      }
    });
  }

  test("are found at once when they are few among many of another environment", async () => {
    const far = [1, 40_000, 3_000_000, 3_000_001, 90_000_000];
    await place(far.map((seq, at) => ({ seq, environmentId: here, name: `name-${at % 2}` })));
    const busy = (from: number) => Array.from({ length: 1_500 }, (_, at) => ({ seq: from + at, environmentId: there, name: "busy" }));
    await place([...busy(2), ...busy(2_000_000), ...busy(89_998_500), ...busy(90_000_001)]);
    const seqs = (items: readonly ListedEvent[]) => items.map(({ id }) => readNumberedId("evt", id)?.seq);
    const { items, pages } = await listAll({}, "5");
    expect([seqs(items), pages]).toEqual([far.toReversed(), 1]);
    expect(seqs((await listAll({ trigger: "receiver" }, "2")).items)).toEqual(far.toReversed());
    expect((await listAll({ trigger: "schedule" })).items).toEqual([]);
    const since = await list({ sinceMs: START_MS + 40_000, untilMs: START_MS + 90_000_000 });
    expect([seqs(since.items), since.next]).toEqual([[3_000_001, 3_000_000, 40_000], null]);
  });

  test("match a model: spans contain some but not too many, and omit none between them", async () => {
    const row = fc.record({ gap: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 2_000 })), own: fc.boolean(), name: fc.nat({ max: 2 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 60 }), fc.integer({ min: 1, max: 9 }), async (drafts, most) => {
        await store.write("app", (tx) => tx.run("DELETE FROM event"));
        let seq = 0;
        const rows = drafts.map(({ gap, own, name }) => {
          seq += gap;
          return { seq, environmentId: own ? here : there, name: `name-${name}` };
        });
        await place(rows);
        const own = rows.filter(({ environmentId }) => environmentId === here).map((one) => one.seq);
        const seen: number[] = [];
        for (let below = Number.MAX_SAFE_INTEGER; ; ) {
          const span = await store.read((tx) => newestSpan(tx, here, { above: 0, below }, most));
          if (span === null) break;
          const held = own.filter((one) => one >= span.from && one < span.to);
          expect(held.length > 0 && held.length <= most).toBe(true);
          seen.push(...held.toReversed());
          if (span.ended) break;
          below = span.from;
        }
        expect(seen).toEqual(own.toReversed());
        seen.length = 0;
        for (let after = 0; ; ) {
          const span = await store.read((tx) => oldestSpan(tx, here, after, most));
          if (span === null) break;
          const held = own.filter((one) => one >= span.from && one < span.to);
          expect(held.length > 0 && held.length <= most).toBe(true);
          seen.push(...held);
          if (span.ended) break;
          after = span.to - 1;
        }
        expect(seen).toEqual(own);
      }),
      { numRuns: roundsOf(40) },
    );
  });
});

describe("times", () => {
  test("include all events of one millisecond from that millisecond, and none until it", async () => {
    await seed([{ atMs: START_MS - 1 }]);
    const ids = await seed(Array.from({ length: 300 }, () => ({ atMs: START_MS })));
    await seed([{ atMs: START_MS + 1 }]);
    const { items } = await listAll({ sinceMs: START_MS, untilMs: START_MS + 1 }, "100");
    expect(idsOf(items)).toEqual(ids.toReversed());
    expect((await listAll({ untilMs: START_MS }, "100")).items).toHaveLength(1);
  });

  test("include every event after a small step of the clock backward", async () => {
    const ids = await seed([0, 900, 500, 501, 1_200].map((ms) => ({ atMs: START_MS + ms })));
    const since = await list({ sinceMs: START_MS + 800 });
    expect(idsOf(since.items)).toEqual([ids[4], ids[1]] as string[]);
    const until = await list({ untilMs: START_MS + 900 });
    expect(idsOf(until.items)).toEqual([ids[3], ids[2], ids[0]] as string[]);
  });
});

describe("an item and the view", () => {
  test("an item shows everything except its payload and runs, and its person by address", async () => {
    await store.write("app", (tx) =>
      tx.run(
        `INSERT INTO person (id, environment_id, email, email_key, status, attributes, created_by, created_at, updated_at)
         VALUES ('per_1', ?1, 'Ada@example.com', 'ada@example.com', 'active', '{}', 'test', 0, 0)`,
        here,
      ),
    );
    const [id] = await seed([{ person: "per_1", state: "dead" }]);
    await store.write("app", (tx) =>
      tx.run(`UPDATE event SET reason = 'http_error', attempts = 7, runs = 9, warnings = '["a","b"]', truncated = 1, finished_at = ?1`, START_MS + 5),
    );
    expect((await list()).items).toEqual([
      {
        id: id as string,
        relay: { id: "rly_orders", name: "orders" },
        trigger: "receiver",
        state: "dead",
        reason: "http_error",
        attempts: 7,
        nextAttemptAt: null,
        waits: null,
        person: { id: "per_1", email: "Ada@example.com" },
        truncated: true,
        cameBy: null,
        warnings: 2,
        createdAt: "2026-01-15T12:00:00.000Z",
        finishedAt: "2026-01-15T12:00:00.005Z",
      },
    ]);
  });

  test.each(["", "orders"])(
    "a range of times bounds its index by the later of two bounds, relay %p, because SQLite starts at the first",
    async (relay) => {
      await seedAlike(3_000, 1);
      const filter = { sinceMs: START_MS, untilMs: START_MS + 9_999, trigger: "receiver", ...(relay === "" ? {} : { relay }) } as const;
      const asked: string[] = [];
      await store.read(async (tx) => {
        const all: typeof tx.all = (sql, ...values) => {
          asked.push(sql);
          return tx.all(sql, ...values);
        };
        const { next } = await listEvents({ get: tx.get.bind(tx), all } as typeof tx, here, filter, readPageRequest({ limit: "2" }));
        return listEvents({ get: tx.get.bind(tx), all } as typeof tx, here, filter, readPageRequest({ limit: "2", cursor: next as string }));
      });
      const steps = asked.filter((sql) => sql.includes("event_of_relay"));
      expect(steps).toHaveLength(4);
      for (const sql of steps) expect([sql.match(/seq >=/g)?.length, sql.match(/seq < /g)?.length]).toEqual([1, 1]);
    },
  );

  test("the view of an event of another environment is null", async () => {
    const [foreign] = await seed([{ environmentId: there }]);
    expect(await store.read((tx) => findEventView(tx, here, foreign as string))).toBeNull();
    expect(await store.read((tx) => findEventView(tx, there, foreign as string))).toMatchObject({
      payload: { event: {}, mapped: {} },
      warnings: [],
      runs: [],
      unsigned: false,
      preview: null,
    });
  });
});
