/**
 * What must hold before a record is written: its data by the fields, its files by the file law, its address by the kind, and the people
 * it newly names. It writes nothing.
 */
import { type Json, writeJson } from "../ground/json.ts";
import { type Problem, Refusal } from "../ground/refusal.ts";
import type { Reader } from "../store/port.ts";
import { type CollectionRow, listFields } from "./collection.ts";
import { readRecordData } from "./record-data.ts";
import { checkFiles } from "./record-file.ts";
import { type Address, checkAddress } from "./record-right.ts";

/** The data's text, or the refusal `data_invalid` with every problem of data, files and address. */
export async function requireData(
  tx: Reader,
  collection: CollectionRow,
  write: Address & { environmentId: number; data: Json; rendered?: boolean },
): Promise<string> {
  const fields = listFields(collection);
  const { data, problems } = readRecordData(fields, write.data, write.rendered === true);
  const all: Problem[] = [
    ...problems,
    ...(await checkFiles(tx, write.environmentId, fields, data)),
    ...checkAddress(collection.kind, write),
  ];
  if (all.length === 0) return writeJson(data);
  throw new Refusal("data_invalid", all.map((problem) => problem.message).join(" "), { problems: all });
}

/** The people a record newly names exist and are not suspended. */
export async function requirePeople(
  tx: Reader,
  environmentId: number,
  people: { owner: string | null; to: string | null },
): Promise<void> {
  for (const [field, personId] of Object.entries(people)) {
    if (personId === null) continue;
    const person = await tx.get<{ status: string }>(
      "SELECT status FROM person WHERE id = ?1 AND environment_id = ?2",
      personId,
      environmentId,
    );
    if (person === null || person.status === "erased") {
      throw new Refusal(
        "invalid_input",
        `\`${field}\` names no person of this environment: use a person's id.`,
      );
    }
    if (person.status === "suspended") {
      throw new Refusal(
        "person_suspended",
        `\`${field}\` names a suspended person: make the person active again first.`,
      );
    }
  }
}
