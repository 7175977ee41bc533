/**
 * One attempt of an event: finds its person, then runs its actions in order until one fails or must send. It decides which actions are skipped
 * and when the attempt stops. It never opens a transaction and never sends: the caller does both.
 */

import type { ResultCode } from "../../base/code/result-code.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "../../base/json.ts";
import type { RaisableLimits } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type {
  ActionOutcome,
  ActionPerson,
  ActionResult,
  ActionRun,
  ActionTime,
} from "../../rules/action/contract.ts";
import { findAction, type Intended } from "../../rules/action/registry.ts";
import type { LiveReceiver } from "../../rules/relay/live-receiver.ts";
import type { LiveAction, LiveRelay } from "../../rules/relay/live-relay.ts";
import { formatPerson } from "../../shop/people/person.ts";
import { StoreUnavailable, type Writer } from "../../store/port.ts";
import { completeEffect, deleteIntent, finalizeEffect, intendEffect } from "../event/effect.ts";
import { EVENT, type EventReason, type EventToRun, readExpunged } from "../event/event.ts";
import { mapAgain } from "../event/remap.ts";
import { changePerson, makeFreshKeys, type RanActions, storeActionList } from "../event/run.ts";
import { bindKeys, type Step } from "../event/step-reconciliation.ts";
import { formatEdited, formatOtherPerson, formatUnsure } from "../event/step-text.ts";
import { findErasure, firstSteps, makeActionRun, reconcileSteps, resolvePerson } from "./context.ts";

/** Warnings on one event. A template can make many, so warnings about skipped work have a higher limit. */
const MAX_WARNINGS = 50;
const MAX_LOSS_WARNINGS = 4 * MAX_WARNINGS;

export interface AttemptDeps {
  limits: RaisableLimits;
  log: Log;
}

/** The kind of end of an attempt. `not_run`: it ended without running an action, or before its remaining actions. */
export type AttemptOutcome =
  | { outcome: "ok" }
  | { outcome: "failed"; code: ResultCode; final: boolean }
  | { outcome: "not_run"; reason: EventReason };

interface AttemptOptions {
  /** The parsed payload, if the caller has it. */
  payload?: JsonObject | null;
  /** Starts to measure an action, and returns the function that stops. Actions are not measured if it is absent. */
  startTimer?: () => () => ActionTime;
}

export class Attempt {
  readonly event: EventToRun;
  readonly relay: LiveRelay;
  readonly startedAtMs: number;
  readonly results: ActionResult[] = [];
  /** The warnings, including those of earlier attempts. */
  readonly warnings: Set<string>;
  readonly #deps: AttemptDeps;
  readonly #options: AttemptOptions;
  #payload: JsonObject;
  /** The step of each action; empty until `begin` has found the person. */
  #steps: readonly Step[] = [];
  #mapVersion: number | null = null;
  #person: ActionPerson | null = null;
  #next = 0;

  /** Takes an event with this attempt counted. */
  constructor(
    event: EventToRun,
    relay: LiveRelay,
    startedAtMs: number,
    deps: AttemptDeps,
    options: AttemptOptions = {},
  ) {
    this.event = event;
    this.relay = relay;
    this.startedAtMs = startedAtMs;
    this.#deps = deps;
    this.#options = options;
    this.#payload = options.payload ?? (parseJson(event.payload) as JsonObject);
    this.warnings = new Set(event.warnings === null ? [] : (parseJson(event.warnings) as string[]));
  }

