/**
 * The data_change trigger: a record changes. This file says what its definition may contain and whether a record's data matches. Change
 * capture in the engine decides which changes count: writes by relays and erasures never do. Source: the specification's "Triggers".
 */
import { Type } from "typebox";
import { isJsonObject, type Json } from "../../base/json.ts";
import { CATALOG_NAME, FIELD_NAME, showChoices, showMatch } from "../../base/shape.ts";
import type { TriggerType } from "./contract.ts";

const CHANGES = ["created", "updated", "deleted"] as const;
export type Change = (typeof CHANGES)[number];

export type DataChangeTrigger = {
  kind: "data_change";
  collection: string;
  on: Change[];
  where?: Record<string, string | number | bigint | boolean>;
};

const shape = Type.Object(
  {
    kind: Type.Literal("data_change", { description: "A record changes.", expects: '"data_change"' }),
    collection: Type.String({
      pattern: CATALOG_NAME.source,
      description: "The collection whose changes start the relay.",
      expects: "the name of a collection (lowercase letters, digits, hyphens, underscores)",
      names: "collection",
    }),
    on: Type.Array(
      Type.Union(
        CHANGES.map((change) => Type.Literal(change)),
        { description: "A kind of change.", expects: "created, updated or deleted" },
      ),
      {
        minItems: 1,
        uniqueItems: true,
        description: "The kinds of change that start the relay.",
        expects: "a list of one or more of created, updated and deleted",
      },
    ),
    where: Type.Optional(
      Type.Record(
        Type.String({ pattern: FIELD_NAME.source }),
        Type.Union([Type.String(), Type.Number(), Type.Boolean()], {
          description: "The exact value the record's field must have.",
          expects: "a text, a number, true or false, matched exactly",
        }),
        {
          description: "The relay runs only for records whose data fields equal these values exactly.",
          expects: "an object of field names, each with the exact value to match",
          names: "field",
          expectsName:
            "the name of a field in the record's data (letters, digits, hyphens, underscores; no path)",
        },
      ),
    ),
  },
  {
    additionalProperties: false,
    description: "A record changes.",
    expects: "a trigger object",
    strangers: {
      when: "name it `where`, which a data_change trigger has",
      map: 'remove it, or make the trigger\'s kind "receiver"; templates read {{record.data.<field>}}',
    },
  },
);

export const dataChangeTrigger: TriggerType<DataChangeTrigger> = {
  kind: "data_change",
  title: "A record changes",
  shape,
  check: () => [],
  canHavePerson: true,
  templateRoots: ["record", "previous", "person"],
  inWords: ({ collection, on, where }) =>
    `when a record of ${collection} is ${showChoices(on, on.length)}${showMatch(where, "where")}`,
  examples: [
    { kind: "data_change", collection: "orders", on: ["created"] },
    { kind: "data_change", collection: "orders", on: ["created", "updated"], where: { status: "paid" } },
  ],
};

/**
 * Reports whether every field of `where` is in the record's own data with exactly that value; `4` is not `"4"`. Another program may have written data
 * that is not an object, which matches nothing.
 */
export function matchesWhere(where: DataChangeTrigger["where"], data: Json): boolean {
  return findWhereMismatch(where, data) === null;
}

/** Finds the first name of `where` that the record's data does not match. Returns null where all match. */
export function findWhereMismatch(where: DataChangeTrigger["where"], data: Json): string | null {
  for (const [name, wanted] of Object.entries(where ?? {})) {
    if (!isJsonObject(data) || !Object.hasOwn(data, name) || data[name] !== wanted) return name;
  }
  return null;
}
