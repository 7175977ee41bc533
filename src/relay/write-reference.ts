/**
 * What a relay's write_record says against the collection it names, where that exists now: without the person an addressed or direct record
 * needs it is refused, and a field the collection does not have, or one it requires and nothing fills, is a warning, because either side may
 * still change. It never reads a value; the record's own door does when the event runs. Source: the specification's "Actions".
 */
import { isJsonObject } from "../ground/json.ts";
import type { Problem } from "../ground/refusal.ts";
import { joinField } from "../ground/shape.ts";
import { type CollectionRow, findCollection, listFields } from "../records/collection.ts";
import type { Reader } from "../store/port.ts";
import type { ActionDefinition, Definition } from "./definition.ts";

interface Write {
  action: ActionDefinition;
  /** `actions.0` */
  place: string;
  collection: CollectionRow;
}

/** One problem each write_record that leaves out `to` where the collection's records need a recipient. */
export async function checkWrites(
  tx: Reader,
  environmentId: number,
  definition: Definition,
): Promise<Problem[]> {
  const writes = await listWrites(tx, environmentId, definition);
  return writes.flatMap(({ action, place, collection: { kind, name } }) => {
    if (action.to === "person" || (kind !== "addressed" && kind !== "direct")) return [];
    const field = `${place}.to`;
    const what = `the collection ${name} is ${kind} and each of its records needs the person it is for`;
    const todo = `write "to": "person", or name a shared or private collection`;
    return [{ field, message: `\`${field}\` is missing, but ${what}: ${todo}.` }];
  });
}

/** One sentence each field that ends the event dead as the collection stands. */
export async function warnOfWrites(
  tx: Reader,
  environmentId: number,
  definition: Definition,
): Promise<string[]> {
  const writes = await listWrites(tx, environmentId, definition);
  return writes.flatMap(({ action, place, collection }) => {
    const fields = listFields(collection);
    const given = isJsonObject(action.data) ? Object.keys(action.data) : [];
    const strange = given.filter((name) => !fields.has(name));
    const missing = [...fields].filter(([name, { required }]) => required && !given.includes(name));
    return [
      ...strange.map((name) => {
        const field = joinField(`${place}.data`, name);
        return `\`${field}\` is not a field of the collection ${collection.name}: remove it or add the field to the collection, or every event ends dead.`;
      }),
      ...missing.map(
        ([name]) =>
          `\`${place}.data\` leaves out ${name}, which the collection ${collection.name} requires: fill it, or every event ends dead.`,
      ),
    ];
  });
}

async function listWrites(tx: Reader, environmentId: number, definition: Definition): Promise<Write[]> {
  const writes: Write[] = [];
  for (const [index, action] of definition.actions.entries()) {
    if (action.type !== "write_record" || typeof action.collection !== "string") continue;
    const collection = await findCollection(tx, environmentId, action.collection);
    if (collection !== null) writes.push({ action, place: `actions.${index}`, collection });
  }
  return writes;
}
