/** Documents the fields of catalog.json from its schema. */
import { makeCatalogSchema } from "../../operator/sync/catalog-file.ts";
import { asSchema, type FieldSchema, writeFields } from "./schema-table.ts";

const HEADINGS: Readonly<Record<string, string>> = {
  collections: "Collections",
  access: "Access slugs",
  products: "Products",
  plans: "Plans",
};

export function writeCatalogFields(): string {
  const { properties = {} } = asSchema(makeCatalogSchema());
  return Object.entries(HEADINGS)
    .map(([name, heading]) => {
      const entry = entryOf(properties[name]);
      const fields = ruleOf(entryOf(entry?.properties?.fields));
      const below =
        fields === undefined
          ? []
          : ['A field by its rule; `{ "type": "text" }` may be written as `"text"`:', writeFields(fields)];
      return [`### ${heading}`, `\`${name}\` holds them by name.`, writeFields(entry ?? {}), ...below].join(
        "\n\n",
      );
    })
    .join("\n\n");
}

/** Returns the schema of the entries of a map by name. */
function entryOf(schema: FieldSchema | undefined): FieldSchema | undefined {
  return Object.values(schema?.patternProperties ?? {})[0];
}

/** Returns the rule of a field that takes either a type name or a rule. */
function ruleOf(schema: FieldSchema | undefined): FieldSchema | undefined {
  return schema?.anyOf?.find(({ properties }) => properties !== undefined);
}
