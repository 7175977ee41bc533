/**
 * Measures what a distance to the database costs one node over one environment: how much of its rate near the database remains, and how many round
 * trips a single event waits for. The same proxy is between them at every distance.
 */
import { openDistance } from "../distance.ts";
import { compareRates, type Figure, median, type Round } from "../figure.ts";
import type { Measure } from "../measure.ts";
import { fresh, openServer, startNodes, warmUp } from "../postgres.ts";
import { SECRET, startClient } from "../process.ts";

/** How much longer each round trip takes, and the share of the rate that must remain. */
const DISTANCES = [
  { delayMs: 1, atLeast: 0.9 },
  { delayMs: 5, atLeast: 0.45 },
] as const;
const CALLERS = 64;
const WARM_UP_CALLS = 20_000;
const TURN_SECONDS = 2;
/** A distance at which the round trips take nearly all of the time of an event. */
const FAR_MS = 20;
const MOST_ROUND_TRIPS = 3;

export const distance: Measure = {
  name: "distance",
  what: "webhooks stored on PostgreSQL at a distance, next to the same near it, and round trips of one",
  // Node, database and proxy are more processes than there are processors.
  pinned: false,
  async measure(run) {
    await using server = await openServer(run);
    await using database = await fresh(server.url);
    using way = await openDistance(database.url);
    await using nodes = await startNodes(way.url, { nodes: 1, apps: 1, kind: "paused" });
    await using client = startClient(SECRET);
    const calls = run.tiny ? 100 : WARM_UP_CALLS;
    await warmUp(database.url, client, nodes.servers, { connections: CALLERS, calls });
    const servers = nodes.servers.map(({ ready }) => ready);
    const seconds = run.tiny ? run.seconds : TURN_SECONDS;
    const load = async (delayMs: number, connections: number) => {
      way.delayMs = delayMs;
      return await client.load(servers, { seconds, connections });
    };
    const rounds = new Map([0, ...DISTANCES.map(({ delayMs }) => delayMs)].map((ms) => [ms, [] as Round[]]));
    const trips: number[] = [];
    const turns = run.tiny ? 1 : Math.max(1, Math.round((run.seconds * run.rounds) / TURN_SECONDS));
    for (let turn = 0; turn < turns; turn++) {
      for (const [delayMs, measured] of turn % 2 === 0 ? rounds : [...rounds].toReversed()) {
        const { ok, seconds: took } = await load(delayMs, CALLERS);
        measured.push({ perSecond: ok / took, cpuMicros: 0 });
      }
      const near = await load(0, 1);
      const far = await load(FAR_MS, 1);
      trips.push((far.p50Ms - near.p50Ms) / FAR_MS);
    }
    const near = rounds.get(0) ?? [];
    const waited = median(trips);
    const figures: Figure[] = DISTANCES.map(({ delayMs, atLeast }) =>
      compareRates(
        `stored by ${CALLERS} callers, database ${delayMs} ms away`,
        rounds.get(delayMs) ?? [],
        "near it",
        near,
        atLeast,
      ),
    );
    figures.push({
      what: "round trips that a single event waits for",
      value: waited.toFixed(1),
      goal: `≤ ${MOST_ROUND_TRIPS}`,
      met: Math.round(waited) <= MOST_ROUND_TRIPS,
    });
    return figures;
  },
};
