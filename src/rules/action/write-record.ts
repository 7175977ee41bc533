/**
 * write_record: writes one record of the app by the same function as the API, so the same rules for fields, plain text and files apply.
 * The runner ensures once per event. A record that it writes never starts a data_change relay, and it never changes an existing record.
 * Source: the specification's "Actions".
 */
import { type Static, Type } from "typebox";
import { isJsonObject, type Json } from "../../base/json.ts";
import { MAX_JSON_DEPTH } from "../../base/limit.ts";
import { failFinally } from "../../base/outcome.ts";
import { type Problem, Refusal } from "../../base/refusal.ts";
import { FIELD_NAME } from "../../base/shape.ts";
import { breaksPlainText } from "../../base/text.ts";
import { checkTemplateText } from "../../platform/template/template.ts";
import { findCachedCollection, findCollection } from "../../shop/records/collection.ts";
import { writeRecordIn } from "../../shop/records/record.ts";
import { type DatabaseAction, findActingPerson } from "./contract.ts";
import { catalogNameShape, defineActionShape } from "./shape.ts";

const words = defineActionShape("write_record", "Write a record", "Writes a record into a collection.", {
  collection: catalogNameShape("collection"),
  data: Type.Record(
    Type.String({ pattern: FIELD_NAME.source }),
    Type.Unknown({
      description: "The field's value; {{paths}} in its strings are filled in.",
      expects: "a JSON value",
      templated: true,
    }),
    {
      description: "The record's fields and their values; {{paths}} in strings are filled in.",
      expects: 'an object of field names and values, such as { "order": "{{mapped.order_id}}" }',
      names: "field",
      expectsName:
        "a field's name: letters, digits, underscores and hyphens, starting with a letter or underscore",
    },
  ),
  to: Type.Optional(
    Type.Literal("person", {
      description:
        "Addresses the record to the event's person; required on addressed and direct collections.",
      expects: '"person"',
    }),
  ),
});

export type WriteRecord = Static<typeof words.shape>;

export const writeRecord: DatabaseAction<WriteRecord> = {
  ...words,
  effect: "writes",
  sends: false,
  needsPerson: (action) => action.to === "person",
  check: (action) => checkData("data", action.data as Json, 0),
  references: (action) => [{ kind: "collection", name: action.collection, field: "collection" }],
  prefetch: (reader, action, environmentId) => [findCollection(reader, environmentId, action.collection)],
  target: (action) => action.collection,
  examples: [
    { type: "write_record", collection: "orders", data: { number: "{{mapped.order_id}}" } },
    {
      type: "write_record",
      collection: "notices",
      to: "person",
      data: { title: "Payment received", body: "Thank you, {{person.email}}.", event: "{{event.data}}" },
    },
  ],

  bind: (action) => async (tx, run) => {
    const collection = await findCachedCollection(tx, run.environmentId, action.collection);
    if (collection === null) {
      return failFinally(
        "collection_missing",
        `\`collection\` names ${action.collection}, which does not exist in this environment: create it with relay catalog set collection, or name one that exists.`,
      );
    }
    let recipientId: string | null = null;
    if (action.to === "person") {
      const { person, failure } = await findActingPerson(tx, run);
      if (failure !== null) return failure;
      recipientId = person.id;
    }
    try {
      const record = await writeRecordIn(tx, collection, {
        environmentId: run.environmentId,
        data: run.renderData(action.data as Json),
        ownerId: null,
        recipientId,
        by: `relay:${run.relay.name}`,
        eventId: run.event.id,
        nowMs: run.nowMs,
        rendered: true,
      });
      return {
        outcome: "done",
        before: null,
        after: { collection: collection.name, record: record.id, recipient: record.recipientId },
      };
    } catch (error) {
      if (error instanceof Refusal && error.code === "data_invalid") {
        return failFinally("data_invalid", error.message);
      }
      throw error;
    }
  },
};

/** Checks that every string is a valid template and plain text, and that the nesting has a limit. */
function checkData(field: string, value: Json, depth: number): Problem[] {
  if (typeof value === "string") {
    const broken = breaksPlainText(value);
    if (broken !== null) return [{ field, message: `\`${field}\` ${broken}: remove it.` }];
    return checkTemplateText(field, value);
  }
  if (!isJsonObject(value) && !Array.isArray(value)) return [];
  if (depth > MAX_JSON_DEPTH) {
    return [
      { field, message: `\`${field}\` is nested more than ${MAX_JSON_DEPTH} levels deep: flatten it.` },
    ];
  }
  return Object.entries(value).flatMap(([name, inner]) => checkData(`${field}.${name}`, inner, depth + 1));
}
