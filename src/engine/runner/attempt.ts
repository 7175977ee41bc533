/**
 * One attempt of an event, as far as the database goes: who it is about, and its actions in order until one fails or one has to leave the
 * house. It decides what is skipped and when to stop; it never opens a transaction and never sends.
 */

import { isJsonObject, type Json, type JsonObject, parseJson } from "../../base/json.ts";
import type { RaisableLimits } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { ResultCode } from "../../base/result-code.ts";
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
import { namePerson } from "../../shop/people/person.ts";
import { StoreUnavailable, type Writer } from "../../store/port.ts";
import { completeEffect, dropIntent, intendEffect, settleEffect } from "../event/effect.ts";
import { EVENT, type EventReason, type EventToRun, readExpunged } from "../event/event.ts";
import { mapAgain } from "../event/remap.ts";
import { changePerson, keepActionList, makeFreshKeys, type RanActions } from "../event/run.ts";
import {
  bindKeys,
  type Step,
  tellEdited,
  tellOtherPerson,
  tellUnsure,
} from "../event/step-reconciliation.ts";
import { alignWithEarlier, findErasure, firstSteps, makeActionRun, resolvePerson } from "./context.ts";

/** Warnings kept on an event, of which a template can make many; what was not done is told also where they took all their room. */
const MAX_WARNINGS = 50;
const MAX_LOSS_WARNINGS = 4 * MAX_WARNINGS;

export interface AttemptDeps {
  limits: RaisableLimits;
  log: Log;
}

/** How an attempt ended. `reason` is an EventReason (no action ran, or none any more) or the failure's code. */
export type AttemptOutcome =
  | { outcome: "ok" }
  | { outcome: "failed"; code: ResultCode; final: boolean }
  | { outcome: "not_run"; reason: EventReason };

interface AttemptOptions {
  /** The value of the event's text, where that is known. */
  payload?: JsonObject | null;
  /** Begins to measure an action; without it none is. */
  watch?: () => () => ActionTime;
}

export class Attempt {
  readonly event: EventToRun;
  readonly relay: LiveRelay;
  readonly startedAtMs: number;
  readonly results: ActionResult[] = [];
  /** Those of earlier attempts too: what those wrote stands. */
  readonly warnings: Set<string>;
  readonly #deps: AttemptDeps;
  readonly #options: AttemptOptions;
  #payload: JsonObject;
  /** What each action has to do; none before the actions are come to. */
  #steps: readonly Step[] = [];
  #mapVersion: number | null = null;
  #person: ActionPerson | null = null;
  #next = 0;

  /** `event` counts this attempt already. */
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

  /** The attempt as it is now, to go on with in a transaction that may be run again. */
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

  /** The relay's version whose map `mapped` follows; null: it was not looked at. */
  get mapVersion(): number | null {
    return this.#mapVersion;
  }

