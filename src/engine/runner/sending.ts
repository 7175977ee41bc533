/**
 * Runs events of relays that send. One transaction claims several events of a relay and runs each up to its first send. Then each event continues by
 * itself: it commits before each send, and again with the outcome. No transaction is open during a send.
 */

import type { Clock } from "../../base/clock.ts";
import type { ActionOutcome, ActionPorts, ActionTime } from "../../rules/action/contract.ts";
import type { Intended } from "../../rules/action/registry.ts";
import type { LiveRelay, LiveRelays } from "../../rules/relay/live-relay.ts";
import { dryRun } from "../../store/dry-run.ts";
import type { LeaseHolder } from "../../store/lease/lease-holder.ts";
import { type FencedStore, OutcomeUnknown, StoreUnavailable, type Writer } from "../../store/port.ts";
import { claimEvent, type EventToRun, listDueEvents } from "../event/event.ts";
import { insertEvent, makeReceiverPayload } from "../event/insert.ts";
import { recordRunProgress } from "../event/run.ts";
import { Attempt, type AttemptDeps, type AttemptOutcome } from "./attempt.ts";
import { finalizeAttempt, finalizeBroken } from "./attempt-result.ts";
import { filterCurrent } from "./idle-relays.ts";
import type { RunReport } from "./run-report.ts";

/** The most events of one relay that run at once. */
const MAX_RUNNING_PER_RELAY = 8;
/** A claim takes no further event after this long, because every receiver waits for its transaction. */
const MAX_CLAIM_MS = 8;

export interface SendingDeps extends AttemptDeps {
  store: FencedStore;
  leases: LeaseHolder;
  clock: Clock;
  relays: LiveRelays;
  ports: ActionPorts;
}

/** A claimed event, its attempt counted. */
export interface Claimed {
  event: EventToRun;
  /** The attempt after its first step, which committed with the claim; null if the first step has not run. */
  begun: Begun | null;
}

interface Begun {
  attempt: Attempt;
  step: RunReport | Intended;
}

interface Claim {
  claimed: Claimed[];
  /** True if the relay may have due events that this claim did not take. */
  more: boolean;
}

interface ClaimOptions {
  /** True if the first step of the attempts is skipped. */
  claimOnly: boolean;
  /** Receives events whose claim may or may not have been stored. */
  onUnknown: (events: readonly EventToRun[]) => void;
}

/**
 * Claims at most `limit` of the relay's oldest due events, each with the first step of its attempt. If it throws, no event is claimed and no attempt
 * counts, except after OutcomeUnknown.
 */
