/** What a person wrote as JSON on the line or on standard input. */
import { isJsonObject, type Json, type JsonObject, parseJson } from "../../../base/json.ts";
import { UsageError } from "../command.ts";

/** Throws UsageError for what is no object. */
export function readJsonObject(text: string): JsonObject {
  let value: Json | undefined;
  try {
    value = parseJson(text);
  } catch {}
  if (value !== undefined && isJsonObject(value)) return value;
  throw new UsageError(
    "What is set is not a JSON object: write one such as {}, as an argument or on standard input.",
  );
}
