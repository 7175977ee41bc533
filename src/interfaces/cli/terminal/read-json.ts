/** Reads the JSON that a user gives as an argument or on stdin. */
import { isJsonObject, type Json, type JsonObject, parseJson } from "../../../base/json.ts";
import { UsageError } from "../command.ts";

/** Throws UsageError for a text that is not a JSON object. */
export function readJsonObject(text: string): JsonObject {
  let value: Json | undefined;
  try {
    value = parseJson(text);
  } catch {}
  if (value !== undefined && isJsonObject(value)) return value;
  throw new UsageError(
    "The value is not a JSON object: write one such as {}, as an argument or on standard input.",
  );
}