  /** Copies the attempt, so that a transaction that may run twice changes only the copy. */
  fork(): Attempt {
    const options = { ...this.#options, payload: this.#payload };
    const copy = new Attempt(this.event, this.relay, this.startedAtMs, this.#deps, options);
    copy.results.push(...this.results);
    for (const warning of this.warnings) copy.warnings.add(warning);
    copy.#steps = this.#steps;
    copy.#mapVersion = this.#mapVersion;
    copy.#person = this.#person;
    copy.#next = this.#next;
    return copy;
  }

  get personId(): string | null {
    return this.#person?.id ?? null;
  }

  /** The relay's version whose map `mapped` follows; null if the map was not applied again. */
  get mapVersion(): number | null {
    return this.#mapVersion;
  }

  /** The list of actions that this attempt runs; null if it ended before them. */
  get ran(): RanActions | null {
    if (this.#steps.length === 0) return null;
    const { fingerprint } = this.relay.actionList;
    if (this.event.runs === 1) return { fingerprint, keys: null };
    const keys = bindKeys(this.#steps);
    const own = makeFreshKeys(this.relay.actions);
    return { fingerprint, keys: keys.every((key, at) => key === own[at]) ? null : keys };
  }

  /** Checks whether the event may run, applies a changed map, and finds the person; null to continue with `advance`. */
  async begin(tx: Writer): Promise<AttemptOutcome | null> {
    const { event, relay } = this;
    if (relay.definition.trigger.kind !== event.trigger)
      return { outcome: "not_run", reason: "trigger_changed" };
    const expunged = readExpunged(this.#payload);
    if (expunged !== null) return { outcome: "not_run", reason: expunged };
    if (event.unsigned && relay.rejectsUnsigned) return { outcome: "not_run", reason: "unsigned_event" };
    if (relay.receiver !== null && event.mapVersion !== relay.version && !event.truncated)
      await this.#mapAgain(tx, relay.receiver);
    const found = await this.#runGuarded(tx, "person", () =>
      resolvePerson(tx, {
        relay,
        payload: this.#payload,
        event,
        nowMs: this.startedAtMs,
        invitesPerDay: this.#deps.limits.invitesPerDay,
        warn: (sentence) => this.#warn(sentence, MAX_LOSS_WARNINGS),
      }),
    );
    this.#person = ("person" in found ? found.person : null) ?? null;
    const { personId: former } = event;
    const isOther = former !== null && this.#person !== null && this.#person.id !== former;
    if (isOther) await changePerson(tx, event, this.#person?.id ?? former);
    if ("outcome" in found || found.kind === "failed") {
      this.results.push({ type: "person", outcome: "failed", code: found.code, message: found.message });
      return found.code === "person_not_found" || found.code === "person_erased"
        ? { outcome: "not_run", reason: found.code }
        : { outcome: "failed", code: found.code, final: found.code === "person_suspended" };
    }
    if (isOther) {
      const [was, is] = [await formatPerson(tx, event.environmentId, former), await this.#namePerson(tx)];
      this.#warn(formatPersonChanged(was, is), MAX_LOSS_WARNINGS);
    }
    // Only an event that ran before can have prior work.
    this.#steps =
      event.runs > 1 ? await reconcileSteps(tx, relay, event, this.#makeRun()) : firstSteps(relay.actions);
    await storeActionList(tx, relay, this.startedAtMs);
    return null;
  }

  /** Applies a map that changed after the event was stored. `when` is not evaluated again, because the event was accepted. */
  async #mapAgain(tx: Writer, { map }: LiveReceiver): Promise<void> {
    this.#mapVersion = this.relay.version;
    const remapped = mapAgain(this.event, this.#payload, map);
    if (remapped === null) return;
    this.#payload = remapped.payload;
    for (const warning of remapped.warnings) this.#warn(warning);
    await EVENT.change(tx, { seq: this.event.seq }, { payload: remapped.text, mappedAgain: true });
  }

  /** Runs actions until the last one, a failure, or an action that must send. */
  async advance(tx: Writer): Promise<AttemptOutcome | Intended> {
    for (; this.#next < this.relay.actions.length; this.#next++) {
      const live = this.relay.actions[this.#next] as LiveAction;
      const step = this.#steps[this.#next] as Step;
      // The caller measures a send.
      const stop = live.sends ? undefined : this.#options.startTimer?.();
      const outcome = await this.#runGuarded(tx, live.type, () => this.#runAction(tx, live, step));
      if ("send" in outcome) return outcome;
      const end = this.#addResult(live, outcome, stop?.());
      if (end !== null) return end;
    }
    // A failure that let the other actions run is still retried.
    const refused = this.results.find((result) => result.outcome === "failed");
    return refused === undefined
      ? { outcome: "ok" }
      : { outcome: "failed", code: refused.code, final: false };
  }

  /** Records the outcome of a send and runs the actions after it. `record`: writes the outcome. `time`: of the send only. */
  async finalizeSend(
    tx: Writer,
    record: (tx: Writer) => Promise<ActionOutcome>,
    time?: ActionTime,
  ): Promise<AttemptOutcome | Intended> {
    const live = this.relay.actions[this.#next] as LiveAction;
    const { key } = this.#steps[this.#next] as Step;
    const outcome = await this.#runGuarded(tx, live.type, async () => {
      const sent = await record(tx);
      if (live.repeats) return sent;
      if (sent.outcome === "failed") await deleteIntent(tx, this.event.seq, key);
      else await finalizeEffect(tx, this.event, key, sent.after);
      return sent;
    });
    const end = this.#addResult(live, outcome, time);
    if (end !== null) return end;
    this.#next += 1;
    const erased =
      this.#next < this.relay.actions.length && (await findErasure(tx, this.relay, this.#person));
    if (!erased) return this.advance(tx);
    this.results.push(erased);
    return { outcome: "not_run", reason: "person_erased" };
  }

  /** Ends the attempt after an unexpected error in a send. The intent stays, because the send may have arrived. */
  failSend(error: unknown, time: ActionTime): AttemptOutcome {
    const { type } = this.relay.actions[this.#next] as LiveAction;
    this.#logUnexpected(type, error);
    this.results.push({ type, outcome: "failed", code: "internal", message: UNEXPECTED_ERROR, ...time });
    return { outcome: "failed", code: "internal", final: false };
  }

  /** Runs `work` in a savepoint. An unexpected error undoes only `work` and becomes a retryable failure. */
  async #runGuarded<Result>(
    tx: Writer,
    type: string,
    work: () => Promise<Result>,
  ): Promise<Result | UnexpectedFailure> {
    try {
      return await tx.attempt(work);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      this.#logUnexpected(type, error);
      return { outcome: "failed", code: "internal", message: UNEXPECTED_ERROR, final: false };
    }
  }

  #logUnexpected(type: string, error: unknown): void {
    const where = { relay: this.relay.name, event: this.event.id, type };
    this.#deps.log.error("action failed unexpectedly", { ...where, error });
  }

  async #runAction(tx: Writer, live: LiveAction, step: Step): Promise<ActionOutcome | Intended> {
    if ("doneFor" in step && step.doneFor !== undefined) {
      const was = await formatPerson(tx, this.event.environmentId, step.doneFor);
      const sells = findAction(live.type)?.sells === true;
      const message = formatOtherPerson(was, await this.#namePerson(tx), sells);
      return { outcome: "skipped", code: "other_person", message, ...afterOf(step.work.after) };
    }
    if (step.does === "skip" && !step.sure)
      this.#warn(formatUnsure(this.#next, live.type), MAX_LOSS_WARNINGS);
    if (step.does === "skip") return { outcome: "skipped", ...afterOf(step.work.after) };
    if (step.does === "edited") {
      const message = formatEdited(this.#next, live.action, step.was);
      this.#warn(message, MAX_LOSS_WARNINGS);
      return { outcome: "skipped", code: "edited_after", message, ...afterOf(step.work.after) };
    }
    const run = { ...this.#makeRun(), movesFrom: this.#movesFrom(step) };
    if (step.does === "settle" && live.conclude !== null) {
      const outcome = await live.conclude(tx, run, step.work.after);
      if (outcome !== null) {
        await finalizeEffect(tx, this.event, step.key, outcome.after);
        return outcome;
      }
      await deleteIntent(tx, this.event.seq, step.key);
    }
    const started = await live.start(tx, run);
    if ("outcome" in started) return this.#recordWork(tx, live, step.key, started);
    if (!live.repeats) await intendEffect(tx, this.event, step.key, started.mark);
    return started;
  }

  /** Finds the name of the event's person for a sentence. */
  #namePerson(tx: Writer): Promise<string> {
    return formatPerson(tx, this.event.environmentId, this.#person?.id ?? "");
  }

  /** Returns the person whose purchase moves: the other person whose work a replay chose the action over; else null. */
  #movesFrom(step: Step): ActionRun["movesFrom"] {
    const work = step.does === "run" ? step.chosenOver : undefined;
    if (work == null || work.personId === null || work.personId === this.personId) return null;
    const purchase = isJsonObject(work.after) ? work.after.purchase : undefined;
    return { personId: work.personId, purchase: typeof purchase === "string" ? purchase : null };
  }

  /** Records finished work in the transaction that did it. If the relay sends nothing, the run's own row records it. */
  async #recordWork(
    tx: Writer,
    live: LiveAction,
    key: string,
    outcome: ActionOutcome,
  ): Promise<ActionOutcome> {
    if (outcome.outcome !== "failed" && !live.repeats && this.relay.sends)
      await completeEffect(tx, this.event, key, outcome.after);
    return outcome;
  }

  /** Adds an outcome to the results. Returns how the attempt ended, or null if it continues. */
  #addResult(live: LiveAction, outcome: ActionOutcome, time?: ActionTime): AttemptOutcome | null {
    const { type } = live;
    if (outcome.outcome !== "failed") {
      this.results.push({ type, ...outcome, ...time });
      return null;
    }
    const { final, continues, ...result } = outcome;
    this.results.push({ type, ...result, ...time });
    return continues ? null : { outcome: "failed", code: outcome.code, final };
  }

  #warn(sentence: string, most = MAX_WARNINGS): void {
    if (this.warnings.size < most) this.warnings.add(sentence);
  }

  #makeRun(): ActionRun {
    return makeActionRun({
      relay: this.relay,
      event: this.event,
      payload: this.#payload,
      person: this.#person,
      results: [...this.results],
      nowMs: this.startedAtMs,
      limits: this.#deps.limits,
      warn: (sentence) => this.#warn(sentence),
    });
  }
}

function formatPersonChanged(was: string, is: string): string {
  return `The event was about ${was} at the attempt before and is about ${is} now: the work for ${was} is not changed. To do it for ${is}, replay the event and choose it.`;
}

type UnexpectedFailure = { outcome: "failed"; code: "internal"; message: string; final: false };

export const UNEXPECTED_ERROR =
  "An error happened in the service itself; the server's log shows it. The event will be retried.";

function afterOf(after: Json | undefined): { after?: Json } {
  return after === undefined ? {} : { after };
}
