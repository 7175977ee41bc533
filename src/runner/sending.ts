/** The road of relays that send: one event by itself, committing before each send and with its outcome. It holds no transaction while it sends. */
import type { ActionDoors, ActionOutcome } from "../action/contract.ts";
import type { Intended } from "../action/registry.ts";
import type { EventToRun } from "../event/event-row.ts";
import { keepRunProgress } from "../event/run-row.ts";
import type { Clock } from "../ground/clock.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Store, Writer } from "../store/port.ts";
import { Attempt, type AttemptEnd, type AttemptRooms } from "./attempt.ts";
import { type Finished, finishAttempt } from "./finish-attempt.ts";

interface SendingRooms extends AttemptRooms {
  store: Store;
  clock: Clock;
  doors: ActionDoors;
}

/**
 * Runs a claimed event to the end of its attempt. null: `mayGoOn` forbade its next send, and the row stays `running` for the next start, as
 * though the process had died before it. Throws StoreUnavailable, leaving the row `running` too.
 */
export async function runSending(
  relay: LiveRelay,
  event: EventToRun,
  rooms: SendingRooms,
  mayGoOn: () => boolean,
): Promise<Finished | null> {
  let attempt = new Attempt(event, relay, rooms.clock.now(), rooms);
  const commit = async (work: Work): Promise<Finished | Intended> => {
    const { step, after } = await rooms.store.write("relay", async (tx) => {
      const trial = attempt.fork();
      return { step: await keepStep(tx, trial, await work(tx, trial), rooms), after: trial };
    });
    attempt = after;
    return step;
  };

  let step = await commit(async (tx, trial) => (await trial.begin(tx)) ?? trial.advance(tx));
  while ("send" in step) {
    if (!mayGoOn()) return null;
    const sent = await sendOrBreak(step, rooms.doors);
    step = await commit(async (tx, trial) =>
      sent.broke ? trial.breakOff(sent.error) : trial.settle(tx, sent.record),
    );
  }
  return step;
}

type Work = (tx: Writer, trial: Attempt) => Promise<AttemptEnd | Intended>;

/** Writes down where the attempt stands: ended, or about to send. */
async function keepStep(
  tx: Writer,
  trial: Attempt,
  step: AttemptEnd | Intended,
  rooms: SendingRooms,
): Promise<Finished | Intended> {
  if (!("send" in step)) return finishAttempt(tx, trial, step, rooms.clock.now());
  const { event, startedAtMs, results, ran } = trial;
  await keepRunProgress(tx, { eventSeq: event.seq, number: event.runs, startedAtMs, results, ran });
  return step;
}

type Sent =
  | { broke: false; record: (tx: Writer) => Promise<ActionOutcome> }
  | { broke: true; error: unknown };

/** A door must not throw; one that does all the same breaks its own attempt and nothing else. */
async function sendOrBreak(intended: Intended, doors: ActionDoors): Promise<Sent> {
  try {
    return { broke: false, record: await intended.send(doors) };
  } catch (error) {
    return { broke: true, error };
  }
}
