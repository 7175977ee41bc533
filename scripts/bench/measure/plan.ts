/**
 * Measures how long the plan of a bulk replay takes on a store that years of use have filled, and how long `/healthz` waits meanwhile. Each dead
 * event has seven runs and each failed one has one, as the product would have stored them. A busy machine only adds time, so each plan counts with
 * the best of several tries.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { DAY_MS } from "../../../src/base/limit.ts";
import { readSlowness } from "../calibration.ts";
import { compareWithBar, type Figure } from "../figure.ts";
import { FILLED_RELAYS, fillStore } from "../fill-store.ts";
import type { Measure } from "../measure.ts";
import { type ProductReady, SECRET, start } from "../process.ts";
import { BLOCKED_BAR_MS } from "./lag.ts";

const PLAN_BAR_MS = 200;
const TRIES = 6;
const PING_EVERY_MS = 1;

interface Plan {
  ms: number;
  /** The longest response of `/healthz` during the plan. */
  waitMs: number;
}

export const plan: Measure = {
  name: "plan",
  what: "the plan of a bulk replay on a store filled with --rows events, and how long other requests wait for it",
  pinned: true,
  async measure(run) {
    const { path } = await fillStore(run);
    fillRuns(join(path, "relay.db"));
    await using server = await start<ProductReady>("product.ts", path, FILLED_RELAYS, SECRET, "paused");
    const figures: Figure[] = [];
    for (const filter of listFilters()) {
      const tried: Plan[] = [];
      for (let turn = 0; turn < (run.tiny ? 1 : TRIES); turn++)
        tried.push(await askPlan(server.ready, filter));
      const slowness = readSlowness().wall;
      const best = (one: keyof Plan): number => Math.min(...tried.map((plan) => plan[one]));
      const what = `the plan of ${JSON.stringify(filter)}, ${run.rows} events there`;
      figures.push(
        compareWithBar(what, best("ms"), PLAN_BAR_MS, slowness),
        compareWithBar("longest wait of /healthz during it", best("waitMs"), BLOCKED_BAR_MS, slowness),
      );
    }
    return figures;
  },
};

function listFilters(): object[] {
  const day = (ago: number): string => new Date(Date.now() - ago * DAY_MS).toISOString();
  return [
    { state: "dead" },
    { state: "failed", relay: "orders-3" },
    { state: "dead", reason: "call_failed" },
    { state: "dead", since: day(10), until: day(1) },
    { state: "done" },
    { state: "done", relay: "orders-1" },
  ];
}

async function askPlan({ base, key, port }: ProductReady, filter: object): Promise<Plan> {
  let isDone = false;
  let waitMs = 0;
  const watch = async (): Promise<void> => {
    while (!isDone) {
      const begunMs = performance.now();
      await (await fetch(`http://127.0.0.1:${port}/healthz`)).arrayBuffer();
      waitMs = Math.max(waitMs, performance.now() - begunMs);
      await Bun.sleep(PING_EVERY_MS);
    }
  };
  const watching = watch();
  const begunMs = performance.now();
  const answer = await fetch(`${base}/bulk-replays/plan`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(filter),
  });
  const text = await answer.text();
  const ms = performance.now() - begunMs;
  isDone = true;
  await watching;
  if (!answer.ok) throw new Error(`the plan of ${JSON.stringify(filter)} was rejected: ${text}`);
  return { ms, waitMs };
}

/** Adds the runs of events that failed, unless an earlier measure did. Each did one action and failed at the next one. */
function fillRuns(file: string): void {
  using database = new Database(file);
  if (database.query("SELECT 1 FROM run LIMIT 1").get() !== null) return;
  const actions = [
    {
      type: "write_record",
      collection: "orders",
      data: { order: "{{mapped.event_id}}", amount: "{{event.amount}}" },
    },
    { type: "call_url", url: "https://example.com/orders" },
  ];
  const results = [
    { type: "write_record", outcome: "done", after: { record: "rec_0123456789abcdef" } },
    {
      type: "call_url",
      outcome: "failed",
      code: "call_failed",
      message: "The server answered with status 500.",
    },
  ];
  database
    .query("INSERT INTO action_list (fingerprint, actions, used_at) VALUES ('bench', ?1, ?2)")
    .run(JSON.stringify(actions), Date.now());
  database
    .query(
      `INSERT INTO run (event_seq, number, started_at, finished_at, outcome, results, actions)
       WITH number (at) AS (VALUES (1), (2), (3), (4), (5), (6), (7))
       SELECT seq, at, created_at, created_at, 'failed', ?1, 'bench' FROM event, number
       WHERE state = 'dead' OR (state = 'failed' AND at = 1)`,
    )
    .run(JSON.stringify(results));
  database.run("UPDATE event SET reason = 'call_failed' WHERE state IN ('failed', 'dead')");
}
