/** The metrics: what changes them, their names, and the cost of a scrape. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Metrics } from "../../src/engine/metrics/metrics.ts";
import { countQueue } from "../../src/engine/metrics/queue-count.ts";
import { type Reader, type Store, StoreUnavailable } from "../../src/store/port.ts";
import { NEXT_SEQ } from "../kit/event-sql.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { parsePrometheus, sampleOf } from "../kit/prometheus-text.ts";
import { START_MS, VirtualClock } from "../kit/virtual-clock.ts";

const dataDir = mkdtempSync(join(tmpdir(), "relay-metric-"));
afterAll(() => rmSync(dataDir, { recursive: true }));
const fresh = await openFreshStore();
const { store } = fresh;

/** Creates separate metrics with a function that writes their text. */
function newMetrics(): { metrics: Metrics; clock: VirtualClock; write(from?: Store): Promise<string> } {
  const clock = new VirtualClock(START_MS);
  const metrics = new Metrics({ dataDir, clock });
  return {
    metrics,
    clock,
    async write(from = store) {
      await clock.advance(1_000);
      return await metrics.write(from);
    },
  };
}

async function putEvents(rows: readonly { state: string; at?: number; retryAt?: number; runs?: number }[]) {
  const { id } = await fresh.environment("development");
  await store.write("app", async (tx) => {
    await tx.run("DELETE FROM event");
    await tx.run(
      `INSERT INTO relay (id, environment_id, name, definition, origin_kind, origin_at, active_since, created_at, updated_at)
       VALUES ('rly_1', ?1, 'one', '{"trigger":{"kind":"receiver"}}', 'dashboard', 0, 0, 0, 0) ON CONFLICT DO NOTHING`,
      id,
    );
    for (const { state, at = START_MS, retryAt, runs = 0 } of rows) {
      await tx.run(
        `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at, next_attempt_at, runs)
         SELECT ${NEXT_SEQ}, ?1, key, name_key, 'receiver', ?2, '{}', ?3, ?4, ?5 FROM relay_key WHERE relay_id = 'rly_1'`,
        id,
        state,
        at,
        retryAt ?? null,
        runs,
      );
    }
  });
}

