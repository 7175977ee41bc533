/**
 * Provides what an attempt gives its actions: the person that the event is about, the run with rendered texts, and the step of each action
 * after earlier attempts. The person is that of a receiver's person key or customer id, or the owner of a record, otherwise its recipient.
 */

import { isJsonObject, type Json, type JsonObject, parseJson, scalarText } from "../../base/json.ts";
import { MAX_CUSTOMER_ID_CHARS, type RaisableLimits } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import {
  parsePath,
  readField,
  readPath,
  renderData,
  renderIdentifier,
  renderTemplate,
} from "../../platform/template/template.ts";
import type { ActionPerson, ActionResult, ActionRun } from "../../rules/action/contract.ts";
import { findAction } from "../../rules/action/registry.ts";
import type { LiveReceiver } from "../../rules/relay/live-receiver.ts";
import type { LiveAction, LiveRelay } from "../../rules/relay/live-relay.ts";
import type { Trigger } from "../../rules/trigger/registry.ts";
import { findPerson, formatPerson, type PersonRow } from "../../shop/people/person.ts";
import { findPersonByCustomer, isCustomerId, rememberCustomer } from "../../shop/people/person-customer.ts";
import { isErasedPerson } from "../../shop/people/person-erase.ts";
import { type Arrival, resolvePersonKey } from "../../shop/people/person-identifier.ts";
import type { Writer } from "../../store/port.ts";
import { deleteIntent, finalizeEffect, type Work } from "../event/effect.ts";
import { type ChosenKey, type EventToRun, readRecordPerson } from "../event/event.ts";
import { adoptMergedWork, readPriorWork } from "../event/prior-work.ts";
import { makeFreshKeys } from "../event/run.ts";
import { listStrayIntents, reconcileActions, type Step } from "../event/step-reconciliation.ts";

type PersonOutcome =
  | { kind: "person"; person: ActionPerson | null }
  | {
      kind: "failed";
      code: "person_not_found" | "customer_unknown" | "person_erased" | "person_suspended" | "invite_capped";
      message: string;
      /** The person of the event, if they are known in spite of the failure. */
      person?: ActionPerson;
    };

interface PersonRequest {
  relay: LiveRelay;
  payload: JsonObject;
  event: Arrival & Pick<EventToRun, "id" | "unsigned">;
  nowMs: number;
  invitesPerDay: number;
  /** Adds a sentence to the event's warnings. */
  warn: (sentence: string) => void;
}

export async function resolvePerson(tx: Writer, request: PersonRequest): Promise<PersonOutcome> {
  const trigger = request.relay.definition.trigger;
  if (trigger.kind === "schedule") return withoutPerson(request.relay, "a schedule has no person");
  if (trigger.kind === "data_change") return personOfRecord(tx, request);
  const { personKey: key = null, customer = null } = request.relay.receiver ?? {};
  if (key === null) {
    if (customer !== null) return await personOfCustomer(tx, request, customer);
    return withoutPerson(request.relay, "the map names none of person_email, person_id, person_token");
  }
  const value = readMapped(request, key);
  try {
    const person = await resolvePersonKey(tx, {
      environmentId: request.relay.environmentId,
      key,
      value,
      createdBy: `relay:${request.relay.name}`,
      nowMs: request.nowMs,
      invitesPerDay: request.invitesPerDay,
      event: request.event,
      digestAddress: request.relay.digestAddress,
    });
    if (person === "erased") return erasedPerson(key);
    if (person !== null) {
      if (customer !== null) await rememberPair(tx, request, customer, person);
      return acceptPerson(person);
    }
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "invite_capped") throw error;
    return { kind: "failed", code: "invite_capped", message: error.message };
  }
  const why = value === null ? "resolves to nothing in this event" : "resolved to no person";
  return { kind: "failed", code: "person_not_found", message: `${key} ${why}, so no action ran.` };
}

function readMapped({ payload: { mapped } }: PersonRequest, name: string): string | null {
  return isJsonObject(mapped) && Object.hasOwn(mapped, name) ? scalarText(mapped[name]) : null;
}

type Customer = NonNullable<LiveReceiver["customer"]>;

/** Returns the provider's id of the event's customer, or an empty text. Providers write 0 and false for a guest without an account. */
function readCustomerId(request: PersonRequest, id: string): string {
  const text = readMapped(request, id)?.trim() ?? "";
  return /^(0|true|false)$/.test(text) ? "" : text;
}

