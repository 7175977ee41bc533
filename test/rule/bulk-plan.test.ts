/** The plan of a bulk replay: which events a filter matches, how much a plan reads, and that other work runs between its steps. */
import { beforeEach, describe, expect, test } from "bun:test";
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import { countMatches } from "../../src/engine/event/bulk-choice.ts";
import { planBulkReplay } from "../../src/engine/event/bulk-plan.ts";
import { testOfFile } from "../kit/chosen-store.ts";
import { relayOf } from "../kit/event-sql.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { RecordedStatements } from "../kit/service-lifecycle.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const { store, environment, direct } = await openFreshStore();
const here = (await environment("development")).id;
const there = (await environment("production")).id;

const REASONS = ["call_failed", "collection_missing"] as const;
const STATES = ["done", "dead", "failed", "queued"] as const;

/** The event with the number `seq`, as `fill` stores it: each of its properties has another period. */
const eventOf = (seq: number) => {
  const state = STATES[seq % 4] ?? "done";
  return {
    seq,
    isHere: seq % 3 !== 0,
    relay: `relay-${seq % 5}`,
    state,
    trigger: seq % 7 === 0 ? "schedule" : "receiver",
    reason: state === "dead" || state === "failed" ? REASONS[seq % 2] : null,
    person: seq % 11 === 0 ? "per_ada" : null,
    atMs: START_MS + seq * 1_000,
  };
};
type Stored = ReturnType<typeof eventOf>;

/** Stores events with the numbers from 1 to `count`. No relay exists, so that a replay would leave each event out. */
async function fill(count: number): Promise<Stored[]> {
  const events = Array.from({ length: count }, (_, at) => eventOf(at + 1));
  await store.write("app", async (tx) => {
    for (const { seq, isHere, relay, state, trigger, reason, person, atMs } of events) {
      const environmentId = isHere ? here : there;
      const { relayKey, nameKey } = await relayOf(tx, environmentId, `rly_${relay}_${environmentId}`, relay);
      await tx.run(
        `INSERT INTO event (seq, environment_id, relay_key, name_key, "trigger", state, reason, person_id, payload, created_at, finished_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, '{}', ?9, ?9 + 5)`,
        ...[seq, environmentId, relayKey, nameKey, trigger, state, reason ?? null, person, atMs],
      );
    }
  });
  return events;
}

const isoOf = (seq: number): string => new Date(eventOf(seq).atMs).toISOString();
const plan = (filter: BulkFilter) => planBulkReplay(store, here, filter);

beforeEach(() => store.write("app", (tx) => tx.run("DELETE FROM event")));

describe("a plan and a start match the events", () => {
  const FILTERS: Readonly<Record<string, [filter: BulkFilter, matches: (event: Stored) => boolean]>> = {
    "of a state": [{ state: "dead" }, ({ state }) => state === "dead"],
    "of a relay": [{ state: "failed", relay: "relay-2" }, ({ state, relay }) => state === "failed" && relay === "relay-2"],
    "of a relay that never existed": [{ state: "dead", relay: "none" }, () => false],
    "of a trigger": [{ state: "dead", trigger: "schedule" }, ({ state, trigger }) => state === "dead" && trigger === "schedule"],
    "with a reason": [{ state: "failed", reason: "call_failed" }, ({ state, reason }) => state === "failed" && reason === "call_failed"],
    "with any reason": [{ state: "failed", reason: "any" }, ({ state }) => state === "failed"],
    "of a person": [{ state: "dead", person: "per_ada" }, ({ state, person }) => state === "dead" && person === "per_ada"],
    "of a person and a relay": [
      { state: "dead", person: "per_ada", relay: "relay-1" },
      ({ state, person, relay }) => state === "dead" && person === "per_ada" && relay === "relay-1",
    ],
    "since a time": [{ state: "dead", since: isoOf(300) }, ({ state, seq }) => state === "dead" && seq >= 300],
    "until a time": [{ state: "dead", until: isoOf(300) }, ({ state, seq }) => state === "dead" && seq < 300],
    "of all filters": [
      { state: "dead", relay: "relay-3", trigger: "receiver", reason: "collection_missing", since: isoOf(40), until: isoOf(900) },
      ({ state, relay, trigger, reason, seq }) =>
        state === "dead" && relay === "relay-3" && trigger === "receiver" && reason === "collection_missing" && seq >= 40 && seq < 900,
    ],
    "that are done": [{ state: "done" }, ({ state }) => state === "done"],
    "that are done, of a relay": [{ state: "done", relay: "relay-1" }, ({ state, relay }) => state === "done" && relay === "relay-1"],
    "that are done, of a person": [{ state: "done", person: "per_ada" }, ({ state, person }) => state === "done" && person === "per_ada"],
    "that are done, since a time": [{ state: "done", since: isoOf(700) }, ({ state, seq }) => state === "done" && seq >= 700],
  };

  for (const [name, [filter, matches]] of Object.entries(FILTERS)) {
    test(name, async () => {
      const events = await fill(1_000);
      const matching = events.filter((event) => event.isHere && matches(event));
      const matched = matching.length;
      const endedUntil = Math.max(0, ...matching.map(({ atMs }) => atMs + 5));
      const leftOut = matched === 0 ? {} : { relay_deleted: matched };
      expect(await plan(filter)).toMatchObject({ matched, isMore: false, planned: matched, leftOut });
      expect(await countMatches(store, here, filter)).toMatchObject({ matched, endedUntil });
    });
  }
});

