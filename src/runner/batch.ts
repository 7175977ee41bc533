/**
 * Batches: one transaction for due events of all relays that only touch the database, as many of each as of the others, each run whole to the end
 * of its attempt. What has just arrived is handed over in memory (database-run.ts); all else is read.
 */
import { countAttempt, type HandedEvent, listDueEvents } from "../event/event.ts";
import type { EventCame } from "../event/run.ts";
import type { Clock } from "../ground/clock.ts";
import type { LiveRelay, LiveRelays } from "../relay/live-relay.ts";
import type { Holder } from "../store/holding.ts";
import { type FencedStore, StoreUnavailable, type Writer } from "../store/port.ts";
import { Attempt, type AttemptDeps } from "./attempt.ts";
import { listStanding } from "./clear-relay.ts";
import type { Arrivals } from "./database-run.ts";
import { type Ending, type Finished, finishAttempts, finishCarefully, runWhole } from "./end.ts";

/** Events in one transaction. */
export const BATCH_SIZE = 128;
/** Of those that have to be read: each may take 32 KB, and is read anew where the time did not suffice for it. */
const MOST_READ = 64;
/** A batch ends after so many, and after this long, whatever is left of it: every receiver waits meanwhile. The usual one takes less. */
const MOST_RUN = 384;
const MAX_BATCH_MS = { whole: 8, shared: 40 } as const;

interface BatchDeps extends AttemptDeps {
  store: FencedStore;
  holding: Holder;
  clock: Clock;
  relays: LiveRelays;
  arrivals: Arrivals;
}

/** A relay's part of a batch. `through`: the last event that ran; `hasMore`: the store may hold more behind that. */
interface Share {
  readonly relay: LiveRelay;
  through: number;
  hasMore: boolean;
  /** What was taken for this round, and how the relay's memory stood then. */
  due: readonly Omit<HandedEvent, "relayId">[];
  came: EventCame;
  losses: number;
}

/**
 * Runs the relays' oldest due events to the end of their attempt, whosever they are in the order of their arrival: what waited together, as while
 * its environment was held, runs as it came. Relays that the time of their last batch did not suffice for come first. Nothing is kept of a batch
 * that breaks; it is run again, carefully. `unreached`: the relays that its time did not suffice for.
 */
export async function runBatch(
  relays: readonly LiveRelay[],
  deps: BatchDeps,
): Promise<{ finished: Finished[]; unreached: LiveRelay[] }> {
  try {
    return await commitBatch(relays, deps, { careful: false });
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const names = relays.map(({ name }) => name).join();
    deps.log.error("a batch broke; its events run one by one", { relay: names, error });
    for (const { id } of relays) deps.arrivals.lose(id);
    return await commitBatch(relays, deps, { careful: true });
  }
}

function commitBatch(
  relays: readonly LiveRelay[],
  deps: BatchDeps,
  { careful }: { careful: boolean },
): ReturnType<typeof runBatch> {
  const { store, clock, arrivals, holding } = deps;
  return store.write("relay", async (tx) => {
    arrivals.begin(tx.foreignVersion);
    const nowMs = clock.now();
    const endMs = clock.monotonicMs() + MAX_BATCH_MS[holding.whole ? "whole" : "shared"];
    const isOver = (): boolean => clock.monotonicMs() >= endMs;
    const [ended, finished]: [Ending[], Finished[]] = [[], []];
    const isFull = (): boolean => ended.length + finished.length >= MOST_RUN;
    const standing = holding.whole ? relays : await listStanding(tx, relays, deps.relays);
    for (const relay of relays) if (!standing.includes(relay)) arrivals.lose(relay.id);
    let round = standing.map((relay): Share => ({ ...NOTHING_TAKEN, relay, through: 0, hasMore: true }));
    do {
      // While anything waits, what comes on any node waits behind it: one share may be less than what comes until the next.
      round = round.filter(({ hasMore }) => hasMore);
      for (const share of round) await takeShare(tx, share, standing.length, arrivals);
      for (const [at, { share, due }] of listInTurn(round, arrivals).entries()) {
        if (at > 0 && isOver()) break;
        const [event, { relay, came }] = [countAttempt(due.event), share];
        const run = () =>
          runWhole(tx, new Attempt(event, relay, nowMs, deps, { payload: due.payload }), came, nowMs);
        if (careful) finished.push(await finishCarefully(tx, relay, event, run, nowMs, deps));
        else ended.push(await run());
        share.through = event.seq;
      }
      for (const share of round) if (isReached(share)) passShare(tx, share, standing.length, arrivals);
    } while (!holding.whole && !isOver() && !isFull() && round.some(({ hasMore }) => hasMore));
    finished.push(...(await finishAttempts(tx, ended, nowMs)));
    const unreached = round.filter((share) => !isReached(share)).map(({ relay }) => relay);
    for (const relay of relays) arrivals.noteLate(relay.id, unreached.includes(relay));
    return { finished, unreached };
  });
}

const NOTHING_TAKEN = { due: [], came: "read", losses: 0 } as const;

/** Takes the relay's due events, up to its share of a batch. */
async function takeShare(tx: Writer, share: Share, shares: number, arrivals: Arrivals): Promise<void> {
  const { relay, through } = share;
  const { arrived, losses } = arrivals.peek(relay.id, Math.ceil(BATCH_SIZE / shares));
  // A map that moved is read with the row.
  const handed = arrived?.every(({ event }) => event.mapVersion === relay.version) === true ? arrived : null;
  share.losses = losses;
  share.came = handed === null ? "read" : "handed";
  const read = handed === null ? await listDueEvents(tx, relay.id, mostRead(shares), through) : [];
  share.due = handed ?? read.map((event) => ({ event, payload: null }));
}

function mostRead(shares: number): number {
  return Math.ceil(MOST_READ / shares);
}

function listInTurn(round: readonly Share[], arrivals: Arrivals) {
  const turn = (share: Share): number => (arrivals.isLate(share.relay.id) ? 0 : 1);
  return round
    .flatMap((share) => share.due.map((due) => ({ share, due })))
    .sort((one, other) => turn(one.share) - turn(other.share) || one.due.event.seq - other.due.event.seq);
}

/** Whether the time sufficed for any of what was taken, or there was nothing. */
function isReached({ due, through }: Share): boolean {
  return due[0] === undefined || through >= due[0].event.seq;
}

/** Tells the arrivals how far the relay's events ran, once that is durable. */
function passShare(tx: Writer, share: Share, shares: number, arrivals: Arrivals): void {
  const { relay, through, due, came, losses } = share;
  const isAll = due.length < mostRead(shares) && through === (due.at(-1)?.event.seq ?? through);
  const isWhole = came === "handed" || isAll;
  share.hasMore = !isWhole;
  arrivals.runIn(tx.whole, relay.id, through);
  tx.afterCommit(() => arrivals.pass(relay.id, through, { isWhole, losses }));
}
