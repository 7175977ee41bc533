/** Documents an environment's settings from the schema that validates a change of them. */
import type { JsonObject } from "../../base/json.ts";
import { settingsInput } from "../../rules/settings/settings.ts";
import { asSchema, type FieldSchema, writeFields } from "./schema-table.ts";

export function writeSettings(): string {
  const schema = asSchema(JSON.parse(JSON.stringify(settingsInput)) as JsonObject);
  const groups = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const below = fieldsOf(field);
    return below === null ? [] : [`### ${name}\n\n${writeFields(below)}`];
  });
  return [writeFields(schema), ...groups].join("\n\n");
}

function fieldsOf(field: FieldSchema): FieldSchema | null {
  if (field.properties !== undefined) return field;
  return field.anyOf?.find(({ properties }) => properties !== undefined) ?? null;
}
