/** The road of relays that only touch the database: every event runs whole inside the transaction it is taken in. */
import type { EventToRun } from "../event/event-row.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import { StoreUnavailable, type Writer } from "../store/port.ts";
import { Attempt, type AttemptEnd, type AttemptRooms } from "./attempt.ts";
import { type Finished, finishAttempt, finishBroken } from "./finish-attempt.ts";

interface BatchRooms {
  rooms: AttemptRooms;
  nowMs: number;
  /** Milliseconds that only ever go forward. */
  monotonicMs(): number;
}

/** A batch ends after this long, whatever is left of it: every receiver waits meanwhile. The usual one takes less. */
const MAX_BATCH_MS = 8;

/**
 * Runs events to the end of their attempt, each or the first of them: those it does not answer were not begun. An error nobody foresaw
 * throws, and nothing of the batch may be kept.
 */
export async function runBatch(
  tx: Writer,
  relay: LiveRelay,
  due: readonly EventToRun[],
  batch: BatchRooms,
): Promise<Finished[]> {
  const finished: Finished[] = [];
  const endMs = batch.monotonicMs() + MAX_BATCH_MS;
  for (const event of due) {
    finished.push(await runEvent(tx, relay, countAttempt(event), batch));
    if (batch.monotonicMs() >= endMs) break;
  }
  return finished;
}

/** As `runBatch`, after it threw: each event in a savepoint of its own, so that the broken one fails alone and those behind it run. */
export async function runBatchCarefully(
  tx: Writer,
  relay: LiveRelay,
  due: readonly EventToRun[],
  batch: BatchRooms,
): Promise<Finished[]> {
  const finished: Finished[] = [];
  const endMs = batch.monotonicMs() + MAX_BATCH_MS;
  for (const event of due.map(countAttempt)) {
    if (finished.length > 0 && batch.monotonicMs() >= endMs) break;
    try {
      finished.push(await tx.attempt(() => runEvent(tx, relay, event, batch)));
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      batch.rooms.log.error("event broke its run", { relay: relay.name, event: event.id, error });
      finished.push(await finishBroken(tx, relay, event, batch.nowMs));
    }
  }
  return finished;
}

function countAttempt(event: EventToRun): EventToRun {
  return { ...event, attempts: event.attempts + 1, runs: event.runs + 1 };
}

async function runEvent(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  { rooms, nowMs }: BatchRooms,
): Promise<Finished> {
  const attempt = new Attempt(event, relay, nowMs, rooms);
  return finishAttempt(tx, attempt, await runWhole(tx, attempt), nowMs);
}

async function runWhole(tx: Writer, attempt: Attempt): Promise<AttemptEnd> {
  const early = await attempt.begin(tx);
  if (early !== null) return early;
  const end = await attempt.advance(tx);
  if ("send" in end) throw new Error("A relay without sending actions wanted to send.");
  return end;
}
