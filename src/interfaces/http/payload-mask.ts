/**
 * Hides the values of payloads from callers without the permission `read_payloads`. Schemas of responses mark these values (`payload` in
 * base/schema.ts). Every response of a route passes here, so no route hides anything itself. Names and types stay, and nothing shows a length.
 */
import type { TSchema } from "typebox";
import { isPayload } from "../../base/schema.ts";

/** Replaces every hidden text. */
export const HIDDEN_TEXT = "[hidden]";

interface Described {
  properties?: Readonly<Record<string, TSchema>>;
  patternProperties?: Readonly<Record<string, TSchema>>;
  items?: TSchema;
  anyOf?: readonly TSchema[];
}

/** Returns a copy of the response with hidden payloads. A value that the schema does not describe stays. */
export function hidePayloads(schema: TSchema, value: unknown): unknown {
  if (isPayload(schema)) return hide(value);
  const { properties = {}, patternProperties = {}, items, anyOf = [] } = schema as Described;
  let shown = value;
  for (const one of anyOf) shown = hidePayloads(one, shown);
  if (Array.isArray(shown))
    return items === undefined ? shown : shown.map((item) => hidePayloads(items, item));
  if (!isObject(shown)) return shown;
  const [pattern] = Object.values(patternProperties);
  const entries = Object.entries(shown).map(([name, part]) => {
    const own = Object.hasOwn(properties, name) ? properties[name] : pattern;
    return [name, own === undefined ? part : hidePayloads(own, part)];
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
