/** The road of relays that send: one event by itself, committing before each send and with its outcome. It holds no transaction while it sends. */
import type { ActionDoors } from "../action/contract.ts";
import type { EventToRun } from "../event/event-row.ts";
import { keepRunProgress } from "../event/run-row.ts";
import type { Clock } from "../ground/clock.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Store, Writer } from "../store/port.ts";
import { Attempt, type AttemptEnd, type AttemptRooms, type PendingSend } from "./attempt.ts";
import { type Finished, finishAttempt } from "./finish-attempt.ts";

export interface SendingRooms extends AttemptRooms {
  store: Store;
  clock: Clock;
  doors: ActionDoors;
}

/** Runs a claimed event to the end of its attempt. Throws StoreUnavailable, leaving the row `running`. */
export async function runSending(
  relay: LiveRelay,
  event: EventToRun,
  rooms: SendingRooms,
): Promise<Finished> {
  const attempt = new Attempt(event, relay, rooms.clock.now(), rooms);
  const commit = (work: (tx: Writer) => Promise<AttemptEnd | PendingSend>): Promise<Finished | PendingSend> =>
    rooms.store.write("relay", async (tx) => {
      const step = await work(tx);
      if (!("plan" in step)) return finishAttempt(tx, attempt, step, rooms.clock.now());
      await keepRunProgress(tx, {
        eventSeq: event.seq,
        number: event.runs,
        startedAtMs: attempt.startedAtMs,
        results: attempt.results,
      });
      return step;
    });

  let step = await commit(async (tx) => (await attempt.begin(tx)) ?? attempt.advance(tx));
  while ("plan" in step) {
    const pending = step;
    const sent = await sendOrBreak(pending, rooms.doors);
    step = await commit(async (tx) =>
      sent.broke ? attempt.breakOff(sent.error) : attempt.settle(tx, pending, sent.value),
    );
  }
  return step;
}

type Sent = { broke: false; value: unknown } | { broke: true; error: unknown };

/** A door must not throw; one that does all the same breaks its own attempt and nothing else. */
async function sendOrBreak({ action, plan, run }: PendingSend, doors: ActionDoors): Promise<Sent> {
  try {
    return { broke: false, value: await action.send(plan, run, doors) };
  } catch (error) {
    return { broke: true, error };
  }
}
