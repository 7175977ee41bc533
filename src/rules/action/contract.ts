/**
 * What an action is. Each action type is an ActionType that its file exports, and one line in registry.ts; everything that lists
 * actions (definition check, unsigned rule, JSON Schema, dashboard, docs) reads the registry. An action never knows the event
 * row, the relay's row or the runner: it gets an ActionRun and answers an ActionOutcome.
 */
import type { TSchema } from "typebox";
import type { Json, JsonObject } from "../../base/json.ts";
import type { RaisableLimits } from "../../base/limit.ts";
import { type Failure, failFinally, failForNow, type Success } from "../../base/outcome.ts";
import type { Problem } from "../../base/refusal.ts";
import type { ResultCode } from "../../base/result-code.ts";
import type { Mailer } from "../../platform/mail/mailer.ts";
import type { OutboundCaller, SentRequest } from "../../platform/outbound/caller.ts";
import { findPerson, type PersonRow } from "../../shop/people/person.ts";
import type { Reader, Writer } from "../../store/port.ts";

/** What an action does to the world; the unsigned-event rule reads it. */
export type ActionEffect = "writes" | "gives" | "takes" | "mails" | "calls";

/** Something an action names that must exist when it runs. */
export interface Reference {
  kind: "collection" | "entitlement" | "product" | "plan";
  name: string;
  /** Dotted path below the action, such as `collection`. */
  field: string;
}

/** How an action ended. */
export type ActionOutcome = ActionSuccess | ActionFailure;

interface ActionSuccess extends Success, Exchange {}

interface ActionFailure extends Failure, Exchange {
  /** It refuses itself alone: the actions after it run, and the event is tried again for it. */
  alone?: true;
}

/** What was said between the service and a called URL. */
interface Exchange {
  request?: SentRequest;
  answer?: Answer;
}

/** What a called URL said: status, those of its headers that may be kept, and the first 4 KB as text. */
interface Answer {
  status: number;
  headers?: Readonly<Record<string, string>>;
  body: string;
}

/** When an action called out, and how long one took, in whole milliseconds; nothing where nobody looked at the clock. */
export interface ActionTime {
  beganAt?: number;
  tookMs?: number;
}

/** One entry of a run's results, as it is stored and shown; a later call_url posts what `tellResult` leaves of it. */
export type ActionResult = { type: string } & ActionTime &
  (ActionSuccess | ({ outcome: "failed"; code: ResultCode; message: string } & Exchange));

/** One entry of a stored run's results. An expunge or an erasure removes the message. */
export type StoredResult =
  | Exclude<ActionResult, { outcome: "failed" }>
  | ({ type: string; outcome: "failed"; code: ResultCode; message?: string } & ActionTime & Exchange);

/** The result as another server is told it: without what was said with the one that was called, but for its status and body, and without times. */
export function toPostedResult(result: ActionResult): object {
  const { request: _request, beganAt: _beganAt, tookMs: _tookMs, ...told } = result;
  if (told.answer === undefined) return told;
  const { status, body } = told.answer;
  return { ...told, answer: { status, body } };
}

export interface ActionPerson {
  id: string;
  email: string;
  status: string;
}

/** The occasion an action runs on. */
export interface ActionRun {
  environmentId: number;
  appId: string;
  /** Local development: http to localhost is allowed, mail lands in the mailbox. */
  local: boolean;
  nowMs: number;
  relay: { id: string; name: string };
  event: {
    id: string;
    /** Its number: the place in the order of arrival, which a retry or a replay keeps. */
    arrival: number;
    /** Milliseconds since the epoch. */
    arrivedAtMs: number;
    trigger: "receiver" | "schedule" | "data_change";
    payload: JsonObject;
    truncated: boolean;
  };
  /** null: the event has none. An action whose type needs a person never runs without one. */
  person: ActionPerson | null;
  /**
   * The person that the earlier work of this action was done for, if that is another person and a replay chose the action. A sale then moves that
   * person's purchase, which `purchase` names if it is known. null: there is none.
   */
  movesFrom: { personId: string; purchase: string | null } | null;
  /** Results of the actions that ran before this one. */
  results: readonly ActionResult[];
  /** The text with its {{paths}} filled in; a path that names nothing becomes "" and a warning on the event. */
  render(text: string): string;
  /** Like `render`, but answers null when a path in the text names nothing, or nothing that identifies: for refs. */
  renderRef(text: string): string | null;
  /** Every string inside the value rendered, its structure kept. */
  renderData(value: Json): Json;
  /** Adds a sentence to the event's warnings, once. */
  warn(sentence: string): void;
  limits: RaisableLimits;
  /** The raw signing secret of the relay, for call_url; null when it has none. */
  signingSecret: string | null;
}

