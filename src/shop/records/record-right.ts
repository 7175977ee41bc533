/**
 * Decides who owns a record and who may read or change it, by the kind of its collection, and lists the records that a person may read with
 * SQL that says the same. The app itself (a secret key, the dashboard, a relay, a receipt) always may. record.ts checks the address.
 *
 * | kind      | owner                                   | recipient | read by                 | written by a person |
 * |-----------|-----------------------------------------|-----------|-------------------------|---------------------|
 * | shared    | none, or whom the app names             | optional  | anyone signed in        | never               |
 * | private   | a person; none: the app's own           | optional  | owner, recipient        | the owner           |
 * | addressed | none: app-owned                         | required  | recipient               | never               |
 * | direct    | a person; none: from the app            | required  | owner, recipient        | the owner           |
 */
import { writeJson } from "../../base/json.ts";
import { makeCursor, makePage, type Page, type PageRequest, readCursor, readSeq } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { equals, type Walk, walkPage } from "../../store/index-scan.ts";
import type { Reader } from "../../store/port.ts";
import type { CollectionRow } from "./collection.ts";
import type { CollectionKind } from "./collection-definition.ts";
import { type Address, RECORD, type RecordRow, type RecordView, viewRecord } from "./record.ts";

export function mayRead(kind: CollectionKind, address: Address, personId: string): boolean {
  return kind === "shared" || address.ownerId === personId || address.recipientId === personId;
}

export function mayWrite(kind: CollectionKind, address: Address, personId: string): boolean {
  return (kind === "private" || kind === "direct") && address.ownerId === personId;
}

/** Returns the address of a record that a person writes: the person is its owner. Throws `forbidden` if only the app writes there. */
export function addressByPerson(kind: CollectionKind, personId: string, recipientId: string | null): Address {
  const address = { ownerId: personId, recipientId };
  if (mayWrite(kind, address, personId) && (kind === "direct" || recipientId === null)) return address;
  throw new Refusal(
    "forbidden",
    kind === "private"
      ? "A record of a private collection is only for its owner: leave `to` out."
      : `Records of ${kind === "addressed" ? "an addressed" : "a shared"} collection are written by the app, not by a signed-in person.`,
  );
}

interface RecordFilter {
  /** Selects only records that this person owns. */
  owner?: string | undefined;
  /** Selects only records addressed to this person. */
  to?: string | undefined;
  /** Selects records by text anywhere in the data, ignoring ASCII case. */
  q?: string | undefined;
}

/** Lists the records of the collection as the app sees them. */
export async function listRecords<Item>(
  tx: Reader,
  environmentId: number,
  collection: CollectionRow,
  request: PageRequest,
  toItem: (row: RecordRow) => Item,
  filter: RecordFilter = {},
): Promise<Page<Item>> {
  const walk: Walk = {
    ...walkOf(environmentId, collection),
    index: indexOf(filter),
    led: [
      ...inCollection(environmentId, collection),
      equals("owner_id", filter.owner),
      filter.owner === undefined ? equals("recipient_id", filter.to) : undefined,
    ],
    fits: [
      filter.owner === undefined ? undefined : equals("recipient_id", filter.to),
      filter.q === undefined
        ? undefined
        : { sql: "instr(lower(data), lower(?)) > 0", values: [writeJson(filter.q).slice(1, -1)] },
    ],
  };
  return await walkPage(tx, RECORD, request, walk, toItem);
}

/** Lists the records of the collection that a signed-in person may read. */
export async function listRecordsFor(
  tx: Reader,
  environmentId: number,
  collection: CollectionRow,
  personId: string,
  request: PageRequest,
): Promise<Page<RecordView>> {
  if (collection.kind === "shared") return listRecords(tx, environmentId, collection, request, viewRecord);
  const walk = walkOf(environmentId, collection);
  const rowsOf = (column: "owner_id" | "recipient_id") =>
    walkPage(tx, RECORD, request, walkOfPerson(walk, column, personId), (row) => row);
  // Two lists in the same order, each through its own index. Both are complete only down to the nearer end.
  const pages = [await rowsOf("owner_id"), await rowsOf("recipient_id")];
  const floor = Math.max(...pages.map(({ next }) => (next === null ? 0 : (readSeq(readCursor(next)) ?? 0))));
  const found = new Map(pages.flatMap(({ items }) => items).map((row) => [row.seq, row]));
  const rows = [...found.values()]
    .filter(({ seq }) => seq >= floor)
    .sort((left, right) => right.seq - left.seq);
  const page = makePage(rows, request, ({ seq }) => seq, viewRecord);
  return page.next === null && floor > 0 ? { items: page.items, next: makeCursor(String(floor)) } : page;
}

function walkOf(environmentId: number, collection: CollectionRow): Walk {
  const led = inCollection(environmentId, collection);
  // The answer contains the complete data, so its size counts.
  return { index: "record_by_collection", key: "seq", led, cost: "octet_length(data)" };
}

function walkOfPerson(walk: Walk, column: "owner_id" | "recipient_id", personId: string): Walk {
  const index = column === "owner_id" ? OWNER_INDEX : RECIPIENT_INDEX;
  return { ...walk, index, led: [...walk.led, equals(column, personId)] };
}

function inCollection(environmentId: number, collection: CollectionRow) {
  return [equals("environment_id", environmentId), equals("collection", collection.name)];
}

const OWNER_INDEX = "record_by_collection_owner";
const RECIPIENT_INDEX = "record_by_collection_recipient";

function indexOf({ owner, to }: RecordFilter): string {
  if (owner !== undefined) return OWNER_INDEX;
  return to === undefined ? "record_by_collection" : RECIPIENT_INDEX;
}
