/** A record as the app might write it: every field of its collection holds an example, and `where` is satisfied. It writes nothing. */
import { toIso } from "../ground/clock.ts";
import type { Json, JsonObject } from "../ground/json.ts";
import { type CollectionRow, listFields } from "../records/collection.ts";
import type { FieldRule } from "../records/collection-definition.ts";
import type { DataChangeTrigger } from "../trigger/data-change.ts";

const SAMPLE_DAY_MS = Date.UTC(2026, 0, 15);

export function makeSampleRecord(collection: CollectionRow, where: DataChangeTrigger["where"]): JsonObject {
  const made = [...listFields(collection)].flatMap(([name, rule]): [string, Json][] => {
    const value = sampleOf(name, rule);
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(made), ...where };
}

/** undefined: nothing can stand there that is made up. */
function sampleOf(name: string, { type, max }: FieldRule): Json | undefined {
  switch (type) {
    case "text":
      return `sample ${name}`.slice(0, max ?? undefined);
    case "number":
      return Math.min(1, max ?? 1);
    case "boolean":
      return true;
    case "date":
      return toIso(SAMPLE_DAY_MS);
    case "json":
      return {};
    case "file":
      return undefined;
  }
}
