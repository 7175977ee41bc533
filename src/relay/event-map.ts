/**
 * Reading a receiver's event: the mapped names out of the body, whether `when` matches, and the event's own id.
 * It reads own properties by path alone; it never converts a value, and never looks at headers.
 * Source: the specification's "Triggers" and "Map names", recipes, "Reading the event", decisions section 3.
 */
import { type Json, type JsonObject, scalarText } from "../ground/json.ts";
import { type Path, parsePath, readField, readPath } from "../template/template.ts";
import { PERSON_KEYS, type PersonKey, type When } from "../trigger/receiver.ts";
import { findTrigger, type Trigger } from "../trigger/registry.ts";

/** A map with its paths parsed; made once per saved relay, used for every call. */
export type CompiledMap = readonly (readonly [name: string, path: Path])[];

/** A path that is not one names nothing; the definition check refuses it before it is ever saved. */
export function compileMap(map: Readonly<Record<string, string>>): CompiledMap {
  const compiled: [string, Path][] = [];
  for (const [name, text] of Object.entries(map)) {
    const path = parsePath(text);
    if (path !== null) compiled.push([name, path]);
  }
  return compiled;
}

/** A parsed body: its JSON value, and a form's pairs where it was a form, else null. */
interface ReadBody {
  value: Json;
  form: readonly unknown[] | null;
}

/**
 * The mapped names and their values, in the map's order; a path that names nothing leaves its name out, a JSON null stays null.
 * In a form's fields, one whose literal name is the whole path wins over the path.
 */
export function readMap(compiled: CompiledMap, body: ReadBody): JsonObject {
  const read = body.form === null ? readPath : readField;
  const found: [string, Json][] = [];
  for (const [name, path] of compiled) {
    const value = read(body.value, path);
    if (value !== undefined) found.push([name, value]);
  }
  return Object.fromEntries(found);
}

/** The first name of `when` that does not match, what it must be (a list: any of it), and what the event says (null: nothing, or no scalar). */
export interface WhenMismatch {
  name: string;
  wanted: string | readonly string[];
  found: string | null;
}

/**
 * null when every name of `when` equals the mapped value's text (`4200` is "4200") or holds it in its list, else the first that does not;
 * a mapped object, list or null never matches.
 */
export function matchesWhen(when: When | null | undefined, mapped: JsonObject): WhenMismatch | null {
  for (const [name, wanted] of Object.entries(when ?? {})) {
    const found = Object.hasOwn(mapped, name) ? scalarText(mapped[name]) : null;
    const matches = typeof wanted === "string" ? found === wanted : found !== null && wanted.includes(found);
    if (!matches) return { name, wanted, found };
  }
  return null;
}

const INTEGER = /^-?\d+$/;

/** The mapped `event_id` as text: a non-empty string or an integer, all its digits kept; anything else is as if not mapped. */
export function readEventId(mapped: JsonObject): string | null {
  const value = Object.hasOwn(mapped, "event_id") ? mapped.event_id : undefined;
  if (typeof value === "string") return value === "" ? null : value;
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : null;
  const digits = scalarText(value);
  return digits !== null && INTEGER.test(digits) ? digits : null;
}

/** The person key in the map, or null. */
export function findPersonKey(map: Readonly<Record<string, string>>): PersonKey | null {
  return PERSON_KEYS.find((key) => Object.hasOwn(map, key)) ?? null;
}

/** Whether an event of this trigger can have a person: a record's owner or recipient, or whom the map names. */
export function canHavePerson(trigger: Trigger): boolean {
  if (trigger.kind === "receiver") return findPersonKey(trigger.map) !== null;
  return findTrigger(trigger.kind)?.canHavePerson === true;
}
