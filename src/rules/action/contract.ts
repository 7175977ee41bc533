/**
 * Defines the contract of an action. Each type has one file, and one line in registry.ts, which everything that lists actions reads. An action does
 * not know the event's row, the relay's row or the runner: it gets an ActionRun and returns an ActionOutcome.
 */
import type { TSchema } from "typebox";
import type { ResultCode } from "../../base/code/result-code.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import type { RaisableLimits } from "../../base/limit.ts";
import { type Failure, failFinally, failForNow, type Success } from "../../base/outcome.ts";
import type { Problem } from "../../base/refusal.ts";
import type { Mailer } from "../../platform/mail/mailer.ts";
import type { OutboundCaller, SentRequest } from "../../platform/outbound/caller.ts";
import { findPerson, type PersonRow } from "../../shop/people/person.ts";
import type { Reader, Writer } from "../../store/port.ts";

/** The effect of an action; the unsigned-event rule reads it. */
export type ActionEffect = "writes" | "gives" | "takes" | "mails" | "calls";

/** An item that an action names and that must exist when it runs. */
export interface Reference {
  kind: "collection" | "entitlement" | "product" | "plan";
  name: string;
  /** Dotted path below the action, such as `collection`. */
  field: string;
}

/** The result of an action. */
export type ActionOutcome = ActionSuccess | ActionFailure;

interface ActionSuccess extends Success, Exchange {}

interface ActionFailure extends Failure, Exchange {
  /** Fails only this action: the actions after it run, and a retry runs this one again. */
  continues?: true;
}

/** The request to a called URL and its response. */
interface Exchange {
  request?: SentRequest;
  answer?: Answer;
}

/** The response of a called URL: status, the headers that may be stored, and the first 4 KB as text. */
interface Answer {
  status: number;
  headers?: Readonly<Record<string, string>>;
  body: string;
}

/** The time when an action began and its duration, in whole milliseconds. Absent where it was not measured. */
export interface ActionTime {
  beganAt?: number;
  tookMs?: number;
}

/** One entry of a run's results, as stored and shown. A later call_url posts what `toPostedResult` leaves of it. */
export type ActionResult = { type: string } & ActionTime &
  (ActionSuccess | ({ outcome: "failed"; code: ResultCode; message: string } & Exchange));

/** One entry of a stored run's results. An expunge or an erasure removes the message. */
export type StoredResult =
  | Exclude<ActionResult, { outcome: "failed" }>
  | ({ type: string; outcome: "failed"; code: ResultCode; message?: string } & ActionTime & Exchange);

/** Removes what another server must not get: times, and the exchange with a called URL except status and body. */
export function toPostedResult(result: ActionResult): object {
  const { request: _request, beganAt: _beganAt, tookMs: _tookMs, ...posted } = result;
  if (posted.answer === undefined) return posted;
  const { status, body } = posted.answer;
  return { ...posted, answer: { status, body } };
}

export interface ActionPerson {
  id: string;
  email: string;
  status: string;
}

/** The event and relay that an action runs for. */
export interface ActionRun {
  environmentId: number;
  appId: string;
  /** True in local development: http to localhost is allowed, and mail goes to the mailbox. */
  local: boolean;
  nowMs: number;
  relay: { id: string; name: string };
  event: {
    id: string;
    /** The event's number in the order of arrival, which a retry or a replay keeps. */
    arrival: number;
    /** Milliseconds since the epoch. */
    arrivedAtMs: number;
    /** The number of this run among all runs of the event. */
    run: number;
    trigger: "receiver" | "schedule" | "data_change";
    payload: JsonObject;
    truncated: boolean;
  };
  /** null: the event has no person. An action whose type needs a person never runs without one. */
  person: ActionPerson | null;
  /**
   * The person of the earlier run, if a replay chose this action for another person. A sale then moves that person's purchase, which `purchase` names
   * if it is known. Otherwise null.
   */
  movesFrom: { personId: string; purchase: string | null } | null;
  /** Results of the actions that ran before this one. */
  results: readonly ActionResult[];
  /** Fills in the {{paths}}. A path that resolves to nothing becomes "" and adds a warning to the event. */
  render(text: string): string;
  /** Fills in a ref. Returns null where a path resolves to nothing, or to nothing that identifies a payment. */
  renderRef(text: string): string | null;
  /** Fills in every string of the value and keeps its structure. */
  renderData(value: Json): Json;
  /** Adds a sentence to the event's warnings, once. */
  warn(sentence: string): void;
  limits: RaisableLimits;
  /** The relay's signing secret for call_url; null: it has none. */
  signingSecret: string | null;
  /** The secret before it, which also signs during the overlap of a rotation; null: there is no overlap. */
  previousSigningSecret: string | null;
}

