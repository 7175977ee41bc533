/** Finds the person of a replay by the relay's current map. It works as an attempt does, but creates no person. */
import { isJsonObject, type JsonObject, parseJson, scalarText } from "../../base/json.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { compileMap } from "../../rules/relay/live-receiver.ts";
import { findPersonKey } from "../../rules/trigger/receiver.ts";
import { findPersonByFormerAddress } from "../../shop/people/former-address.ts";
import {
  findPerson,
  findPersonByEmail,
  type PersonRow,
  parseEmailAddress,
} from "../../shop/people/person.ts";
import { findPersonByToken } from "../../shop/people/person-identifier.ts";
import type { Reader } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { EVENT, readRecordPerson } from "./event.ts";
import { mapAgain } from "./remap.ts";

const MAPPED = EVENT.pick("environmentId", "payload", "truncated", "form", "mapVersion");

export interface ReplayPerson {
  /** The id; "" if the attempt would create the person. */
  id: string;
  /** The name in a sentence. */
  name: string;
}

/** Returns null if the event would be about no person. */
export async function findReplayPerson(
  tx: Reader,
  eventSeq: number,
  relay: { version: number; definition: Definition },
): Promise<ReplayPerson | null> {
  const event = await MAPPED.find(tx, { seq: eventSeq } as Partial<RowOf<typeof MAPPED>>);
  const payload = event === null ? null : parseJson(event.payload);
  if (event === null || !isJsonObject(payload)) return null;
  const { environmentId } = event;
  const { trigger } = relay.definition;
  if (trigger.kind !== "receiver") {
    const id = trigger.kind === "data_change" ? readRecordPerson(payload) : null;
    return id === null ? null : await nameId(tx, environmentId, id);
  }
  const key = findPersonKey(trigger.map);
  if (key === null) return null;
  const isMoved = event.mapVersion !== relay.version && !event.truncated;
  const again = isMoved ? mapAgain(event, payload, compileMap(trigger.map)) : null;
  const value = readMapped(again?.payload ?? payload, key);
  if (value === "") return null;
  if (key === "person_id") return await nameId(tx, environmentId, value);
  const find = key === "person_token" ? findPersonByToken : findPersonByAddress;
  const person = await find(tx, environmentId, value);
  if (person !== null) return { id: person.id, name: person.email };
  return key === "person_email" && parseEmailAddress(value) !== null ? { id: "", name: value } : null;
}

async function findPersonByAddress(
  tx: Reader,
  environmentId: number,
  email: string,
): Promise<PersonRow | null> {
  const person = await findPersonByEmail(tx, environmentId, email);
  return person ?? (await findPersonByFormerAddress(tx, environmentId, email));
}

function readMapped({ mapped }: JsonObject, name: string): string {
  return isJsonObject(mapped) && Object.hasOwn(mapped, name) ? (scalarText(mapped[name])?.trim() ?? "") : "";
}

async function nameId(tx: Reader, environmentId: number, id: string): Promise<ReplayPerson | null> {
  const person = await findPerson(tx, environmentId, id);
  return person === null ? null : { id, name: person.email };
}