/** The ports out of the house that a sending action may use. */
export interface ActionPorts {
  caller: OutboundCaller;
  mailer: Mailer;
}

interface ActionBase<Action> {
  type: string;
  /** For lists in the dashboard and docs: "Write a record". */
  title: string;
  effect: ActionEffect;
  /** It sells: only what is sold through its relay, and under a ref that belongs to one purchase for good. */
  sells?: boolean;
  /** TypeBox (`typebox`) object schema, `type` included as a literal, additionalProperties false, every property with ShapeWords. */
  shape: TSchema;
  /** Whether this action acts on the event's person (refused on a schedule). Asked of any object of this type, fitting or not. */
  needsPerson(action: Action): boolean;
  /** Rules beyond the shape; `field` is relative to the action (`ref`, `expiresAt`). Only called on a value that fits the shape. */
  check(action: Action): Problem[];
  references(action: Action): Reference[];
  /** Asks for what it reads whatever comes, before it is done. */
  prefetch?(ahead: Reader, action: Action, environmentId: number): readonly Promise<unknown>[];
  /** What it acts on, by name: with the type, what later attempts know an edited action by. */
  target(action: Action): string;
  /** Valid examples, the first one minimal. */
  examples: readonly Action[];
}

/** Acts in the database only: its effect and its result commit together. */
export interface DatabaseAction<Action = unknown> extends ActionBase<Action> {
  sends: false;
  /** The action ready to be done, again and again. */
  bind(action: Action): (tx: Writer, run: ActionRun) => Promise<ActionOutcome>;
}

export interface Preview {
  sends: Json;
  /** null: nothing that is known before it is sent refuses it. */
  refused: Failure | null;
}

/**
 * Sends something out of the house. `intend` commits before `send` starts: it refuses (an outcome) or answers a plan that holds
 * all that `send` needs; `send` touches no database; `settle` records how it went. `repeats`: true sends again on every attempt and
 * replay; false never sends twice: after a crash between intend and settle, `conclude` tells what certainly did not leave, which is sent,
 * from what may have left, which counts as sent.
 */
export interface SendingAction<Action = unknown, Plan = unknown, Sent = unknown> extends ActionBase<Action> {
  sends: true;
  repeats: boolean;
  /** `mark`: what tells this piece of work from the event's others, kept with the intent for `conclude`. */
  intend(tx: Writer, action: Action, run: ActionRun): Promise<{ plan: Plan; mark?: Json } | ActionOutcome>;
  send(plan: Plan, run: ActionRun, ports: ActionPorts): Promise<Sent>;
  /** What would leave the house, for who looks before anything does, and why it certainly would not; no secret is in it. */
  preview(plan: Plan, run: ActionRun): Preview;
  settle(tx: Writer, plan: Plan, sent: Sent, run: ActionRun): Promise<ActionOutcome>;
  /**
   * For `repeats: false`: what became of what an earlier attempt intended and nobody wrote the end of. Its outcome where it may have left;
   * null where it certainly did not, and then nothing of it stands any more. `mark`: what was intended with it; undefined where an older
   * version intended it.
   */
  conclude?(tx: Writer, run: ActionRun, mark: Json | undefined): Promise<ActionSuccess | null>;
}

export type ActionType<Action = unknown> = DatabaseAction<Action> | SendingAction<Action, unknown, unknown>;

/**
 * The event's person as they stand now, inside the action's own transaction, or why nothing may be done for them: `person_suspended` (final),
 * or `person_not_found` where they were erased since the attempt began. It never creates anyone.
 */
export async function findActingPerson(
  tx: Reader,
  run: ActionRun,
): Promise<{ person: PersonRow; failure: null } | { person: null; failure: Failure }> {
  const person = run.person === null ? null : await findPerson(tx, run.environmentId, run.person.id);
  if (person === null) {
    const failure = failForNow(
      "person_not_found",
      "The event has no person, or the person was erased since.",
    );
    return { person: null, failure };
  }
  if (person.status !== "suspended") return { person, failure: null };
  const failure = failFinally(
    "person_suspended",
    `The event's person is suspended: make them active again in the dashboard or with relay people activate ${person.id}, then replay the event.`,
  );
  return { person: null, failure };
}
