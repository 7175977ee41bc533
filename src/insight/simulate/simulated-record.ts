/** Simulates a record change: writes the given or an example record with the same function as the API. */

import type { Json } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { makeChangePayload } from "../../engine/change-capture/change.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import { type DataChangeTrigger, matchesWhere } from "../../rules/trigger/data-change.ts";
import { findPerson, findPersonByEmail } from "../../shop/people/person.ts";
import { type CollectionRow, requireCollection } from "../../shop/records/collection.ts";
import { viewRecord, writeRecordIn } from "../../shop/records/record.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { makeSampleRecord } from "./sample.ts";
import { type SimulateInput, type Steps, writeEvent } from "./step.ts";

export async function writeChange(
  tx: Writer,
  relay: LiveRelay,
  { collection: name, on, where }: DataChangeTrigger,
  input: SimulateInput,
  steps: Steps,
  nowMs: number,
): Promise<string> {
  const { environmentId } = relay;
  const collection = await requireCollection(tx, environmentId, name);
  const data = input.record === undefined ? makeSampleRecord(collection, where) : (input.record as Json);
  const people = placePerson(collection, await requirePersonRef(tx, environmentId, input.person ?? null));
  const isExample = input.record === undefined;
  const record = await writeExample(isExample, name, async () =>
    viewRecord(await writeRecordIn(tx, collection, { environmentId, data, ...people, by: "explain", nowMs })),
  );
  const change = input.change ?? on[0] ?? "created";
  if (!on.includes(change))
    steps.stop(
      "where",
      "ignore",
      `A record that is ${change} is not among what the relay watches: ${on.join(", ")}.`,
    );
  else if (matchesWhere(where, record.data))
    steps.ok("where", `The record matches${where === undefined ? "" : " where"}.`, { ...where });
  else steps.stop("where", "ignore", "The record does not match where, so no event is made.", { ...where });
  const payload = makeChangePayload(record, change === "created" ? null : record);
  return await writeEvent(tx, relay, payload, nowMs);
}

/** Writes a record. A refused example is reported as `invalid_input`, because the caller gave no data and `where` cannot be satisfied. */
export async function writeExample<Made>(
  isExample: boolean,
  collection: string,
  write: () => Promise<Made>,
): Promise<Made> {
  try {
    return await write();
  } catch (error) {
    if (!isExample || !(error instanceof Refusal) || error.code !== "data_invalid") throw error;
    throw new Refusal(
      "invalid_input",
      `An example cannot be created, because no record of ${collection} can match the trigger's where: correct where (relay validate shows its mistakes), or give a record.`,
    );
  }
}

/** Returns the owner and the recipient that a record of this collection needs. Throws `invalid_input` where the person is missing. */
export function placePerson(
  { kind, name }: Pick<CollectionRow, "kind" | "name">,
  personId: string | null,
): { ownerId: string | null; recipientId: string | null } {
  if (personId === null && (kind === "addressed" || kind === "direct"))
    throw new Refusal(
      "invalid_input",
      `person is missing, and every record of ${name} needs a person: give the id or address of a person of this environment (relay send: --person).`,
    );
  if (kind === "addressed") return { ownerId: null, recipientId: personId };
  return kind === "direct"
    ? { ownerId: personId, recipientId: personId }
    : { ownerId: personId, recipientId: null };
}

/** Finds the id of the person with this id or address; null where none is given. Throws `invalid_input` for an unknown person. */
export async function requirePersonRef(
  tx: Reader,
  environmentId: number,
  named: string | null,
): Promise<string | null> {
  if (named === null) return null;
  const found =
    (await findPerson(tx, environmentId, named)) ?? (await findPersonByEmail(tx, environmentId, named));
  if (found !== null) return found.id;
  throw new Refusal(
    "invalid_input",
    "person does not exist in this environment: give the id or address of a person of this environment.",
  );
}