describe("the text", () => {
  test("follows Prometheus' format, and every family has a help text and a type", async () => {
    const { metrics, write } = newMetrics();
    metrics.recordRequest("bad_signature");
    metrics.recordRun({ trigger: "receiver", outcome: "ok", waitedMs: 3, tookMs: 5 });
    const families = parsePrometheus(await write());
    expect(families.size).toBeGreaterThan(15);
    for (const [name, { type, help }] of families) {
      expect({ name, type, help }).toEqual({
        name,
        type: expect.stringMatching(/./),
        help: expect.stringMatching(/./),
      });
      expect(name).toMatch(/^(relay|process)_[a-z_]+$/);
      if (type === "counter") expect(name).toMatch(/_total$/);
      if (/(time|duration|wait|age|lag)(_|$)/.test(name)) expect(name).toMatch(/_seconds$/);
    }
  });

  test("has no label with a value from a caller, a person or a relay", async () => {
    const { metrics, write } = newMetrics();
    metrics.recordRun({ trigger: "schedule", outcome: "failed", waitedMs: null, tookMs: 5 });
    const labels = new Set([...(await write()).matchAll(/[{,]([a-z_]+)="/g)].map(([, label]) => label));
    expect([...labels].sort()).toEqual(["le", "outcome", "signal", "state", "stream", "trigger", "version"]);
  });
});

describe("the metrics count", () => {
  const moves: { rule: string; move: (metrics: Metrics) => void; sample: string; by: number }[] = [
    {
      rule: "a request to a receiver, by its outcome",
      move: (metrics) => metrics.recordRequest("duplicate"),
      sample: 'relay_receiver_calls_total{outcome="duplicate"}',
      by: 1,
    },
    {
      rule: "a rejected request, by its code",
      move: (metrics) => metrics.recordRequest("bad_signature"),
      sample: 'relay_receiver_calls_total{outcome="bad_signature"}',
      by: 1,
    },
    {
      rule: "a run, by trigger and outcome",
      move: (metrics) => metrics.recordRun({ trigger: "schedule", outcome: "failed", waitedMs: null, tookMs: 1 }),
      sample: 'relay_runs_total{trigger="schedule",outcome="failed"}',
      by: 1,
    },
    {
      rule: "a run's wait, in seconds",
      move: (metrics) => metrics.recordRun({ trigger: "receiver", outcome: "ok", waitedMs: 250, tookMs: 1 }),
      sample: "relay_run_wait_seconds_sum",
      by: 0.25,
    },
    {
      rule: "no wait of a run that is not its event's first",
      move: (metrics) => metrics.recordRun({ trigger: "receiver", outcome: "ok", waitedMs: null, tookMs: 1 }),
      sample: "relay_run_wait_seconds_count",
      by: 0,
    },
    {
      rule: "a wait as zero if the clock was set back",
      move: (metrics) => metrics.recordRun({ trigger: "receiver", outcome: "ok", waitedMs: -9_000, tookMs: -5_000 }),
      sample: "relay_run_duration_seconds_sum",
      by: 0,
    },
    {
      rule: "a commit, by the number of writes it made durable",
      move: (metrics) => metrics.recordCommitGroup(12),
      sample: "relay_commit_group_size_sum",
      by: 12,
    },
    {
      rule: "a backup that the server made",
      move: (metrics) => metrics.recordBackup(true),
      sample: 'relay_scheduled_backups_total{outcome="made"}',
      by: 1,
    },
    {
      rule: "a backup that failed",
      move: (metrics) => metrics.recordBackup(false),
      sample: 'relay_scheduled_backups_total{outcome="failed"}',
      by: 1,
    },
  ];
  for (const { rule, move, sample, by } of moves) {
    test(rule, async () => {
      const { metrics, write } = newMetrics();
      const before = sampleOf(await write(), sample);
      move(metrics);
      expect(sampleOf(await write(), sample) - before).toBeCloseTo(by, 9);
    });
  }

  test("the lag of the event loop is measured once a second", async () => {
    const { clock, write } = newMetrics();
    await clock.advance(9_000);
    expect(sampleOf(await write(), "relay_event_loop_lag_seconds_count")).toBe(10);
  });
});

describe("the queue", () => {
  test("is counted by state, and its age is that of the oldest event that never ran", async () => {
    await putEvents([
      { state: "done", at: START_MS - 900_000 },
      { state: "queued", at: START_MS - 800_000, runs: 2 },
      { state: "queued", at: START_MS - 60_000 },
      { state: "queued", at: START_MS - 1_000 },
      { state: "queued", at: START_MS - 700_000, retryAt: START_MS + 60_000, runs: 1 },
      { state: "running" },
      { state: "failed" },
      { state: "dead" },
      { state: "dead" },
    ]);
    const text = await newMetrics().write();
    const counts = ["queued", "retrying", "running", "failed", "dead"].map((state) => sampleOf(text, `relay_events{state="${state}"}`));
    expect(counts).toEqual([3, 1, 1, 1, 2]);
    expect(sampleOf(text, "relay_queue_age_seconds")).toBe(61);
  });

  test("counts stored events from the start on, and no others", async () => {
    const { metrics, write } = newMetrics();
    let stored = 40;
    metrics.observeStored(() => stored);
    expect(sampleOf(await write(), "relay_events_stored_total")).toBe(0);
    stored += 9;
    expect(sampleOf(await write(), "relay_events_stored_total")).toBe(9);
  });

  test("of a paused relay has no age", async () => {
    await putEvents([{ state: "queued", at: START_MS - 60_000 }]);
    await store.write("app", (tx) => tx.run("UPDATE relay SET state = 'paused'"));
    expect(sampleOf(await newMetrics().write(), "relay_queue_age_seconds")).toBe(0);
    await store.write("app", (tx) => tx.run("UPDATE relay SET state = 'active'"));
  });

  test("is read only through indexes", async () => {
    const asked: string[] = [];
    const spy: Reader = {
      get: (sql, ...values) => {
        asked.push(sql);
        return store.read((tx) => tx.get(sql, ...values));
      },
      all: () => Promise.reject(new Error("Lists have no bound.")),
    };
    await countQueue(spy);
    expect(asked.length).toBeGreaterThan(5);
    for (const sql of asked) {
      const plan = await fresh.direct.explain(sql);
      for (const step of plan.split("; ").filter((one) => /\bevent\b(?!\.)/.test(one))) {
        expect(step).toMatch(/USING (COVERING )?INDEX event_|^SEARCH event$|Index (Only )?Scan (Backward )?using event_/);
      }
    }
  });
});

test("a second scrape within a second does not read the store", async () => {
  let reads = 0;
  const counted: Store = {
    ...store,
    read(work) {
      reads += 1;
      return store.read(work);
    },
  };
  const { metrics, clock } = newMetrics();
  await Promise.all([metrics.write(counted), metrics.write(counted)]);
  await metrics.write(counted);
  expect(reads).toBe(1);
  await clock.advance(1_000);
  await metrics.write(counted);
  expect(reads).toBe(2);
});

test("an unreadable store is reported as down, and the counters remain available", async () => {
  const { metrics, write } = newMetrics();
  metrics.recordRequest("accepted");
  expect(sampleOf(await write(), "relay_store_up")).toBe(1);
  const broken: Store = { ...store, read: () => Promise.reject(new StoreUnavailable("The disk is gone.")) };
  const text = await write(broken);
  expect(sampleOf(text, "relay_store_up")).toBe(0);
  expect(sampleOf(text, 'relay_receiver_calls_total{outcome="accepted"}')).toBe(1);
  expect(text).not.toMatch(/^relay_events\{/m);
  expect(sampleOf(await write(), "relay_store_up")).toBe(1);
});
