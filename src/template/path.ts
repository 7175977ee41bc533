/**
 * Dotted paths into JSON: how one is written and what it names. Numeric segments index arrays. Only own properties are ever
 * read, so `__proto__` and `constructor` name nothing unless the payload itself holds them. It never evaluates anything.
 * Source: the specification's "Triggers" (map) and "Templates"; recipes, "Reading the event".
 */
import { isJsonObject, type Json } from "../ground/json.ts";

export const MAX_PATH_SEGMENTS = 32;
export const MAX_PATH_CHARS = 500;

export interface Path {
  /** As written. */
  readonly text: string;
  /** At least one, none empty. */
  readonly segments: readonly string[];
}

/** One segment: no dots, braces or control characters, no white space at its ends (inside, as in `First name`, is fine). */
const SEGMENT = /^(?!\s)[^.{}\p{Cc}]+(?<!\s)$/u;
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** The path a text writes (`data.items.0.id`), or null when it is not one: an empty segment, a brace, too long, too deep. */
export function parsePath(text: string): Path | null {
  if (text.length === 0 || text.length > MAX_PATH_CHARS) return null;
  const segments = text.split(".");
  if (segments.length > MAX_PATH_SEGMENTS) return null;
  return segments.every((segment) => SEGMENT.test(segment)) ? { text, segments } : null;
}

/** What the path names, or undefined when it names nothing. A JSON null is null, which is something. */
export function readPath(value: Json, path: Path): Json | undefined {
  return readSegments(value, path.segments);
}

/** As `readPath`, for a list of segments; none of them name the value itself. */
export function readSegments(value: Json, segments: readonly string[]): Json | undefined {
  let found: Json | undefined = value;
  for (const segment of segments) {
    found = readSegment(found, segment);
    if (found === undefined) return undefined;
  }
  return found;
}

/** As `readPath`, for a form's fields: a field whose literal name is the whole path wins over the path. */
export function readField(value: Json, path: Path): Json | undefined {
  if (isJsonObject(value) && Object.hasOwn(value, path.text)) return value[path.text];
  return readPath(value, path);
}

function readSegment(value: Json, segment: string): Json | undefined {
  if (Array.isArray(value)) return ARRAY_INDEX.test(segment) ? value[Number(segment)] : undefined;
  return isJsonObject(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
}
