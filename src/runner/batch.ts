/** The road of relays that only touch the database: every event runs whole inside the transaction it is taken in. */
import type { EventToRun } from "../event/event.ts";
import { countAttempt, listDueEvents, numberAnew } from "../event/run.ts";
import type { Clock } from "../ground/clock.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable, type Writer } from "../store/port.ts";
import { Attempt, type AttemptDeps } from "./attempt.ts";
import { type Finished, finishAttempt, finishBroken } from "./end.ts";

/** Events in one transaction. */
export const BATCH_SIZE = 64;
/** A batch ends after this long, whatever is left of it: every receiver waits meanwhile. The usual one takes less. */
const MAX_BATCH_MS = 8;

interface BatchDeps extends AttemptDeps {
  store: Store;
  clock: Clock;
}

interface Batch {
  finished: Finished[];
  /** Events of the relay may be due that this batch did not take. */
  more: boolean;
}

type RunOne = (
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  nowMs: number,
  deps: BatchDeps,
) => Promise<Finished>;

/** Runs the relay's oldest due events to the end of their attempt. Nothing is kept of a batch that breaks; it is run again, carefully. */
export async function runBatch(relay: LiveRelay, deps: BatchDeps): Promise<Batch> {
  try {
    return await commitBatch(relay, deps, runEvent);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    deps.log.error("a batch broke; its events run one by one", { relay: relay.name, error });
    return await commitBatch(relay, deps, runCarefully);
  }
}

function commitBatch(relay: LiveRelay, deps: BatchDeps, run: RunOne): Promise<Batch> {
  const { store, clock } = deps;
  return store.write("relay", async (tx) => {
    const due = await listDueEvents(tx, relay.id, BATCH_SIZE);
    const finished: Finished[] = [];
    const nowMs = clock.now();
    const endMs = clock.monotonicMs() + MAX_BATCH_MS;
    for (const event of due) {
      finished.push(await run(tx, relay, countAttempt(event), nowMs, deps));
      if (clock.monotonicMs() >= endMs) break;
    }
    return { finished, more: due.length === BATCH_SIZE || finished.length < due.length };
  });
}

/** An error nobody foresaw throws. */
async function runEvent(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  nowMs: number,
  deps: BatchDeps,
): Promise<Finished> {
  const attempt = new Attempt(event, relay, nowMs, deps);
  const end = (await attempt.begin(tx)) ?? (await attempt.advance(tx));
  if ("send" in end) throw new Error("A relay without sending actions wanted to send.");
  return finishAttempt(tx, attempt, end, nowMs);
}

/** In a savepoint of its own, so that the broken one fails alone and those behind it run. */
async function runCarefully(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  nowMs: number,
  deps: BatchDeps,
): Promise<Finished> {
  try {
    return await tx.attempt(() => runEvent(tx, relay, event, nowMs, deps));
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    deps.log.error("event broke its run", { relay: relay.name, event: event.id, error });
    return finishBroken(tx, relay, await numberAnew(tx, event), nowMs);
  }
}
