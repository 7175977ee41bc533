/**
 * What an attempt's actions are given: the person the event is about, resolved when the attempt starts (a receiver's person key, or a record's
 * owner, otherwise its recipient, named by its key and never by its value); the run they are handed, with texts filled in; and what each of
 * them has to do after earlier attempts.
 */

import { isJsonObject, type Json, type JsonObject, parseJson, scalarText } from "../../base/json.ts";
import type { RaisableLimits } from "../../base/limit.ts";
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
import type { LiveAction, LiveRelay } from "../../rules/relay/live-relay.ts";
import type { Trigger } from "../../rules/trigger/registry.ts";
import { findPerson } from "../../shop/people/person.ts";
import { isErasedPerson } from "../../shop/people/person-erase.ts";
import { type Arrival, resolvePersonKey } from "../../shop/people/person-identifier.ts";
import type { Writer } from "../../store/port.ts";
import { dropIntent, settleEffect, type Work } from "../event/effect.ts";
import { type EventToRun, readRecordPerson } from "../event/event.ts";
import { readMemory } from "../event/prior-work.ts";
import { makeFreshKeys } from "../event/run.ts";
import { alignActions, listStrayIntents, type Step } from "../event/step-reconciliation.ts";

type FoundPerson =
  | { kind: "person"; person: ActionPerson | null }
  | {
      kind: "failed";
      code: "person_not_found" | "person_erased" | "person_suspended" | "invite_capped" | "internal";
      message: string;
      /** Whom the event is about, where that is known all the same. */
      person?: ActionPerson;
    };

interface PersonQuestion {
  relay: LiveRelay;
  payload: JsonObject;
  event: Arrival;
  nowMs: number;
  invitesPerDay: number;
}

export async function resolvePerson(tx: Writer, question: PersonQuestion): Promise<FoundPerson> {
  const trigger = question.relay.definition.trigger;
  if (trigger.kind === "schedule") return withoutPerson(question.relay, "a schedule has no person");
  if (trigger.kind === "data_change") return personOfRecord(tx, question);
  const key = question.relay.receiver?.personKey ?? null;
  if (key === null)
    return withoutPerson(question.relay, "the map names none of person_email, person_id, person_token");
  const mapped = question.payload.mapped;
  const value = isJsonObject(mapped) && Object.hasOwn(mapped, key) ? scalarText(mapped[key]) : null;
  try {
    const person = await resolvePersonKey(tx, {
      environmentId: question.relay.environmentId,
      key,
      value,
      createdBy: `relay:${question.relay.name}`,
      nowMs: question.nowMs,
      invitesPerDay: question.invitesPerDay,
      event: question.event,
      digestAddress: question.relay.digestAddress,
    });
    if (person === "erased") return erased(key);
    if (person !== null) return takePerson(person);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "invite_capped") throw error;
    return { kind: "failed", code: "invite_capped", message: error.message };
  }
  const why = value === null ? "names nothing in this event" : "resolved to nobody";
  return { kind: "failed", code: "person_not_found", message: `${key} ${why}, so no action ran.` };
}

async function personOfRecord(tx: Writer, { relay, payload }: PersonQuestion): Promise<FoundPerson> {
  const id = readRecordPerson(payload);
  const person = id === null ? null : await findPerson(tx, relay.environmentId, id);
  if (person !== null) return takePerson(person);
  if (id !== null && (await isErasedPerson(tx, relay.environmentId, id))) return erased("the record");
  return withoutPerson(relay, "the record has neither an owner nor a recipient who still exists");
}

/** An event without a person runs, unless one of its actions needs one. */
function withoutPerson(relay: LiveRelay, why: string): FoundPerson {
  const needing = relay.actions.find(({ needsPerson }) => needsPerson);
  if (needing === undefined) return { kind: "person", person: null };
  return {
    kind: "failed",
    code: "person_not_found",
    message: `${needing.type} needs a person and ${why}, so no action ran.`,
  };
}

function erased(what: string): FoundPerson {
  const message = `${what} names a person who was erased after this event arrived, so no action ran and none ever will.`;
  return { kind: "failed", code: "person_erased", message };
}

