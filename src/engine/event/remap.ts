/** An event mapped again where its relay's map moved on: by the stored body, while that is whole. */
import { isJsonObject, type Json, type JsonObject, writeCanonicalJson, writeJson } from "../../base/json.ts";
import { type CompiledMap, readMap } from "../../rules/relay/live-receiver.ts";
import type { EventToRun } from "./event.ts";
import { keepMapped } from "./insert.ts";

/**
 * The payload with `mapped` made again by this map, or null where it comes out as it is, and where there is no whole body to read: it was
 * truncated, or is gone. `payload` is the value of the event's own.
 */
export function mapAgain(
  stored: Pick<EventToRun, "payload" | "truncated" | "form">,
  payload: JsonObject,
  map: CompiledMap,
): { text: string; payload: JsonObject; warnings: string[] } | null {
  const { event = null, mapped = null } = payload;
  if (stored.truncated || event === null || !isJsonObject(mapped)) return null;
  const isForm = stored.form ?? looksLikeForm(event);
  const { kept, warnings } = keepMapped(readMap(map, { value: event, form: isForm ? [] : null }));
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

/** A form's fields are texts and lists of texts, nothing deeper. */
function looksLikeForm(event: Json): boolean {
  const isText = (one: Json) => typeof one === "string";
  return (
    isJsonObject(event) &&
    Object.values(event).every((field) => isText(field) || (Array.isArray(field) && field.every(isText)))
  );
}