/** Finds the person by the provider's id. An unknown id is retried, because providers deliver out of order. */
async function personOfCustomer(
  tx: Writer,
  request: PersonRequest,
  { id, space }: Customer,
): Promise<PersonOutcome> {
  const customerId = readCustomerId(request, id);
  if (customerId === "") {
    const message = `${id} resolves to nothing in this event, so it has no customer ID and no action ran.`;
    return { kind: "failed", code: "person_not_found", message };
  }
  const { environmentId } = request.relay;
  const person = await findPersonByCustomer(tx, { environmentId, space, customerId });
  if (person !== null) return acceptPerson(person);
  const message = `No person has the customer ID in ${id} yet, in the space ${space}. Relay learns it from an event that also names the person, or from relay people link.`;
  return { kind: "failed", code: "customer_unknown", message };
}

/** Remembers the person of the event's customer id, unless the sender does not sign the event. */
async function rememberPair(
  tx: Writer,
  request: PersonRequest,
  { id, space }: Customer,
  person: PersonRow,
): Promise<void> {
  const { relay, event, nowMs, warn } = request;
  const customerId = readCustomerId(request, id);
  if (customerId === "" || event.unsigned || relay.receiver?.unsigned !== false) return;
  if (!isCustomerId(customerId)) {
    warn(
      `${id} of this event is longer than ${MAX_CUSTOMER_ID_CHARS} characters or has more than one line, so Relay does not remember it as a customer ID.`,
    );
    return;
  }
  const remembered = await rememberCustomer(tx, {
    environmentId: relay.environmentId,
    space,
    customerId,
    personId: person.id,
    arrival: event.seq,
    eventId: event.id,
    by: `relay:${relay.name}`,
    nowMs,
  });
  if (!("personId" in remembered)) return;
  const other = await formatPerson(tx, relay.environmentId, remembered.personId);
  warn(
    remembered.outcome === "moved"
      ? `The customer ID in ${id} named ${other} in the space ${space} and names ${person.email} from this event on.`
      : `The customer ID in ${id} names ${other} in the space ${space}, because a later event or a person linked it, so it does not name ${person.email}.`,
  );
}

async function personOfRecord(tx: Writer, { relay, payload }: PersonRequest): Promise<PersonOutcome> {
  const id = readRecordPerson(payload);
  const person = id === null ? null : await findPerson(tx, relay.environmentId, id);
  if (person !== null) return acceptPerson(person);
  if (id !== null && (await isErasedPerson(tx, relay.environmentId, id))) return erasedPerson("the record");
  return withoutPerson(relay, "the record has neither an owner nor a recipient who still exists");
}

/** An event without a person runs unless one of its actions needs a person. */
function withoutPerson(relay: LiveRelay, why: string): PersonOutcome {
  const needing = relay.actions.find(({ needsPerson }) => needsPerson);
  if (needing === undefined) return { kind: "person", person: null };
  return {
    kind: "failed",
    code: "person_not_found",
    message: `${needing.type} needs a person and ${why}, so no action ran.`,
  };
}

function erasedPerson(what: string): PersonOutcome {
  const message = `${what} names a person who was erased after this event arrived, so no action ran and none ever will.`;
  return { kind: "failed", code: "person_erased", message };
}

/** Finds the result that ends the attempt if its person was erased during a send; else null. */
export async function findErasure(
  tx: Writer,
  { environmentId }: LiveRelay,
  person: ActionPerson | null,
): Promise<ActionResult | null> {
  if (person === null || !(await isErasedPerson(tx, environmentId, person.id))) return null;
  const message = "The event's person was erased while it ran, so the actions that follow did not run.";
  return { type: "person", outcome: "failed", code: "person_erased", message };
}

/** A suspended person fails the event, whatever its actions are. */
function acceptPerson(person: { id: string; email: string | null; status: string }): PersonOutcome {
  const { id, email, status } = person;
  const found = { id, email: email ?? "", status };
  if (status !== "suspended") return { kind: "person", person: found };
  return {
    kind: "failed",
    code: "person_suspended",
    person: found,
    message: `The event's person is suspended, so no action ran: make them active again with relay people activate ${id}, then replay the event.`,
  };
}

interface RunContext {
  relay: Pick<
    LiveRelay,
    | "id"
    | "name"
    | "environmentId"
    | "appId"
    | "local"
    | "signingSecret"
    | "previousSigningSecret"
    | "definition"
  >;
  event: Pick<EventToRun, "id" | "seq" | "createdAt" | "runs" | "trigger" | "truncated" | "form">;
  /** The payload, with `mapped` by the current map. */
  payload: JsonObject;
  person: ActionPerson | null;
  results: readonly ActionResult[];
  nowMs: number;
  limits: RaisableLimits;
  /** Adds a sentence to the event's warnings. */
  warn: (sentence: string) => void;
}

