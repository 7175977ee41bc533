/**
 * The road of relays that send: an event is taken and its attempt begun in one transaction, several of a relay in the same one; then each goes
 * its way by itself, committing before each send and with its outcome. It holds no transaction while it sends.
 */

import type { Clock } from "../../base/clock.ts";
import type { ActionOutcome, ActionPorts, ActionTime } from "../../rules/action/contract.ts";
import type { Intended } from "../../rules/action/registry.ts";
import type { LiveRelay, LiveRelays } from "../../rules/relay/live-relay.ts";
import { undone } from "../../store/dry-run.ts";
import type { Holder } from "../../store/lease/lease-holder.ts";
import { type FencedStore, OutcomeUnknown, StoreUnavailable, type Writer } from "../../store/port.ts";
import { claimEvent, type EventToRun, listDueEvents } from "../event/event.ts";
import { insertEvent, makeReceiverPayload } from "../event/insert.ts";
import { recordRunProgress } from "../event/run.ts";
import { Attempt, type AttemptDeps, type AttemptOutcome } from "./attempt.ts";
import { finalizeAttempt, finalizeBroken } from "./attempt-result.ts";
import { filterCurrent } from "./idle-relays.ts";
import type { RunReport } from "./run-report.ts";

/** Events of one relay that run at once. */
const MAX_RUNNING_PER_RELAY = 8;
/** A claim takes no further event after this long: every receiver waits meanwhile. The usual one takes less. */
const MAX_CLAIM_MS = 8;

export interface SendingDeps extends AttemptDeps {
  store: FencedStore;
  holding: Holder;
  clock: Clock;
  relays: LiveRelays;
  ports: ActionPorts;
}

/** An event taken, its attempt counted. */
export interface Claimed {
  event: EventToRun;
  /** Where its first step, committed with the claim, left it; null: that is still to be done. */
  begun: Begun | null;
}

interface Begun {
  attempt: Attempt;
  step: RunReport | Intended;
}

interface Claim {
  claimed: Claimed[];
  /** Events of the relay may be due that this claim did not take. */
  more: boolean;
}

interface ClaimOptions {
  /** Without any first step. */
  alone: boolean;
  /** Told of events that may be taken although nobody knows. */
  onUnknown: (events: readonly EventToRun[]) => void;
}

/**
 * Takes the relay's oldest due events, at most `limit`, each with its attempt's first step. Throws what undid all of it: then none is taken and no
 * attempt counts, unless that is not known.
 */
export async function claimSending(
  relay: LiveRelay,
  limit: number,
  { alone, onUnknown }: ClaimOptions,
  deps: SendingDeps,
): Promise<Claim> {
  let tried: readonly Claimed[] = [];
  try {
    return await deps.store.write("relay", async (tx) => {
      const claim = await claimDue(tx, relay, limit, { alone }, deps);
      tried = claim.claimed;
      return claim;
    });
  } catch (error) {
    if (error instanceof OutcomeUnknown) onUnknown(tried.map(({ event }) => event));
    throw error;
  }
}

async function claimDue(
  tx: Writer,
  relay: LiveRelay,
  limit: number,
  { alone }: { alone: boolean },
  deps: SendingDeps,
): Promise<Claim> {
  const { clock } = deps;
  const asked = filterCurrent(tx, [relay], deps.relays);
  const [due, current] = await Promise.all([listDueEvents(tx, relay.id, limit), asked]);
  if (current.length === 0) return { claimed: [], more: true };
  const claimed: Claimed[] = [];
  const nowMs = clock.now();
  const endMs = clock.monotonicMs() + MAX_CLAIM_MS;
  for (const one of due) {
    claimed.push(await claimOne(tx, relay, one, { alone }, nowMs, deps));
    if (clock.monotonicMs() >= endMs) break;
  }
  return { claimed, more: due.length === limit || claimed.length < due.length };
}

/** Takes one due event, with its attempt's first step unless `alone`. */
export async function claimOne(
  tx: Writer,
  relay: LiveRelay,
  due: EventToRun,
  { alone }: { alone: boolean },
  nowMs: number,
  deps: SendingDeps,
): Promise<Claimed> {
  const event = await claimEvent(tx, due, nowMs);
  return { event, begun: alone ? null : await beginBeside(tx, relay, event, nowMs, deps) };
}

/**
 * Compiles and prepares what the first event that sends would wait for: one that is made up is stored, taken and begun as every other, and
 * undone. It sends nothing, and does nothing where an event of the relay is due, which does as much.
 */
export async function warmUpSending(relay: LiveRelay, deps: SendingDeps): Promise<void> {
  const { environmentId, id: relayId, key: relayKey, nameKey, version: mapVersion } = relay;
  const { kind: trigger } = relay.definition.trigger;
  const of = {
    environmentId,
    relayId,
    relayKey,
    nameKey,
    trigger,
    mapVersion,
    unsigned: false,
    dedupe: null,
  };
  await undone(deps.store, "relay", async (tx) => {
    if ((await listDueEvents(tx, relayId, 1)).length > 0) return;
    await insertEvent(tx, { ...of, payload: makeReceiverPayload("{}", {}), nowMs: deps.clock.now() });
    await claimDue(tx, relay, 1, { alone: false }, deps);
  });
}