describe("on a large store", () => {
  /** Stores copies of an event, with the next numbers. */
  const copy = (seq: number, count: number) =>
    store.write("app", (tx) =>
      tx.run(
        `INSERT INTO event (seq, environment_id, relay_key, name_key, "trigger", state, reason, person_id, payload, created_at)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
         SELECT seq + i * 6, environment_id, relay_key, name_key, "trigger", state, reason, person_id, payload, created_at
         FROM n CROSS JOIN (SELECT * FROM event WHERE seq = ?1) AS one`,
        seq,
        count,
      ),
    );

  test("all dead events are counted, and the oldest 2,000 are outlined", async () => {
    await fill(5);
    await copy(5, 30_000);
    const outcome = { matched: 30_002, isMore: false, planned: 2_000, leftOut: { relay_deleted: 2_000 } };
    expect(await plan({ state: "dead" })).toMatchObject(outcome);
    expect(await plan({ state: "dead", reason: "none" })).toMatchObject({ matched: 0, isMore: false, planned: 0 });
  });

  test("done events are counted as far as a plan reads them, and the plan says that there may be more", async () => {
    await fill(4);
    await copy(4, 30_000);
    for (const filter of [{ state: "done" }, { state: "done", relay: "relay-4" }] as const) {
      const { matched, isMore, planned } = await plan(filter);
      expect({ isMore, planned, bounded: matched > 2_000 && matched <= 20_000 }).toEqual({ isMore: true, planned: 2_000, bounded: true });
      expect(await countMatches(store, here, filter)).toMatchObject({ matched: 30_001 });
    }
  });

  test("the event loop turns between the steps of a plan", async () => {
    await fill(5);
    await copy(5, 500);
    let [isPlanned, turns] = [false, 0];
    const turn = () => {
      turns += 1;
      if (!isPlanned) setImmediate(turn);
    };
    setImmediate(turn);
    const { planned } = await plan({ state: "dead" });
    isPlanned = true;
    // A step outlines at most ten events.
    expect([planned, turns > 50]).toEqual([502, true]);
  });

  testOfFile("an index answers the count of dead events by itself, whatever the filter", async () => {
    await fill(5);
    const noted = new RecordedStatements();
    await noted.during(async () => {
      const times = { since: isoOf(1), until: isoOf(9) };
      for (const filter of [{}, { relay: "relay-0" }, { trigger: "receiver" as const }, { reason: "call_failed" }, times])
        await countMatches(store, here, { state: "dead", ...filter });
    });
    const counts = [...noted.asked].filter((sql) => sql.startsWith("SELECT count(*) AS matched"));
    expect(counts.length).toBe(5);
    for (const sql of counts) {
      expect(await direct.explain(sql.replaceAll(/\$\w+/g, "1"))).toContain(
        "USING COVERING INDEX event_unhappy (environment_id=? AND state=? AND seq>? AND seq<?)",
      );
    }
  });
});