/** The outbound services that a sending action may use. */
export interface ActionPorts {
  caller: OutboundCaller;
  mailer: Mailer;
  /** Returns the W3C `traceparent` of a call: the event's id, its run, the index of the action. Absent: traces are off. */
  traceparentOf?: (eventId: string, run: number, action: number) => string;
}

interface ActionBase<Action> {
  type: string;
  /** The title in lists of the dashboard and docs: "Write a record". */
  title: string;
  effect: ActionEffect;
  /** True for a sale: it sells only what is sold through its relay, under a ref that belongs to one purchase forever. */
  sells?: boolean;
  /** TypeBox object schema: `type` included as a literal, additionalProperties false, every property with ShapeWords. */
  shape: TSchema;
  /**
   * Reports whether this action acts on the event's person, which a schedule rejects. Accepts any object of this type, even one that does not fit.
   */
  needsPerson(action: Action): boolean;
  /** Checks rules beyond the shape, for a value that fits it. `field` is relative to the action (`ref`, `expiresAt`). */
  check(action: Action): Problem[];
  references(action: Action): Reference[];
  /** Reads ahead what the action will certainly read. */
  prefetch?(reader: Reader, action: Action, environmentId: number): readonly Promise<unknown>[];
  /** The name of what it acts on. With the type, it identifies an edited action in later attempts. */
  target(action: Action): string;
  /** Valid examples, the first one minimal. */
  examples: readonly Action[];
}

/** An action that only changes the database. Its effect and its result commit together. */
export interface DatabaseAction<Action = unknown> extends ActionBase<Action> {
  sends: false;
  /** Prepares the action, which can then run many times. */
  bind(action: Action): (tx: Writer, run: ActionRun) => Promise<ActionOutcome>;
}

export interface Preview {
  sends: Json;
  /** The failure that is certain before anything is sent; null: there is none. */
  refused: Failure | null;
}

/**
 * An action that sends something out. `intend` commits before `send` starts; it returns a failure, or a plan with everything that `send`
 * needs. `send` does not touch the database, and `settle` records the result. `repeats`: every attempt and replay sends again. Otherwise
 * the action never sends twice: after a crash between intend and settle, `conclude` separates what certainly was not sent from what may
 * have been.
 */
export interface SendingAction<Action = unknown, Plan = unknown, Sent = unknown> extends ActionBase<Action> {
  sends: true;
  repeats: boolean;
  /** `mark` identifies this work among the event's others. It is stored with the intent for `conclude`. */
  intend(tx: Writer, action: Action, run: ActionRun): Promise<{ plan: Plan; mark?: Json } | ActionOutcome>;
  send(plan: Plan, run: ActionRun, ports: ActionPorts): Promise<Sent>;
  /** Shows what would be sent, and the failure that is certain. Shows no secret. */
  preview(plan: Plan, run: ActionRun): Preview;
  settle(tx: Writer, plan: Plan, sent: Sent, run: ActionRun): Promise<ActionOutcome>;
  /**
   * Decides about an unfinished earlier attempt, if `repeats` is false. Returns its outcome where something may have been sent, and null where
   * certainly nothing was. `mark` was stored with the intent; an older version stored none.
   */
  conclude?(tx: Writer, run: ActionRun, mark: Json | undefined): Promise<ActionSuccess | null>;
}

export type ActionType<Action = unknown> = DatabaseAction<Action> | SendingAction<Action, unknown, unknown>;

/**
 * Finds the event's person inside the action's transaction, or the failure: `person_suspended` (final), or `person_not_found` where the
 * person was erased since the attempt began. Creates no person.
 */
export async function findActingPerson(
  tx: Reader,
  run: ActionRun,
): Promise<{ person: PersonRow; failure: null } | { person: null; failure: Failure }> {
  const person = run.person === null ? null : await findPerson(tx, run.environmentId, run.person.id);
  if (person === null) {
    const failure = failForNow(
      "person_not_found",
      "The event has no person, or the person was erased later.",
    );
    return { person: null, failure };
  }
  if (person.status !== "suspended") return { person, failure: null };
  const failure = failFinally(
    "person_suspended",
    `The event's person is suspended: make them active again with relay people activate ${person.id}, then replay the event.`,
  );
  return { person: null, failure };
}
