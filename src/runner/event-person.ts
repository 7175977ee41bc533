/**
 * The person an event acts on, resolved when the attempt starts: a receiver's person key, or a record's owner, otherwise its recipient.
 * It names the key that was tried and never its value.
 */
import type { ActionPerson, ActionResult } from "../action/contract.ts";
import { isJsonObject, type JsonObject, scalarText } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";
import { findPerson } from "../people/person.ts";
import { isErasedPerson } from "../people/person-erase.ts";
import { type Arrival, resolvePersonKey } from "../people/person-key.ts";
import { findPersonKey } from "../relay/event-map.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Writer } from "../store/port.ts";

export const PERSON_CHANGED =
  "The event is about another person than at its attempt before: what was done then stays with that person and is not done again.";

type FoundPerson =
  | { kind: "person"; person: ActionPerson | null }
  | {
      kind: "failed";
      code: "person_not_found" | "person_erased" | "person_suspended" | "invite_capped" | "internal";
      message: string;
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
  const key = findPersonKey(trigger.map);
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
  const record = isJsonObject(payload.record) ? payload.record : payload.previous;
  const id = isJsonObject(record) ? (scalarText(record.owner) ?? scalarText(record.recipient)) : null;
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
  if (status !== "suspended") return { kind: "person", person: { id, email: email ?? "", status } };
  return {
    kind: "failed",
    code: "person_suspended",
    message:
      "The event's person is suspended, so no action ran: make the person active again, then replay the event.",
  };
}