  /** Which list of actions this attempt runs; null: it ended before them. */
  get ran(): RanActions | null {
    if (this.#steps.length === 0) return null;
    const { fingerprint } = this.relay.actionList;
    if (this.event.runs === 1) return { fingerprint, keys: null };
    const keys = bindKeys(this.#steps);
    const own = makeFreshKeys(this.relay.actions);
    return { fingerprint, keys: keys.every((key, at) => key === own[at]) ? null : keys };
  }

  /** Decides whether the event may run, maps it again where the map moved, and finds its person; null: go on with `advance`. */
  async begin(tx: Writer): Promise<AttemptOutcome | null> {
    const { event, relay } = this;
    if (relay.definition.trigger.kind !== event.trigger)
      return { outcome: "not_run", reason: "trigger_changed" };
    const expunged = readExpunged(this.#payload);
    if (expunged !== null) return { outcome: "not_run", reason: expunged };
    if (event.unsigned && relay.rejectsUnsigned) return { outcome: "not_run", reason: "unsigned_event" };
    if (relay.receiver !== null && event.mapVersion !== relay.version && !event.truncated)
      await this.#mapAgain(tx, relay.receiver);
    const found = await this.#guard(tx, "person", () =>
      resolvePerson(tx, {
        relay,
        payload: this.#payload,
        event,
        nowMs: this.startedAtMs,
        invitesPerDay: this.#deps.limits.invitesPerDay,
      }),
    );
    this.#person = ("person" in found ? found.person : null) ?? null;
    const { personId: former } = event;
    const isOther = former !== null && this.#person !== null && this.#person.id !== former;
    if (isOther) await changePerson(tx, event, this.#person?.id ?? former);
    if (found.kind === "failed") {
      this.results.push({ type: "person", outcome: "failed", code: found.code, message: found.message });
      return found.code === "person_not_found" || found.code === "person_erased"
        ? { outcome: "not_run", reason: found.code }
        : { outcome: "failed", code: found.code, final: found.code === "person_suspended" };
    }
    if (isOther) {
      const [was, is] = [await namePerson(tx, event.environmentId, former), await this.#nameIt(tx)];
      this.#warn(tellPersonChanged(was, is), MAX_LOSS_WARNINGS);
    }
    // Only an event that ran before can have earlier work; a first run need not look.
    this.#steps =
      event.runs > 1 ? await alignWithEarlier(tx, relay, event, this.#makeRun()) : firstSteps(relay.actions);
    await keepActionList(tx, relay, this.startedAtMs);
    return null;
  }

  /** A map that was corrected reaches the event while its stored body is whole; `when` is not judged again, because the event was accepted. */
  async #mapAgain(tx: Writer, { map }: LiveReceiver): Promise<void> {
    this.#mapVersion = this.relay.version;
    const again = mapAgain(this.event, this.#payload, map);
    if (again === null) return;
    this.#payload = again.payload;
    for (const warning of again.warnings) this.#warn(warning);
    await EVENT.change(tx, { seq: this.event.seq }, { payload: again.text, mappedAgain: true });
  }

  /** Runs actions until the end, a failure, or one that has to leave the house. */
  async advance(tx: Writer): Promise<AttemptOutcome | Intended> {
    for (; this.#next < this.relay.actions.length; this.#next++) {
      const live = this.relay.actions[this.#next] as LiveAction;
      const step = this.#steps[this.#next] as Step;
      // What sends is measured while it does.
      const stop = live.sends ? undefined : this.#options.watch?.();
      const outcome = await this.#guard(tx, live.type, () => this.#runAction(tx, live, step));
      if ("send" in outcome) return outcome;
      const end = this.#take(live, "kind" in outcome ? asOutcome(outcome) : outcome, stop?.());
      if (end !== null) return end;
    }
    // What failed without stopping the others is tried again all the same.
    const refused = this.results.find((result) => result.outcome === "failed");
    return refused === undefined
      ? { outcome: "ok" }
      : { outcome: "failed", code: refused.code, final: false };
  }

  /** Records how a send went, by the word of `record`, and goes on after it. `time`: of the send alone. */
  async settle(
    tx: Writer,
    record: (tx: Writer) => Promise<ActionOutcome>,
    time?: ActionTime,
  ): Promise<AttemptOutcome | Intended> {
    const live = this.relay.actions[this.#next] as LiveAction;
    const { key } = this.#steps[this.#next] as Step;
    const step = await this.#guard(tx, live.type, async () => {
      const outcome = await record(tx);
      if (live.repeats) return outcome;
      if (outcome.outcome === "failed") await dropIntent(tx, this.event.seq, key);
      else await settleEffect(tx, this.event, key, outcome.after);
      return outcome;
    });
    const end = this.#take(live, "kind" in step ? asOutcome(step) : step, time);
    if (end !== null) return end;
    this.#next += 1;
    const erased =
      this.#next < this.relay.actions.length && (await findErasure(tx, this.relay, this.#person));
    if (!erased) return this.advance(tx);
    this.results.push(erased);
    return { outcome: "not_run", reason: "person_erased" };
  }

  /** Records a send that broke with an error nobody foresaw; the intent stays, because what left is not known. */
  breakOff(error: unknown, time: ActionTime): AttemptOutcome {
    const { type } = this.relay.actions[this.#next] as LiveAction;
    this.#logUnforeseen(type, error);
    this.results.push({ type, outcome: "failed", code: "internal", message: UNFORESEEN, ...time });
    return { outcome: "failed", code: "internal", final: false };
  }

  /** Runs `work` so that an error nobody foresaw undoes it alone and becomes a failure that is tried again. */
  async #guard<Result>(tx: Writer, type: string, work: () => Promise<Result>): Promise<Result | Unforeseen> {
    try {
      return await tx.attempt(work);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      this.#logUnforeseen(type, error);
      return { kind: "failed", code: "internal", message: UNFORESEEN };
    }
  }

  #logUnforeseen(type: string, error: unknown): void {
    const where = { relay: this.relay.name, event: this.event.id, type };
    this.#deps.log.error("action failed unexpectedly", { ...where, error });
  }

  async #runAction(tx: Writer, live: LiveAction, step: Step): Promise<ActionOutcome | Intended> {
    if ("doneFor" in step && step.doneFor !== undefined) {
      const was = await namePerson(tx, this.event.environmentId, step.doneFor);
      const sells = findAction(live.type)?.sells === true;
      const message = tellOtherPerson(was, await this.#nameIt(tx), sells);
      return { outcome: "skipped", code: "other_person", message, ...afterOf(step.work.after) };
    }
    if (step.does === "skip" && !step.sure) this.#warn(tellUnsure(this.#next, live.type), MAX_LOSS_WARNINGS);
    if (step.does === "skip") return { outcome: "skipped", ...afterOf(step.work.after) };
    if (step.does === "edited") {
      const message = tellEdited(this.#next, live.action, step.was);
      this.#warn(message, MAX_LOSS_WARNINGS);
      return { outcome: "skipped", code: "edited_after", message, ...afterOf(step.work.after) };
    }
    const run = { ...this.#makeRun(), movesFrom: this.#movesFrom(step) };
    if (step.does === "settle" && live.conclude !== null) {
      const outcome = await live.conclude(tx, run, step.work.after);
      if (outcome !== null) {
        await settleEffect(tx, this.event, step.key, outcome.after);
        return outcome;
      }
      await dropIntent(tx, this.event.seq, step.key);
    }
    const started = await live.start(tx, run);
    if ("outcome" in started) return this.#complete(tx, live, step.key, started);
    if (!live.repeats) await intendEffect(tx, this.event, step.key, started.mark);
    return started;
  }

  /** The event's person as a sentence names them. */
  #nameIt(tx: Writer): Promise<string> {
    return namePerson(tx, this.event.environmentId, this.#person?.id ?? "");
  }

  /** Whose work a replay chose the action over, where it was another person's. */
  #movesFrom(step: Step): ActionRun["movesFrom"] {
    const work = step.does === "run" ? step.instead : undefined;
    if (work == null || work.personId === null || work.personId === this.personId) return null;
    const purchase = isJsonObject(work.after) ? work.after.purchase : undefined;
    return { personId: work.personId, purchase: typeof purchase === "string" ? purchase : null };
  }

  /** Remembers finished work in the transaction that did it: where that ends the run too, by the run's own row. */
  async #complete(tx: Writer, live: LiveAction, key: string, outcome: ActionOutcome): Promise<ActionOutcome> {
    if (outcome.outcome !== "failed" && !live.repeats && this.relay.sends)
      await completeEffect(tx, this.event, key, outcome.after);
    return outcome;
  }

  /** Adds an outcome to the results; an end when the attempt stops here. */
  #take(live: LiveAction, outcome: ActionOutcome, time?: ActionTime): AttemptOutcome | null {
    const { type } = live;
    if (outcome.outcome !== "failed") {
      this.results.push({ type, ...outcome, ...time });
      return null;
    }
    const { final, alone, ...result } = outcome;
    this.results.push({ type, ...result, ...time });
    return alone ? null : { outcome: "failed", code: outcome.code, final };
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

function tellPersonChanged(was: string, is: string): string {
  return `The event was about ${was} at the attempt before and is about ${is} now: what was done for ${was} stays as it is. To do it for ${is}, replay the event and choose it.`;
}

type Unforeseen = { kind: "failed"; code: "internal"; message: string };

export const UNFORESEEN =
  "Something went wrong in the service itself; the server's log says what. The event is tried again.";

function asOutcome(unforeseen: Unforeseen): ActionOutcome {
  return { outcome: "failed", code: unforeseen.code, message: unforeseen.message, final: false };
}

function afterOf(after: Json | undefined): { after?: Json } {
  return after === undefined ? {} : { after };
}