/** The first step beside other events: one that breaks undoes itself alone, and is taken again in a transaction of its own, where it fails alone. */
async function beginBeside(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  nowMs: number,
  deps: SendingDeps,
): Promise<Begun | null> {
  try {
    return await tx.attempt(async () => {
      const attempt = new Attempt(event, relay, nowMs, deps, { watch: watchOf(deps) });
      return { attempt, step: await keepStep(tx, attempt, await firstStep(tx, attempt), deps) };
    });
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    return null;
  }
}

/**
 * Runs a claimed event to the end of its attempt. null: `mayGoOn` forbade its next send, and the row stays `running` for the next start, as
 * though the process had died before it. Throws StoreUnavailable, leaving the row `running` too.
 */
export async function runSending(
  relay: LiveRelay,
  { event, begun }: Claimed,
  deps: SendingDeps,
  mayGoOn: () => boolean,
): Promise<RunReport | null> {
  try {
    return await runSteps(relay, event, begun, deps, mayGoOn);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    const { store, clock, log } = deps;
    log.error("event broke its run", { relay: relay.name, event: event.id, error });
    return await store.write("relay", (tx) => finalizeBroken(tx, relay, event, clock.now()));
  }
}

async function runSteps(
  relay: LiveRelay,
  event: EventToRun,
  begun: Begun | null,
  deps: SendingDeps,
  mayGoOn: () => boolean,
): Promise<RunReport | null> {
  let attempt = begun?.attempt ?? new Attempt(event, relay, deps.clock.now(), deps, { watch: watchOf(deps) });
  const commit = async (work: Work): Promise<RunReport | Intended> => {
    const { step, after } = await deps.store.write("relay", async (tx) => {
      const trial = attempt.fork();
      return { step: await keepStep(tx, trial, await work(tx, trial), deps), after: trial };
    });
    attempt = after;
    return step;
  };

  let step = begun?.step ?? (await commit(firstStep));
  while ("send" in step) {
    if (!mayGoOn()) return null;
    const sent = await sendOrBreak(step, deps);
    step = await commit(async (tx, trial) =>
      sent.broke ? trial.breakOff(sent.error, sent.time) : trial.settle(tx, sent.record, sent.time),
    );
  }
  return step;
}

type Work = (tx: Writer, trial: Attempt) => Promise<AttemptOutcome | Intended>;

const firstStep: Work = async (tx, attempt) => (await attempt.begin(tx)) ?? attempt.advance(tx);

/** Writes down where the attempt stands: ended, or about to send. */
async function keepStep(
  tx: Writer,
  trial: Attempt,
  step: AttemptOutcome | Intended,
  deps: SendingDeps,
): Promise<RunReport | Intended> {
  if (!("send" in step)) return finalizeAttempt(tx, trial, step, deps.clock.now());
  await recordRunProgress(tx, trial);
  return step;
}

type Sent = { time: ActionTime } & (
  | { broke: false; record: (tx: Writer) => Promise<ActionOutcome> }
  | { broke: true; error: unknown }
);

/** A port must not throw; one that does all the same breaks its own attempt and nothing else. */
async function sendOrBreak(intended: Intended, { ports, clock }: SendingDeps): Promise<Sent> {
  const beganAt = clock.now();
  const stop = watchOf({ clock })();
  try {
    const record = await intended.send(ports);
    return { broke: false, record, time: { beganAt, ...stop() } };
  } catch (error) {
    return { broke: true, error, time: { beganAt, ...stop() } };
  }
}

/** Measures an action: a relay that sends waits for others, and looks at the clock all the same. */
function watchOf({ clock }: Pick<SendingDeps, "clock">): () => () => ActionTime {
  return () => {
    const begunMs = clock.monotonicMs();
    return () => ({ tookMs: Math.round(clock.monotonicMs() - begunMs) });
  };
}

/**
 * The slots of events that are being sent: so many in all, so many a relay. A slot is taken before an event is, so that no two claims share one.
 * One is kept for every sending relay that has none, so that relays whose targets hang take nothing from the others.
 */
export class Slots {
  readonly #all: number;
  readonly #taken = new Map<string, number>();
  /** By all relays. */
  taken = 0;

  constructor(all: number) {
    this.#all = all;
  }

  takenBy(relayId: string): number {
    return this.#taken.get(relayId) ?? 0;
  }

  /** How many the relay may take now, where `senders` relays could each want one; at most half of all slots are kept for others. */
  freeFor(relayId: string, senders: number): number {
    const free = this.#all - this.taken;
    const hasNone = this.takenBy(relayId) === 0;
    const without = Math.max(0, senders - this.#taken.size - (hasNone ? 1 : 0));
    const kept = Math.min(without, Math.floor(this.#all / 2));
    const wanted = MAX_RUNNING_PER_RELAY - this.takenBy(relayId);
    return Math.max(0, Math.min(wanted, Math.max(free - kept, hasNone ? Math.min(1, free) : 0)));
  }

  take(relayId: string, count: number): void {
    this.taken += count;
    this.#taken.set(relayId, this.takenBy(relayId) + count);
  }

  giveBack(relayId: string, count: number): void {
    this.taken -= count;
    const left = this.takenBy(relayId) - count;
    if (left === 0) this.#taken.delete(relayId);
    else this.#taken.set(relayId, left);
  }
}
