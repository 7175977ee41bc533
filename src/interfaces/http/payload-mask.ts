/**
 * Hides the values of payloads from callers without the permission `read_payloads`. Schemas of responses mark these values (`payload` in
 * base/schema.ts). Every response of a route passes here, so no route hides anything itself. Names and types stay, and nothing shows a length.
 */
import type { TSchema } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { payloadMark } from "../../base/schema.ts";
import type { Admitted } from "./admission.ts";

/** Replaces every hidden text. */
export const HIDDEN_TEXT = "[hidden]";

type Owner = Readonly<Record<string, unknown>>;

interface Described {
  properties?: Readonly<Record<string, TSchema>>;
  patternProperties?: Readonly<Record<string, TSchema>>;
  items?: TSchema;
  anyOf?: readonly TSchema[];
}

/** Refuses an input whose answer would tell values of payloads to a caller who may not see them. `input` is the subject of the sentence. */
export function requirePayloads({ may }: Pick<Admitted, "may">, input: string): void {
  if (may("read_payloads")) return;
  throw new Refusal(
    "forbidden",
    `${input} would show values that you may not see: leave it out, or ask an owner for the permission read_payloads.`,
  );
}

/** The value that a sentence about a request quotes: `… has "value"`, `… the id "value"`. */
const QUOTED = /\b(has|id) "(?:[\s\S]*"|[\s\S]*)/;

/** Returns a copy of the response with hidden payloads. A value that the schema does not describe stays. `owner`: the object that has the value. */
export function hidePayloads(schema: TSchema, value: unknown, owner: Owner = {}): unknown {
  switch (payloadMark(schema)) {
    case true:
      return hide(value);
    case "of_event":
      return owner.eventId == null ? value : hide(value);
    case "quotes":
      return typeof value === "string" ? value.replace(QUOTED, `$1 "${HIDDEN_TEXT}"`) : value;
  }
  const { properties = {}, patternProperties = {}, items, anyOf = [] } = schema as Described;
  let shown = value;
  for (const one of anyOf) shown = hidePayloads(one, shown, owner);
  if (Array.isArray(shown))
    return items === undefined ? shown : shown.map((item) => hidePayloads(items, item));
  if (!isObject(shown)) return shown;
  const named: Owner = shown;
  const [pattern] = Object.values(patternProperties);
  const entries = Object.entries(shown).map(([name, part]) => {
    const own = Object.hasOwn(properties, name) ? properties[name] : pattern;
    return [name, own === undefined ? part : hidePayloads(own, part, named)];
  });
  return Object.fromEntries(entries);
}

/** Replaces each value by a fixed one of its type. A list keeps one item at most, so that its length does not show. */
function hide(value: unknown): unknown {
  if (typeof value === "string") return HIDDEN_TEXT;
  if (typeof value === "number" || typeof value === "bigint") return 0;
  if (typeof value === "boolean") return false;
  if (Array.isArray(value)) return value.slice(0, 1).map(hide);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, hide(part)]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
