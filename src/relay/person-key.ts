/** Which name of a receiver's map says whom its events are about, and whether a trigger's events can have a person. It resolves nobody. */
import { PERSON_KEYS, type PersonKey } from "../trigger/receiver.ts";
import { findTrigger, type Trigger } from "../trigger/registry.ts";

/** The person key in the map, or null. */
export function findPersonKey(map: Readonly<Record<string, string>>): PersonKey | null {
  return PERSON_KEYS.find((key) => Object.hasOwn(map, key)) ?? null;
}

/** Whether an event of this trigger can have a person: a record's owner or recipient, or whom the map names. */
export function canHavePerson(trigger: Trigger): boolean {
  if (trigger.kind === "receiver") return findPersonKey(trigger.map) !== null;
  return findTrigger(trigger.kind)?.canHavePerson === true;
}
