/**
 * Measures how long each route's worst calls block the event loop on a store as full as years of use make it. Every receiver waits during that
 * time. A call misses its bar only when the best of several tries does.
 */
import type { FilledAccess } from "../../../test/kit/filled-service.ts";
import {
  createHeavyCollection,
  createHeavyRelays,
  HEAVY_BURSTS,
  type HeavyBurst,
  runBurst,
} from "../../../test/kit/heavy-burst.ts";
import { listWorstCalls, type WorstCall } from "../../../test/kit/worst-call.ts";
import { type Caller, openCaller } from "../../../test/kit/worst-caller.ts";
import { compareWithBar, type Figure } from "../figure.ts";
import type { Measure, Run } from "../measure.ts";
import { type MeasuredService, slownessFor, startMeasured } from "../measured-service.ts";
import { scratch } from "../process.ts";

/** Maximum of milliseconds for which a request may block the event loop. */
export const BLOCKED_BAR_MS = 25;
const SHOWN = 8;
const TRIES = 6;
const BURST_TRIES = 3;

export const lag: Measure = {
  name: "lag",
  what: "the longest time for which each route's worst calls block the event loop",
  pinned: true,
  async measure(run) {
    using folder = scratch();
    const share = run.tiny ? "0.01" : "1";
    await using service = await startMeasured<FilledAccess>("lag-service.ts", folder.path, share);
    const ask = await openCaller(service.ready);
    const figures: Figure[] = [];
    for (const call of listWorstCalls()) figures.push(await measureCall(service, ask, call, run));
    await createHeavyCollection(ask);
    for (const burst of HEAVY_BURSTS) figures.push(await measureBurst(service, ask, burst, run));
    return run.verbose ? figures : foldCalls(figures);
  },
};

/** Returns figures for the share of calls that met the bar, the slowest calls, and every call that missed it. */
function foldCalls(figures: readonly Figure[]): Figure[] {
  const sorted = figures.toSorted((one, other) => Number(other.ratio) - Number(one.ratio));
  const missed = figures.filter(({ met }) => met === false).length;
  const all: Figure = {
    what: `calls of all routes that block the event loop for at most ${BLOCKED_BAR_MS} ms × slowness`,
    value: `${figures.length - missed} of ${figures.length}`,
    goal: "all",
    met: missed === 0,
  };
  return [all, ...sorted.filter((figure, at) => at < SHOWN || figure.met === false)];
}

/** Returns the best of several tries, until one meets the bar. */
async function bestOf(
  service: MeasuredService<unknown>,
  what: string,
  tries: number,
  work: (turn: number) => Promise<boolean>,
): Promise<Figure> {
  let best: Figure | null = null;
  for (let turn = 0; turn < tries && best?.met !== true; turn++) {
    await service.tell("watch");
    const isDone = await work(turn);
    const ms = await service.tell("worst");
    if (!isDone) break;
    const figure = compareWithBar(what, ms, BLOCKED_BAR_MS, await slownessFor(service, ms, BLOCKED_BAR_MS));
    if (best === null || Number(figure.ratio) < Number(best.ratio)) best = figure;
  }
  if (best === null) throw new Error(`${what}: no call was made`);
  return best;
}

function measureCall(
  service: MeasuredService<unknown>,
  ask: Caller,
  call: WorstCall,
  { tiny }: Run,
): Promise<Figure> {
  return bestOf(service, `blocked by ${call.name}`, tiny ? 1 : TRIES, async (turn) => {
    const asked = call.ask(turn);
    if (asked === undefined) return false;
    const { isExpected, status, text } = await ask(asked);
    // A later try can fail because an earlier one used up what it needs.
    if (turn === 0 && !isExpected)
      throw new Error(`${call.name} got status ${status}: ${text.slice(0, 500)}`);
    return true;
  });
}

async function measureBurst(
  service: MeasuredService<unknown>,
  ask: Caller,
  burst: HeavyBurst,
  { tiny }: Run,
): Promise<Figure> {
  await createHeavyRelays(ask, burst);
  return await bestOf(service, `blocked by ${burst.name}`, tiny ? 1 : BURST_TRIES, async (turn) => {
    await runBurst(ask, burst, turn);
    return true;
  });
}
