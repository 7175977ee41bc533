/** `relay records set` and `relay records delete`, as the dashboard's Records does it; here audited as an owner's edit is, by field names alone. */

import { type JsonObject, writeJson } from "../../base/json.ts";
import { cutToLine, plain } from "../../base/text.ts";
import { COMMAND_LINE, formatActor } from "../../platform/account/api-key.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { requirePersonNamed } from "../../shop/people/person.ts";
import {
  deleteRecord,
  type RecordItem,
  requireRecord,
  updateRecord,
  viewRecordItem,
  writeRecord,
} from "../../shop/records/record.ts";
import { auditRecord } from "../../shop/records/record-audit.ts";
import { appStorer, withinStorage } from "../../shop/records/record-budget.ts";
import type { Store } from "../../store/port.ts";
import type { Command, Input } from "./command.ts";
import { requireSame, requireYes } from "./confirm.ts";
import { JSON_OUTPUT, readRunningLimits } from "./data-directory.ts";
import type { World } from "./io.ts";
import { findPersonThere, wholePersonId } from "./people.ts";
import { readJsonObject } from "./read-json.ts";
import { COLLECTION, RECORD_ID, recordIdHere, recordPathThere, recordsPath } from "./records.ts";
import { askPlace, type Remote, tellPlace } from "./remote.ts";
import { readDataDir, readLimits } from "./service-option.ts";
import { ANYWHERE, atPlace } from "./target.ts";

type People = Partial<Record<"owner" | "to", string>>;
const HEARD = "Relays that watch the collection hear of it.";

export const recordsSet: Command = {
  words: ["records", "set"],
  summary: "write a record, or with --id another's data",
  details:
    "Without --id each time it is written makes one more. With it the data is replaced whole, and owner and recipient stay unless given. Without the JSON it is read from standard input. Relays that watch the collection hear of it.",
  arguments: [COLLECTION, { name: "json", help: "an object with the collection's fields", optional: true }],
  options: [
    { name: "id", value: "<record id>", help: "the record that is replaced, or its id's ending" },
    {
      name: "owner",
      value: "<address or id>",
      help: "whose it is, where the collection's kind asks for one",
    },
    { name: "to", value: "<address or id>", help: "to whom, where the collection's kind asks for one" },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: [
    `relay records set orders '{"order":"A-7"}'`,
    "relay records set orders --id 7c44d0b1 < order.json",
  ],
  async run(input, world) {
    const name = input.first();
    const data = readJsonObject(input.positionals[1] ?? (await world.readInput()));
    const replaced = input.text("id");
    const record = await atPlace<RecordItem>(input, world, {
      writes: true,
      here: async (store, environment) => {
        const people = await readPeople(input, (who) => personIdHere(store, environment.id, who));
        return await setHere(store, environment, input, world, { name, data, replaced, people });
      },
      there: async (remote) => {
        const people = await readPeople(input, async (who) => (await findPersonThere(remote, who)).id);
        return await setThere(remote, { name, data, replaced, people });
      },
    });
    if (input.on("json")) world.say(writeJson({ record }, 2));
    world.tell(
      replaced === null
        ? `The record ${record.id} is written to ${name}. ${HEARD}`
        : `The record ${record.id} of ${name} says that now. ${HEARD}`,
    );
  },
};

interface Setting {
  name: string;
  data: JsonObject;
  replaced: string | null;
  people: People;
}

async function setHere(
  store: Store,
  { id: environmentId }: Environment,
  input: Input,
  world: World,
  { name, data, replaced, people }: Setting,
): Promise<RecordItem> {
  const change = { environmentId, by: formatActor(COMMAND_LINE), nowMs: world.clock.now() };
  const limits = { ...readLimits(world.env), ...readRunningLimits(readDataDir(input, world)) };
  const recordId = replaced === null ? null : await recordIdHere(store, environmentId, name, replaced);
  return await store.write("dashboard", async (tx) => {
    const row = await withinStorage(tx, appStorer(environmentId), limits, async () => {
      const { owner, to } = people;
      if (recordId === null) {
        const address = { ownerId: owner ?? null, recipientId: to ?? null };
        return await writeRecord(tx, { ...change, ...address, collection: name, data });
      }
      const address = { ownerId: owner, recipientId: to };
      return (await updateRecord(tx, { ...change, ...address, collection: name, recordId, data })).after;
    });
    await auditRecord(tx, change, recordId === null ? "record.created" : "record.changed", row);
    return viewRecordItem(row);
  });
}

async function setThere(remote: Remote, { name, data, replaced, people }: Setting): Promise<RecordItem> {
  const sent = { data, ...people };
  type Answer = { record: RecordItem };
  if (replaced === null) return (await askPlace<Answer>(remote, "POST", recordsPath(name), sent)).record;
  const path = await recordPathThere(remote, name, replaced);
  return (await askPlace<Answer>(remote, "PUT", path, sent)).record;
}

async function readPeople(input: Input, find: (who: string) => Promise<string>): Promise<People> {
  const people: People = {};
  for (const field of ["owner", "to"] as const) {
    const who = input.text(field);
    if (who !== null) people[field] = await find(who);
  }
  return people;
}

async function personIdHere(store: Store, environmentId: number, who: string): Promise<string> {
  const whole = await wholePersonId(store, environmentId, who);
  return (await store.read((tx) => requirePersonNamed(tx, environmentId, whole))).id;
}

export const recordsDelete: Command = {
  words: ["records", "delete"],
  summary: "delete a record, for good",
  details: "Its files stay until they are deleted themselves. Relays that watch the collection hear of it.",
  arguments: [COLLECTION, RECORD_ID],
  options: [
    {
      name: "confirm",
      value: "<record id>",
      help: "the id once more, which deletes without asking; without it a terminal is asked",
    },
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay records delete orders 7c44d0b1 --confirm 7c44d0b1"],
  async run(input, world) {
    const [name = "", text = ""] = input.positionals;
    requireSame(input, "record", text);
    const deleted = await atPlace<string>(input, world, {
      writes: true,
      here: async (store, { id: environmentId }) => {
        const change = { environmentId, by: formatActor(COMMAND_LINE), nowMs: world.clock.now() };
        const recordId = await recordIdHere(store, environmentId, name, text);
        const row = await store.read((tx) => requireRecord(tx, environmentId, name, recordId));
        await askFirst(input, world, viewRecordItem(row));
        await store.write("dashboard", async (tx) => {
          const gone = await deleteRecord(tx, { environmentId, collection: name, recordId });
          await auditRecord(tx, change, "record.deleted", gone);
        });
        return recordId;
      },
      there: async (remote) => {
        const path = await recordPathThere(remote, name, text);
        const { record } = await askPlace<{ record: RecordItem }>(remote, "GET", path);
        await askFirst(input, world, record);
        await tellPlace(remote, "DELETE", path);
        return record.id;
      },
    });
    if (input.on("json")) world.say(writeJson({ deleted }, 2));
    world.tell(`The record ${deleted} of ${name} is deleted. ${HEARD}`);
  },
};

/** Of its data, as much as says which one it is. */
const MAX_TOLD_CHARS = 300;

async function askFirst(input: Input, world: World, { id, data }: RecordItem): Promise<void> {
  if (input.given("confirm")) return;
  const [name, text] = input.positionals;
  world.tell(`${id} says ${cutToLine(plain(writeJson(data)), MAX_TOLD_CHARS)}`);
  await requireYes(world, {
    question: `Delete this record of ${name}, for good?`,
    undone: "Nothing was deleted",
    line: `relay records delete ${name} ${text} --confirm ${text}`,
  });
}
