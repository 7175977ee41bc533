/** Lists and shows a collection's records (`relay records …`), as the dashboard's Records does. Relays that watch the collection get each change. */
import { writeJson } from "../../../base/json.ts";
import type { RecordItem } from "../../../shop/records/record.ts";
import type { Api } from "../api/api.ts";
import { listItems, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import { openWebPage, WEB } from "../api/web-page.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { expandId } from "../terminal/id-suffix.ts";
import { LIMIT } from "../terminal/listing.ts";
import { printList, printSheet } from "../terminal/terminal.ts";

export const COLLECTION = { name: "collection", help: "the name, as relay catalog list collection shows it" };
export const RECORD_ID = { name: "record id", help: "the id (or its ending) as relay records list shows it" };

export function recordsPath(collection: string): string {
  return `/collections/${encodeURIComponent(collection)}/records`;
}

export const recordsList: Command = {
  words: ["records", "list"],
  summary: "list a collection's records, newest first",
  arguments: [COLLECTION],
  options: [
    { name: "owner", value: "<address, id or token>", help: "only records of this owner" },
    { name: "to", value: "<address, id or token>", help: "only records to this recipient" },
    { name: "text", value: "<text>", help: "only records with this text in their data" },
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay records list orders --text lamp"],
  async run(input, io) {
    const name = input.first();
    const [owner, to, q] = ["owner", "to", "text"].map((one) => input.text(one) ?? undefined);
    const records = await listItems<RecordItem>(input, io, recordsPath(name), { owner, to, q });
    await printList(input, io, records, {
      columns: [
        { heading: "CHANGED", value: (one) => one.updatedAt },
        { heading: "ID", value: (one) => one.id },
        { heading: "BY", value: (one) => one.by },
        { heading: "OWNER", value: (one) => one.owner ?? "" },
        { heading: "TO", value: (one) => one.recipient ?? "" },
        { heading: "DATA", value: (one) => writeJson(one.data), raw: true },
      ],
      none: "No records match.",
    });
  },
};

export const recordsShow: Command = {
  words: ["records", "show"],
  summary: "show one record: data, owner, recipient, writer",
  arguments: [COLLECTION, RECORD_ID],
  options: [WEB, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay records show orders 7c44d0b1"],
  async run(input, io) {
    const [name = "", text = ""] = input.positionals;
    const read = (api: Api): Promise<RecordItem> => readRecord(api, name, text);
    if (input.on("web"))
      return await openWebPage(input, io, async (api) => ({
        path: ["records", name, (await read(api)).id],
      }));
    const record = await withApi("read", input, io, read);
    if (input.on("json")) return io.print(writeJson({ record }, 2));
    const { id, owner, recipient, by, eventId, createdAt, updatedAt } = record;
    const data = writeJson(record.data, 2);
    const aside = io.screen.columns !== null;
    const lines = [
      `${name}  ${id}`,
      `  written   ${createdAt}${updatedAt === createdAt ? "" : `, changed ${updatedAt}`}, last by ${by}${eventId === null ? "" : ` (${eventId})`}`,
      ...(owner === null ? [] : [`  owner     ${owner}`]),
      ...(recipient === null ? [] : [`  to        ${recipient}`]),
      ...(aside ? [] : data.split("\n")),
    ];
    await printSheet(input, io, lines, aside ? data : null);
  },
};

/** Returns the path of a record. `text` is its id or the ending of its id. */
export async function findRecordPath(api: Api, name: string, text: string): Promise<string> {
  const path = recordsPath(name);
  const id = await expandId(text, "records", (most, cursor) => api.page<RecordItem>(path, {}, most, cursor));
  return `${path}/${encodeURIComponent(id)}`;
}

async function readRecord(api: Api, name: string, text: string): Promise<RecordItem> {
  const path = await findRecordPath(api, name, text);
  return (await api.request<{ record: RecordItem }>("GET", path)).record;
}