export function makeActionRun({ relay, event, payload, person, ...context }: RunContext): ActionRun {
  const { warn } = context;
  const { truncated } = event;
  const form = event.form === true;
  const scope: JsonObject = { ...payload };
  if (person !== null) scope.person = { id: person.id, email: person.email };
  const onMissing = (path: string): void => {
    const read = truncated ? null : findEmptyPath(relay.definition.trigger, payload, path, form);
    const why = read === null ? "" : `: the map reads it from ${read}, where the event holds nothing`;
    warn(formatMissing(path, truncated, why));
  };
  return {
    environmentId: relay.environmentId,
    appId: relay.appId,
    local: relay.local,
    nowMs: context.nowMs,
    relay: { id: relay.id, name: relay.name },
    event: {
      id: event.id,
      arrival: event.seq,
      arrivedAtMs: event.createdAt,
      run: event.runs,
      trigger: event.trigger,
      payload,
      truncated,
    },
    person,
    movesFrom: null,
    results: context.results,
    render: (text) => renderTemplate(text, scope, onMissing, form),
    renderRef: (text) => renderIdentifier(text, scope, form),
    renderData: (value: Json) => renderData(value, scope, onMissing, form),
    warn,
    signingSecret: relay.signingSecret,
    previousSigningSecret: findPreviousSigning(relay, context.nowMs),
    limits: context.limits,
  };
}

function findPreviousSigning(
  { previousSigningSecret: previous }: RunContext["relay"],
  nowMs: number,
): string | null {
  return previous !== null && nowMs < previous.until ? previous.text : null;
}

/** A path of a truncated event may have had a value, so its sentence says that the rest was cut off. */
function formatMissing(path: string, truncated: boolean, why: string): string {
  if (truncated && path.startsWith("event.")) {
    return `{{${path}}} can no longer be read and was left empty: the event is larger than 32 KB, so only its mapped values are kept; name the path in the map.`;
  }
  if (truncated && path.startsWith("mapped.")) {
    return `{{${path}}} resolves to nothing in this event and was left empty: the event is larger than 32 KB, so only what the map named when it arrived is kept.`;
  }
  return `{{${path}}} resolves to nothing in this event and was left empty${why}.`;
}

/** Finds the path from which the map reads a mapped value, if the event's body has no value there; else null. */
function findEmptyPath(
  trigger: Trigger,
  { event = null }: JsonObject,
  path: string,
  form: boolean,
): string | null {
  const [root, name = ""] = path.split(".");
  if (trigger.kind !== "receiver" || root !== "mapped" || !Object.hasOwn(trigger.map, name)) return null;
  const read = parsePath(trigger.map[name] ?? "");
  if (read === null) return null;
  const found = form ? readField(event, read) : readPath(event, read);
  return found === undefined || found === null ? read.text : null;
}

/** The steps of first attempts, by list of actions. */
const stepsOf = new WeakMap<readonly LiveAction[], readonly Step[]>();

export function firstSteps(actions: readonly LiveAction[]): readonly Step[] {
  const steps = stepsOf.get(actions) ?? makeFreshKeys(actions).map((key) => ({ does: "run", key }) as const);
  stepsOf.set(actions, steps);
  return steps;
}

/** Returns one step for each action of a later attempt. `run`: for looking up how earlier sends ended. */
export async function reconcileSteps(
  tx: Writer,
  { actions, environmentId }: LiveRelay,
  event: EventToRun,
  run: ActionRun,
): Promise<Step[]> {
  let prior = await readPriorWork(tx, event.seq);
  const stray = listStrayIntents(actions, prior);
  for (const work of stray) await finalizeStray(tx, event, work, run);
  if (stray.length > 0) prior = await readPriorWork(tx, event.seq);
  const chosen = event.chosen === null ? [] : (parseJson(event.chosen) as ChosenKey[]);
  const personId = run.person?.id ?? null;
  return reconcileActions(
    actions,
    await adoptMergedWork(tx, environmentId, prior, personId),
    chosen,
    personId,
  );
}

/**
 * Finds out how a send ended whose action was removed, edited or chosen since. A send that may have arrived counts as done, and is not sent
 * again.
 */
async function finalizeStray(tx: Writer, event: EventToRun, work: Work, run: ActionRun): Promise<void> {
  const type = findAction(work.type);
  const conclude = run.person !== null && type?.sends === true ? type.conclude : undefined;
  const outcome = conclude === undefined ? undefined : await conclude.call(type, tx, run, work.after);
  if (outcome === null) await deleteIntent(tx, event.seq, work.key);
  else await finalizeEffect(tx, event, work.key, outcome?.after);
}