/** Who was erased while something of the event was on its way is in nothing that follows: the result that ends it, or null. */
export async function findErasure(
  tx: Writer,
  { environmentId }: LiveRelay,
  person: ActionPerson | null,
): Promise<ActionResult | null> {
  if (person === null || !(await isErasedPerson(tx, environmentId, person.id))) return null;
  const message = "The event's person was erased while it ran, so the actions that follow did not run.";
  return { type: "person", outcome: "failed", code: "person_erased", message };
}

/** A suspended person ends the event whatever its actions are. */
function takePerson(person: { id: string; email: string | null; status: string }): FoundPerson {
  const { id, email, status } = person;
  const found = { id, email: email ?? "", status };
  if (status !== "suspended") return { kind: "person", person: found };
  return {
    kind: "failed",
    code: "person_suspended",
    person: found,
    message: `The event's person is suspended, so no action ran: make them active again in the dashboard or with relay people activate ${id}, then replay the event.`,
  };
}

interface RunContext {
  relay: Pick<
    LiveRelay,
    "id" | "name" | "environmentId" | "appId" | "local" | "signingSecret" | "definition"
  >;
  event: Pick<EventToRun, "id" | "seq" | "createdAt" | "trigger" | "truncated" | "form">;
  /** As the event is mapped now. */
  payload: JsonObject;
  person: ActionPerson | null;
  results: readonly ActionResult[];
  nowMs: number;
  limits: RaisableLimits;
  /** Takes a sentence for the event's warnings. */
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
    warn(tellMissing(path, truncated, why));
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
    limits: context.limits,
  };
}

/** What was there and is cut away is not the same as what never was. */
function tellMissing(path: string, truncated: boolean, why: string): string {
  if (truncated && path.startsWith("event.")) {
    return `{{${path}}} can no longer be read and was left empty: the event is larger than 32 KB, so only its mapped values are kept; name the path in the map.`;
  }
  if (truncated && path.startsWith("mapped.")) {
    return `{{${path}}} names nothing in this event and was left empty: the event is larger than 32 KB, so only what the map named when it arrived is kept.`;
  }
  return `{{${path}}} names nothing in this event and was left empty${why}.`;
}

/** The path that the map reads a mapped value from, where the event's body holds nothing there; null otherwise. */
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

/** A first run's steps, made once a list of actions. */
const stepsOf = new WeakMap<readonly LiveAction[], readonly Step[]>();

export function firstSteps(actions: readonly LiveAction[]): readonly Step[] {
  const steps = stepsOf.get(actions) ?? makeFreshKeys(actions).map((key) => ({ does: "run", key }) as const);
  stepsOf.set(actions, steps);
  return steps;
}

/** The steps of a later run, one an action. `run`: for what is settled. */
export async function alignWithEarlier(
  tx: Writer,
  { actions }: LiveRelay,
  event: EventToRun,
  run: ActionRun,
): Promise<Step[]> {
  let memory = await readMemory(tx, event.seq);
  const stray = listStrayIntents(actions, memory);
  for (const work of stray) await settleStray(tx, event, work, run);
  if (stray.length > 0) memory = await readMemory(tx, event.seq);
  const chosen = event.chosen === null ? [] : (parseJson(event.chosen) as string[]);
  return alignActions(actions, memory, new Set(chosen), run.person?.id ?? null);
}

/**
 * Something that began to leave the house for an action that was chosen, or is edited or gone since, is settled before: what may have left
 * counts as done, and nothing is sent for it.
 */
async function settleStray(tx: Writer, event: EventToRun, work: Work, run: ActionRun): Promise<void> {
  const type = findAction(work.type);
  const conclude = run.person !== null && type?.sends === true ? type.conclude : undefined;
  const outcome = conclude === undefined ? undefined : await conclude.call(type, tx, run, work.after);
  if (outcome === null) await dropIntent(tx, event.seq, work.key);
  else await settleEffect(tx, event, work.key, outcome?.after);
}
