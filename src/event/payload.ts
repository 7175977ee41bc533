/**
 * The payload an event row stores: JSON text, at most 32 KB. A larger receiver payload keeps its mapped values, each cut at 2 KB, and a
 * preview of its beginning; its `event` becomes null. Source: decisions, "truncation".
 */
import { type Json, type JsonObject, writeJson } from "../ground/json.ts";
import { MAX_MAPPED_VALUE_BYTES, MAX_PREVIEW_BYTES, MAX_STORED_PAYLOAD_BYTES } from "../ground/limit.ts";
import { cutUtf8, fitsUtf8 } from "../ground/text.ts";

export interface StoredPayload {
  /** JSON text. */
  text: string;
  truncated: boolean;
  /** The beginning of what was cut away, or null. */
  preview: string | null;
}

/** `{ event, mapped }` from the JSON text of the event, kept as received, and the mapped values. */
export function makeReceiverPayload(eventText: string, mapped: JsonObject): StoredPayload {
  const text = `{"event":${eventText},"mapped":${writeJson(mapped)}}`;
  if (fitsUtf8(text, MAX_STORED_PAYLOAD_BYTES)) return { text, truncated: false, preview: null };
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(mapped)) kept[name] = cutValue(value);
  return {
    text: `{"event":null,"mapped":${writeJson(kept)}}`,
    truncated: true,
    preview: cutUtf8(eventText, MAX_PREVIEW_BYTES),
  };
}

/** A payload that is stored whole. */
export function makeWholePayload(payload: JsonObject): StoredPayload {
  return { text: writeJson(payload), truncated: false, preview: null };
}

/** The value, or its beginning as text where it takes more than 2 KB. */
export function cutValue(value: Json): Json {
  if (typeof value === "string") return cutUtf8(value, MAX_MAPPED_VALUE_BYTES);
  const text = writeJson(value);
  return fitsUtf8(text, MAX_MAPPED_VALUE_BYTES) ? value : cutUtf8(text, MAX_MAPPED_VALUE_BYTES);
}
