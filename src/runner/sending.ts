/** The road of relays that send: one event by itself, committing before each send and with its outcome. It holds no transaction while it sends. */
import type { ActionOutcome, ActionPorts } from "../action/contract.ts";
import type { Intended } from "../action/registry.ts";
import type { EventToRun } from "../event/event.ts";
import { keepRunProgress } from "../event/run.ts";
import type { Clock } from "../ground/clock.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import { type Store, StoreUnavailable, type Writer } from "../store/port.ts";
import { Attempt, type AttemptDeps, type AttemptEnd } from "./attempt.ts";
import { type Finished, finishAttempt, finishBroken } from "./end.ts";

interface SendingDeps extends AttemptDeps {
  store: Store;
  clock: Clock;
  ports: ActionPorts;
}

/**
 * Runs a claimed event to the end of its attempt. null: `mayGoOn` forbade its next send, and the row stays `running` for the next start, as
 * though the process had died before it. Throws StoreUnavailable, leaving the row `running` too.
 */
export async function runSending(
  relay: LiveRelay,
  event: EventToRun,
  deps: SendingDeps,
  mayGoOn: () => boolean,
): Promise<Finished | null> {
  try {
    return await runSteps(relay, event, deps, mayGoOn);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const { store, clock, log } = deps;
    log.error("event broke its run", { relay: relay.name, event: event.id, error });
    return await store.write("relay", (tx) => finishBroken(tx, relay, event, clock.now()));
  }
}

async function runSteps(
  relay: LiveRelay,
  event: EventToRun,
  deps: SendingDeps,
  mayGoOn: () => boolean,
): Promise<Finished | null> {
  let attempt = new Attempt(event, relay, deps.clock.now(), deps);
  const commit = async (work: Work): Promise<Finished | Intended> => {
    const { step, after } = await deps.store.write("relay", async (tx) => {
      const trial = attempt.fork();
      return { step: await keepStep(tx, trial, await work(tx, trial), deps), after: trial };
    });
    attempt = after;
    return step;
  };

  let step = await commit(async (tx, trial) => (await trial.begin(tx)) ?? trial.advance(tx));
  while ("send" in step) {
    if (!mayGoOn()) return null;
    const sent = await sendOrBreak(step, deps.ports);
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
  deps: SendingDeps,
): Promise<Finished | Intended> {
  if (!("send" in step)) return finishAttempt(tx, trial, step, deps.clock.now());
  await keepRunProgress(tx, trial);
  return step;
}

type Sent =
  | { broke: false; record: (tx: Writer) => Promise<ActionOutcome> }
  | { broke: true; error: unknown };

/** A port must not throw; one that does all the same breaks its own attempt and nothing else. */
async function sendOrBreak(intended: Intended, ports: ActionPorts): Promise<Sent> {
  try {
    return { broke: false, record: await intended.send(ports) };
  } catch (error) {
    return { broke: true, error };
  }
}
