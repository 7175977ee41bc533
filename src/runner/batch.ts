/**
 * The road of relays that only touch the database: every event runs whole inside the transaction it is taken in, one transaction for events of
 * all such relays, a relay's in the order of their arrival and as many of each as of the others.
 */
import type { HandedEvent } from "../event/insert.ts";
import { countAttempt, listDueEvents, numberAnew } from "../event/run.ts";
import type { Clock } from "../ground/clock.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable, type Writer } from "../store/port.ts";
import type { Arrivals } from "./arrivals.ts";
import { Attempt, type AttemptDeps } from "./attempt.ts";
import { type Finished, finishAttempt, finishBroken } from "./end.ts";

/** Events in one transaction. */
export const BATCH_SIZE = 64;
/** A batch ends after this long, whatever is left of it: every receiver waits meanwhile. The usual one takes less. */
const MAX_BATCH_MS = 8;

interface BatchDeps extends AttemptDeps {
  store: Store;
  clock: Clock;
  arrivals: Arrivals;
}

interface Batch {
  finished: Finished[];
  /** Relays that the batch's time did not suffice for. */
  unreached: LiveRelay[];
}

type RunOne = (tx: Writer, relay: LiveRelay, one: Due, nowMs: number, deps: BatchDeps) => Promise<Finished>;

/** A due event. */
interface Due extends Omit<HandedEvent, "relayId"> {
  /** It was handed over and not read: its run holds if its row says at the end that it is as it was stored. */
  isHanded: boolean;
}

/** Runs the relays' oldest due events to the end of their attempt. Nothing is kept of a batch that breaks; it is run again, carefully. */
export async function runBatch(relays: readonly LiveRelay[], deps: BatchDeps): Promise<Batch> {
  try {
    return await commitBatch(relays, deps, runEvent);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const names = relays.map(({ name }) => name).join();
    deps.log.error("a batch broke; its events run one by one", { relay: names, error });
    for (const { id } of relays) deps.arrivals.lose(id);
    return await commitBatch(relays, deps, runCarefully);
  }
}

function commitBatch(relays: readonly LiveRelay[], deps: BatchDeps, run: RunOne): Promise<Batch> {
  const { store, clock, arrivals } = deps;
  return store.write("relay", async (tx) => {
    arrivals.begin(tx.foreignVersion);
    const finished: Finished[] = [];
    const nowMs = clock.now();
    const endMs = clock.monotonicMs() + MAX_BATCH_MS;
    const isOver = (): boolean => clock.monotonicMs() >= endMs;
    const share = Math.ceil(BATCH_SIZE / relays.length);
    for (const [at, relay] of relays.entries()) {
      if (at > 0 && isOver()) return { finished, unreached: relays.slice(at) };
      await runShare(tx, relay, share, deps, async (one) => {
        finished.push(await run(tx, relay, one, nowMs, deps));
        return isOver();
      });
    }
    return { finished, unreached: [] };
  });
}

/** Runs up to `share` of the relay's due events, until `run` answers that the time is over, and tells the arrivals once that is durable. */
async function runShare(
  tx: Writer,
  relay: LiveRelay,
  share: number,
  { arrivals }: BatchDeps,
  run: (one: Due) => Promise<boolean>,
): Promise<void> {
  const { arrived, losses } = arrivals.peek(relay.id, share);
  // A map that moved is read with the row.
  const handed = arrived?.every(({ event }) => event.mapVersion === relay.version) === true ? arrived : null;
  const isHanded = handed !== null;
  const due = handed ?? (await listDueEvents(tx, relay.id, share)).map((event) => ({ event, payload: null }));
  let through = 0;
  let ran = 0;
  for (const { event, payload } of due) {
    const isOver = await run({ event: countAttempt(event), payload, isHanded });
    through = event.seq;
    ran += 1;
    if (isOver) break;
  }
  const isWhole = isHanded || (ran === due.length && due.length < share);
  tx.afterCommit(() => arrivals.pass(relay.id, through, { isWhole, losses }));
}

/** An error nobody foresaw throws. */
async function runEvent(
  tx: Writer,
  relay: LiveRelay,
  { event, payload, isHanded }: Due,
  nowMs: number,
  deps: BatchDeps,
): Promise<Finished> {
  const attempt = new Attempt(event, relay, nowMs, deps, { payload, isHanded });
  const end = (await attempt.begin(tx)) ?? (await attempt.advance(tx));
  if ("send" in end) throw new Error("A relay without sending actions wanted to send.");
  return finishAttempt(tx, attempt, end, nowMs);
}

/** In a savepoint of its own, so that the broken one fails alone and those behind it run. */
async function runCarefully(
  tx: Writer,
  relay: LiveRelay,
  one: Due,
  nowMs: number,
  deps: BatchDeps,
): Promise<Finished> {
  try {
    return await tx.attempt(() => runEvent(tx, relay, one, nowMs, deps));
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const { event } = one;
    deps.log.error("event broke its run", { relay: relay.name, event: event.id, error });
    return finishBroken(tx, relay, await numberAnew(tx, event), nowMs);
  }
}
