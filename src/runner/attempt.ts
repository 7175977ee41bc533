/**
 * One attempt of an event, as far as the database goes: who it is about, and its actions in order until one fails or one has to leave the
 * house. It decides what is skipped and when to stop; it never opens a transaction and never sends.
 */
import type {
  ActionOutcome,
  ActionPerson,
  ActionResult,
  ActionRun,
  SendingAction,
} from "../action/contract.ts";
import {
  completeEffect,
  dropIntent,
  type Effect,
  intendEffect,
  makeEffectKeys,
  readEffects,
  settleEffect,
} from "../event/effect.ts";
import type { EventReason, EventToRun } from "../event/event-row.ts";
import { readExpunged } from "../event/expunge.ts";
import { type Json, type JsonObject, parseJson } from "../ground/json.ts";
import type { RaisableLimits } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import type { LiveAction, LiveRelay } from "../relay/live-relay.ts";
import { StoreUnavailable, type Writer } from "../store/port.ts";
import { renderData, renderIdentifier, renderTemplate } from "../template/template.ts";
import { resolvePerson } from "./event-person.ts";

/** Warnings kept on an event; a template can name many paths that are not there. */
const MAX_WARNINGS = 50;

export interface AttemptRooms {
  limits: RaisableLimits;
  log: Log;
}

/** How an attempt ended. `reason` is an EventReason (no action ran) or the failure's code. */
export type AttemptEnd =
  | { outcome: "ok" }
  | { outcome: "failed"; code: string; final: boolean }
  | { outcome: "not_run"; reason: EventReason };

/** What is to leave the house before the attempt can go on. */
export interface PendingSend {
  action: SendingAction<never, never, never>;
  plan: never;
  run: ActionRun;
}

export class Attempt {
  readonly event: EventToRun;
  readonly relay: LiveRelay;
  readonly startedAtMs: number;
  readonly results: ActionResult[] = [];
  /** Those of earlier attempts too: what those wrote stands. */
  readonly warnings: Set<string>;
  readonly #rooms: AttemptRooms;
  readonly #payload: JsonObject;
  readonly #keys: readonly string[];
  #effects: ReadonlyMap<string, Effect> = new Map();
  #person: ActionPerson | null = null;
  #next = 0;

  /** `event` counts this attempt already. */
  constructor(event: EventToRun, relay: LiveRelay, startedAtMs: number, rooms: AttemptRooms) {
    this.event = event;
    this.relay = relay;
    this.startedAtMs = startedAtMs;
    this.#rooms = rooms;
    this.#payload = parseJson(event.payload) as JsonObject;
    this.warnings = new Set(event.warnings === null ? [] : (parseJson(event.warnings) as string[]));
    this.#keys = makeEffectKeys(relay.actions.map(({ type, target }) => ({ type: type.type, target })));
  }

