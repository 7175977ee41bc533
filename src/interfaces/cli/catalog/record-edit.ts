/**
 * Sets and deletes records (`relay records set`, `relay records delete`), as the dashboard's Records does. On a data directory, the audit
 * names only the fields that changed, as for an owner's edit.
 */

import { type JsonObject, writeJson } from "../../../base/json.ts";
import { cutToLine, plain } from "../../../base/text.ts";
import type { RecordItem } from "../../../shop/records/record.ts";
import type { Api } from "../api/api.ts";
import { withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command, Input } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { findPerson } from "../people/people.ts";
import { requireSame, requireYes } from "../terminal/confirm.ts";
import { readJsonObject } from "../terminal/read-json.ts";
import { COLLECTION, findRecordPath, RECORD_ID, recordsPath } from "./records.ts";

type People = Partial<Record<"owner" | "to", string>>;
const HEARD = "Relays with a data_change trigger on this collection get the change.";

export const recordsSet: Command = {
  words: ["records", "set"],
  summary: "write a new record, or replace one with --id",
  details:
    "Without --id, each run creates a new record. With --id, the JSON replaces all data of the record; owner and recipient stay unless you give them. Without the JSON argument, the command reads standard input. Relays that watch the collection run.",
  arguments: [
    COLLECTION,
    { name: "json", help: "an object with the fields of the collection", optional: true },
  ],
  options: [
    { name: "id", value: "<record id>", help: "the id (or its ending) of the record to replace" },
    {
      name: "owner",
      value: "<address or id>",
      help: "the owner of the record, if the collection's kind needs one",
    },
    {
      name: "to",
      value: "<address or id>",
      help: "the recipient of the record, if the collection's kind needs one",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: [
    `relay records set orders '{"order":"A-7"}'`,
    "relay records set orders --id 7c44d0b1 < order.json",
  ],
  async run(input, io) {
    const name = input.first();
    const data = readJsonObject(input.positionals[1] ?? (await io.readInput()));
    const replaced = input.text("id");
    const record = await withApi<RecordItem>("write", input, io, async (api) => {
      const people = await readPeople(input, async (who) => (await findPerson(api, who)).id);
      return await writeRecord(api, { name, data, replaced, people });
    });
    if (input.on("json")) io.print(writeJson({ record }, 2));
    io.inform(
      replaced === null
        ? `The record ${record.id} is written to ${name}. ${HEARD}`
        : `The record ${record.id} of ${name} has the new data. ${HEARD}`,
    );
  },
};

interface Setting {
  name: string;
  data: JsonObject;
  replaced: string | null;
  people: People;
}

async function writeRecord(api: Api, { name, data, replaced, people }: Setting): Promise<RecordItem> {
  const sent = { data, ...people };
  type Answer = { record: RecordItem };
  if (replaced === null) return (await api.request<Answer>("POST", recordsPath(name), sent)).record;
  const path = await findRecordPath(api, name, replaced);
  return (await api.request<Answer>("PUT", path, sent)).record;
}

async function readPeople(input: Input, find: (who: string) => Promise<string>): Promise<People> {
  const people: People = {};
  for (const field of ["owner", "to"] as const) {
    const who = input.text(field);
    if (who !== null) people[field] = await find(who);
  }
  return people;
}

export const recordsDelete: Command = {
  words: ["records", "delete"],
  summary: "permanently delete a record",
  details: "Its files stay: delete them with relay files delete. Relays that watch the collection run.",
  arguments: [COLLECTION, RECORD_ID],
  options: [
    {
      name: "confirm",
      value: "<record id>",
      help: "the record id again: deletes without a question",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay records delete orders 7c44d0b1 --confirm 7c44d0b1"],
  async run(input, io) {
    const [name = "", text = ""] = input.positionals;
    requireSame(input, "record", text);
    const deleted = await withApi<string>("write", input, io, async (api) => {
      const path = await findRecordPath(api, name, text);
      const { record } = await api.request<{ record: RecordItem }>("GET", path);
      await askFirst(input, io, record);
      await api.command("DELETE", path);
      return record.id;
    });
    if (input.on("json")) io.print(writeJson({ deleted }, 2));
    io.inform(`The record ${deleted} of ${name} is deleted. ${HEARD}`);
  },
};

/** The most characters of a record's data that identify it in the question. */
const MAX_SHOWN_CHARS = 300;

async function askFirst(input: Input, io: Io, { id, data }: RecordItem): Promise<void> {
  if (input.given("confirm")) return;
  const [name, text] = input.positionals;
  io.inform(`The data of ${id}: ${cutToLine(plain(writeJson(data)), MAX_SHOWN_CHARS)}`);
  await requireYes(io, {
    question: `Permanently delete this record of ${name}?`,
    undone: "Nothing was deleted",
    line: `relay records delete ${name} ${text} --confirm ${text}`,
  });
}