export async function claimSending(
  relay: LiveRelay,
  limit: number,
  { claimOnly, onUnknown }: ClaimOptions,
  deps: SendingDeps,
): Promise<Claim> {
  let tried: readonly Claimed[] = [];
  try {
    return await deps.store.write("relay", async (tx) => {
      const claim = await claimDue(tx, relay, limit, { claimOnly }, deps);
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
  { claimOnly }: { claimOnly: boolean },
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
    claimed.push(await claimOne(tx, relay, one, { claimOnly }, nowMs, deps));
    if (clock.monotonicMs() >= endMs) break;
  }
  return { claimed, more: due.length === limit || claimed.length < due.length };
}

/** Claims one due event, with the first step of its attempt unless `claimOnly`. */
export async function claimOne(
  tx: Writer,
  relay: LiveRelay,
  due: EventToRun,
  { claimOnly }: { claimOnly: boolean },
  nowMs: number,
  deps: SendingDeps,
): Promise<Claimed> {
  const event = await claimEvent(tx, due, nowMs);
  return { event, begun: claimOnly ? null : await beginAttempt(tx, relay, event, nowMs, deps) };
}

/**
 * Warms up code and statements, so that the first event that sends does not wait for them. It stores, claims and begins an invented event, and undoes
 * all of it. It sends nothing. If the relay has a due event, it does nothing, because that event has the same effect.
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
  await dryRun(deps.store, "relay", async (tx) => {
    if ((await listDueEvents(tx, relayId, 1)).length > 0) return;
    await insertEvent(tx, { ...of, payload: makeReceiverPayload("{}", {}), nowMs: deps.clock.now() });
    await claimDue(tx, relay, 1, { claimOnly: false }, deps);
  });
}

/** Runs the first step in a savepoint; null if an error undid it, and then the event runs it again in its own transaction. */
async function beginAttempt(
  tx: Writer,
  relay: LiveRelay,
  event: EventToRun,
  nowMs: number,
  deps: SendingDeps,
): Promise<Begun | null> {
  try {
    return await tx.attempt(async () => {
      const attempt = new Attempt(event, relay, nowMs, deps, { startTimer: timerOf(deps) });
      return { attempt, step: await recordStep(tx, attempt, await firstStep(tx, attempt), deps) };
    });
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    return null;
  }
}

/**
 * Runs a claimed event to the end of its attempt. Returns null if `maySend` refused its next send. The row then stays `running` until it is
 * rescued. Throws StoreUnavailable, and then the row stays `running`, too.
 */
export async function runSending(
  relay: LiveRelay,
  { event, begun }: Claimed,
  deps: SendingDeps,
  maySend: () => boolean,
): Promise<RunReport | null> {
  try {
    return await runSteps(relay, event, begun, deps, maySend);
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
  maySend: () => boolean,
): Promise<RunReport | null> {
  let attempt =
    begun?.attempt ?? new Attempt(event, relay, deps.clock.now(), deps, { startTimer: timerOf(deps) });
  const commit = async (work: Work): Promise<RunReport | Intended> => {
    const { step, after } = await deps.store.write("relay", async (tx) => {
      const trial = attempt.fork();
      return { step: await recordStep(tx, trial, await work(tx, trial), deps), after: trial };
    });
    attempt = after;
    return step;
  };

  let step = begun?.step ?? (await commit(firstStep));
  while ("send" in step) {
    if (!maySend()) return null;
    const sent = await sendSafely(step, deps);
    step = await commit(async (tx, trial) =>
      sent.broke ? trial.failSend(sent.error, sent.time) : trial.finalizeSend(tx, sent.record, sent.time),
    );
  }
  return step;
}

type Work = (tx: Writer, trial: Attempt) => Promise<AttemptOutcome | Intended>;

const firstStep: Work = async (tx, attempt) => (await attempt.begin(tx)) ?? attempt.advance(tx);

/** Writes the attempt's result, or its progress before a send. */
async function recordStep(
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

/** Sends. A port must not throw; if it does, the error ends only this attempt. */
async function sendSafely(intended: Intended, { ports, clock }: SendingDeps): Promise<Sent> {
  const beganAt = clock.now();
  const stop = timerOf({ clock })();
  try {
    const record = await intended.send(ports);
    return { broke: false, record, time: { beganAt, ...stop() } };
  } catch (error) {
    return { broke: true, error, time: { beganAt, ...stop() } };
  }
}

/** Measures actions. Only relays that send pay for reading the clock. */
function timerOf({ clock }: Pick<SendingDeps, "clock">): () => () => ActionTime {
  return () => {
    const begunMs = clock.monotonicMs();
    return () => ({ tookMs: Math.round(clock.monotonicMs() - begunMs) });
  };
}

/**
 * Limits how many events send at once, in total and for each relay. A slot is taken before an event is claimed, so that two claims never share one.
 * A slot is reserved for every sending relay that has none, so that relays with slow targets do not block the others.
 */
export class Slots {
  readonly #all: number;
  readonly #taken = new Map<string, number>();
  /** The number of taken slots of all relays. */
  taken = 0;

  constructor(all: number) {
    this.#all = all;
  }

  takenBy(relayId: string): number {
    return this.#taken.get(relayId) ?? 0;
  }

  /** Returns how many slots the relay may take now. `senders`: how many relays send. At most half of all slots are reserved. */
  freeFor(relayId: string, senders: number): number {
    const free = this.#all - this.taken;
    const hasNone = this.takenBy(relayId) === 0;
    const without = Math.max(0, senders - this.#taken.size - (hasNone ? 1 : 0));
    const reserved = Math.min(without, Math.floor(this.#all / 2));
    const wanted = MAX_RUNNING_PER_RELAY - this.takenBy(relayId);
    return Math.max(0, Math.min(wanted, Math.max(free - reserved, hasNone ? Math.min(1, free) : 0)));
  }

  take(relayId: string, count: number): void {
    this.taken += count;
    this.#taken.set(relayId, this.takenBy(relayId) + count);
  }

  release(relayId: string, count: number): void {
    this.taken -= count;
    const left = this.takenBy(relayId) - count;
    if (left === 0) this.#taken.delete(relayId);
    else this.#taken.set(relayId, left);
  }
}