  /** The attempt as it is now, to go on with in a transaction that may be run again. */
  fork(): Attempt {
    const copy = new Attempt(this.event, this.relay, this.startedAtMs, this.#rooms);
    copy.results.push(...this.results);
    for (const warning of this.warnings) copy.warnings.add(warning);
    copy.#effects = this.#effects;
    copy.#person = this.#person;
    copy.#next = this.#next;
    return copy;
  }

  get personId(): string | null {
    return this.#person?.id ?? null;
  }

  /** Decides whether the event may run and finds its person; null: go on with `advance`. */
  async begin(tx: Writer): Promise<AttemptEnd | null> {
    const { event, relay } = this;
    if (relay.definition.trigger.kind !== event.trigger)
      return { outcome: "not_run", reason: "trigger_changed" };
    const expunged = readExpunged(this.#payload);
    if (expunged !== null) return { outcome: "not_run", reason: expunged };
    if (event.unsigned === 1 && relay.barsUnsigned) return { outcome: "not_run", reason: "unsigned_event" };
    const found = await this.#guard(tx, "person", () =>
      resolvePerson(tx, {
        relay,
        payload: this.#payload,
        event,
        nowMs: this.startedAtMs,
        invitesPerDay: this.#rooms.limits.invitesPerDay,
      }),
    );
    if (found.kind === "failed") {
      this.results.push({ type: "person", outcome: "failed", code: found.code, message: found.message });
      return found.code === "person_not_found" || found.code === "person_erased"
        ? { outcome: "not_run", reason: found.code }
        : { outcome: "failed", code: found.code, final: false };
    }
    this.#person = found.person;
    // Only an event that ran before can have earlier work; a first run need not look.
    if (event.runs > 1) this.#effects = await readEffects(tx, event.seq);
    return null;
  }

  /** Runs actions until the end, a failure, or one that has to leave the house. */
  async advance(tx: Writer): Promise<AttemptEnd | PendingSend> {
    for (; this.#next < this.relay.actions.length; this.#next++) {
      const live = this.relay.actions[this.#next] as LiveAction;
      const key = this.#keys[this.#next] as string;
      const step = await this.#guard(tx, live.type.type, () => this.#runAction(tx, live, key));
      if ("plan" in step) return step;
      const end = this.#take(live, "kind" in step ? asOutcome(step) : step);
      if (end !== null) return end;
    }
    return { outcome: "ok" };
  }

  /** Records how a send went and goes on after it. */
  async settle(tx: Writer, pending: PendingSend, sent: unknown): Promise<AttemptEnd | PendingSend> {
    const live = this.relay.actions[this.#next] as LiveAction;
    const key = this.#keys[this.#next] as string;
    const step = await this.#guard(tx, live.type.type, async () => {
      const outcome = await pending.action.settle(tx, pending.plan, sent as never, pending.run);
      if (outcome.outcome === "failed" && !pending.action.repeats) await dropIntent(tx, this.event.seq, key);
      return this.#complete(tx, live, key, outcome, settleEffect);
    });
    const end = this.#take(live, "kind" in step ? asOutcome(step) : step);
    if (end !== null) return end;
    this.#next += 1;
    return this.advance(tx);
  }

  /** Records a send that broke with an error nobody foresaw; the intent stays, because what left is not known. */
  breakOff(error: unknown): AttemptEnd {
    const live = this.relay.actions[this.#next] as LiveAction;
    const { type } = live.type;
    this.#logUnforeseen(type, error);
    this.results.push({ type, outcome: "failed", code: "internal", message: UNFORESEEN });
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
    const { relay, event } = this;
    this.#rooms.log.error("action failed unexpectedly", { relay: relay.name, event: event.id, type, error });
  }

  async #runAction(tx: Writer, live: LiveAction, key: string): Promise<ActionOutcome | PendingSend> {
    const run = this.#makeRun();
    const earlier = this.#effects.get(key);
    if (earlier?.state === "done") return { outcome: "skipped", ...afterOf(earlier.after) };
    const type = live.type as AnyAction;
    if (!type.sends) return this.#complete(tx, live, key, await type.apply(tx, live.action as never, run));
    const cutOff = earlier?.state === "intended" && type.resume !== undefined;
    const action = live.action as never;
    const intended =
      (cutOff ? await type.resume?.(tx, action, run) : null) ?? (await type.intend(tx, action, run));
    if ("outcome" in intended) {
      if (cutOff && intended.outcome.outcome === "failed") await dropIntent(tx, this.event.seq, key);
      return this.#complete(tx, live, key, intended.outcome, cutOff ? settleEffect : completeEffect);
    }
    if (!type.repeats && !cutOff) await intendEffect(tx, this.event.seq, key);
    return { action: type, plan: intended.plan, run };
  }

  /** Remembers finished work in the transaction that did it. */
  async #complete(
    tx: Writer,
    live: LiveAction,
    key: string,
    outcome: ActionOutcome,
    remember: typeof completeEffect = completeEffect,
  ): Promise<ActionOutcome> {
    const repeats = live.type.sends && live.type.repeats;
    if (outcome.outcome !== "failed" && !repeats) await remember(tx, this.event.seq, key, outcome.after);
    return outcome;
  }

  /** Adds an outcome to the results; an end when the attempt stops here. */
  #take(live: LiveAction, outcome: ActionOutcome): AttemptEnd | null {
    const type = live.type.type;
    if (outcome.outcome !== "failed") {
      this.results.push({ type, ...outcome });
      return null;
    }
    const { final, ...result } = outcome;
    this.results.push({ type, ...result });
    return { outcome: "failed", code: outcome.code, final };
  }

  #makeRun(): ActionRun {
    const { relay, event } = this;
    const scope: JsonObject = { ...this.#payload };
    const form = event.form === 1;
    if (this.#person !== null) scope.person = { id: this.#person.id, email: this.#person.email };
    const warn = (path: string): void => {
      if (this.warnings.size < MAX_WARNINGS)
        this.warnings.add(`{{${path}}} names nothing in this event and was left empty.`);
    };
    return {
      environmentId: relay.environmentId,
      appId: relay.appId,
      local: relay.local,
      nowMs: this.startedAtMs,
      relay: { id: relay.id, name: relay.name },
      event: { id: event.id, trigger: event.trigger, payload: this.#payload },
      person: this.#person,
      results: [...this.results],
      render: (text) => renderTemplate(text, scope, warn, form),
      renderRef: (text) => renderIdentifier(text, scope, form),
      renderData: (value: Json) => renderData(value, scope, warn, form),
      signingSecret: relay.signingSecret,
      limits: this.#rooms.limits,
    };
  }
}

interface Unforeseen {
  kind: "failed";
  code: "internal";
  message: string;
}

export const UNFORESEEN =
  "Something went wrong in the service itself; the server's log says what. The event is tried again.";

function asOutcome(unforeseen: Unforeseen): ActionOutcome {
  return { outcome: "failed", code: unforeseen.code, message: unforeseen.message, final: false };
}

type AnyAction = Extract<LiveAction["type"], { sends: false }> | SendingAction<never, never, never>;

function afterOf(after: Json | undefined): { after?: Json } {
  return after === undefined ? {} : { after };
}
