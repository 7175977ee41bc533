/** Applies a relay's current map to a stored event, if its body was not truncated. */
import { isJsonObject, type Json, type JsonObject, writeCanonicalJson, writeJson } from "../../base/json.ts";
import { type CompiledMap, readMap } from "../../rules/relay/live-receiver.ts";
import type { EventToRun } from "./event.ts";
import { limitMapped } from "./insert.ts";

/**
 * Returns the payload with `mapped` by this map. Returns null if `mapped` stays the same, or if the body was truncated or expunged. `payload`: the
 * parsed payload of the event.
 */
export function mapAgain(
  stored: Pick<EventToRun, "payload" | "truncated" | "form">,
  payload: JsonObject,
  map: CompiledMap,
): { text: string; payload: JsonObject; warnings: string[] } | null {
  const { event = null, mapped = null } = payload;
  if (stored.truncated || event === null || !isJsonObject(mapped)) return null;
  const isForm = stored.form ?? looksLikeForm(event);
  const { kept, warnings } = limitMapped(readMap(map, { value: event, form: isForm ? [] : null }));
  if (writeCanonicalJson(kept) === writeCanonicalJson(mapped)) return null;
  const tail = `,"mapped":${writeJson(mapped)}}`;
  const head = stored.payload.endsWith(tail)
    ? stored.payload.slice(0, -tail.length)
    : `{"event":${writeJson(event)}`;
  return {
    text: `${head},"mapped":${writeJson(kept)}}`,
    payload: { ...payload, mapped: kept },
    warnings,
  };
}

/** The fields of a form are texts and lists of texts. */
function looksLikeForm(event: Json): boolean {
  const isText = (one: Json) => typeof one === "string";
  return (
    isJsonObject(event) &&
    Object.values(event).every((field) => isText(field) || (Array.isArray(field) && field.every(isText)))
  );
}
