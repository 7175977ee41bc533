/** Rule of a place in a definition, in words and with an example, for mouse and keyboard users. */
import type { JsonSpot } from "./json-tree.ts";
import { allowedAt, choicesAt, type Known } from "./schema.ts";

export interface PlaceWords {
  /** Path of the field, such as `trigger.verify.scheme`. */
  field: string;
  rule: string;
  /** Example as JSON, or null. */
  example: string | null;
}

const MAX_EXAMPLE_CHARS = 120;

export function describePlace(known: Known, spot: JsonSpot, name: string | null): PlaceWords | null {
  const steps = name === null ? spot.steps : [...spot.steps, name];
  const allowed = allowedAt(known, steps);
  if (allowed === null || steps.length === 0) return null;
  const { schema, example } = allowed;
  const around = allowedAt(known, steps.slice(0, -1))?.schema;
  const last = steps.at(-1);
  const meaning = typeof last === "string" ? around?.["x-known-names"]?.[last] : undefined;
  const written = spot.is === "value" ? spot.node?.value : undefined;
  const chosen =
    written === undefined ? undefined : choicesAt(known, steps).find(({ value }) => value === written);
  const rule = [chosen?.info, meaning, chosen?.info === schema.description ? undefined : schema.description]
    .filter((one) => one !== undefined)
    .join(" ");
  if (rule === "") return null;
  const shown = example === undefined ? null : JSON.stringify(example);
  return {
    field: steps.join("."),
    rule,
    example: shown === null || shown.length > MAX_EXAMPLE_CHARS ? null : shown,
  };
}
