/** The road of relays that only touch the database: every event runs whole inside the transaction it is taken in. */
import type { EventToRun } from "../event/event-row.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Writer } from "../store/port.ts";
import { Attempt, type AttemptEnd, type AttemptRooms } from "./attempt.ts";
import { type Finished, finishAttempt } from "./finish-attempt.ts";

export async function runBatch(
  tx: Writer,
  relay: LiveRelay,
  due: readonly EventToRun[],
  { rooms, nowMs }: { rooms: AttemptRooms; nowMs: number },
): Promise<Finished[]> {
  const finished: Finished[] = [];
  for (const event of due) {
    const counted = { ...event, attempts: event.attempts + 1, runs: event.runs + 1 };
    const attempt = new Attempt(counted, relay, nowMs, rooms);
    finished.push(await finishAttempt(tx, attempt, await runWhole(tx, attempt), nowMs));
  }
  return finished;
}

async function runWhole(tx: Writer, attempt: Attempt): Promise<AttemptEnd> {
  const early = await attempt.begin(tx);
  if (early !== null) return early;
  const end = await attempt.advance(tx);
  if ("plan" in end) throw new Error("A relay without sending actions wanted to send.");
  return end;
}
