/** Finds the person of a replay by the relay's current map. It works as an attempt does, but creates no person. */
import { isJsonObject, type JsonObject, parseJson, scalarText } from "../../base/json.ts";
import { spaceOf } from "../../rules/relay/customer-space.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import { compileMap } from "../../rules/relay/live-receiver.ts";
import { withSourceScheme } from "../../rules/relay/source.ts";
import { findPersonKey } from "../../rules/trigger/receiver.ts";
import { findPerson, type PersonRow, parseEmailAddress } from "../../shop/people/person.ts";
import { findPersonByCustomer } from "../../shop/people/person-customer.ts";
import { findPersonByAddress, findPersonByToken } from "../../shop/people/person-identifier.ts";
import type { Reader } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { EVENT, readRecordPerson } from "./event.ts";
import { mapAgain } from "./remap.ts";

const MAPPED = EVENT.pick("environmentId", "createdAt", "payload", "truncated", "form", "mapVersion");

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
  const { customer } = trigger;
  const key = findPersonKey(trigger.map) ?? customer?.id ?? null;
  if (key === null) return null;
  const isMoved = event.mapVersion !== relay.version && !event.truncated;
  const remapped = isMoved ? mapAgain(event, payload, compileMap(trigger.map)) : null;
  const value = readMapped(remapped?.payload ?? payload, key);
  if (value === "") return null;
  if (key === "person_id") return await nameId(tx, environmentId, value);
  if (key === customer?.id) {
    const space = spaceOf(await withSourceScheme(tx, environmentId, relay.definition));
    return describe(await findPersonByCustomer(tx, { environmentId, space, customerId: value }));
  }
  if (key === "person_token") return describe(await findPersonByToken(tx, environmentId, value));
  if (parseEmailAddress(value) === null) return null;
  const named = await findPersonByAddress(tx, environmentId, value, event.createdAt);
  return named === null ? { id: "", name: value } : describe(named.person);
}

function readMapped({ mapped }: JsonObject, name: string): string {
  return isJsonObject(mapped) && Object.hasOwn(mapped, name) ? (scalarText(mapped[name])?.trim() ?? "") : "";
}

async function nameId(tx: Reader, environmentId: number, id: string): Promise<ReplayPerson | null> {
  return describe(await findPerson(tx, environmentId, id));
}

function describe(person: PersonRow | null): ReplayPerson | null {
  return person === null ? null : { id: person.id, name: person.email };
}
