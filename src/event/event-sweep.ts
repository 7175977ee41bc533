/**
 * What an erasure does to stored events: one that is about the person is expunged; in any other that arrived before, the address is written
 * over, so that it goes on. It decides which is which, and how much of a table one step reads; it never walks by itself.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, scalarText } from "../ground/json.ts";
import type { OpenErasure } from "../people/person-erase.ts";
import type { SoughtText } from "../people/sought-text.ts";
import type { Reader, Writer } from "../store/port.ts";
import { expungeEvent, readExpunged } from "./expunge.ts";

/** Rows and bytes that one step of a sweep reads: some milliseconds. */
export const STEP_ROWS = 200;
const STEP_BYTES = 256 * 1024;

/** An open erasure with its text. */
export interface Open extends OpenErasure {
  text: SoughtText;
}

interface SweptEvent {
  seq: number;
  state: string;
  personId: string | null;
  payload: string;
  preview: string | null;
  warnings: string | null;
}

const EVENT_COLUMNS = "seq, state, person_id AS personId, payload, preview, warnings";

/** The event as it is now, or null. */
export function readSweptEvent(tx: Reader, seq: number): Promise<SweptEvent | null> {
  return tx.get<SweptEvent>(`SELECT ${EVENT_COLUMNS} FROM event WHERE seq = ?1`, seq);
}

/** The next events after `seq`, as many as one step may read. */
export async function readEvents(tx: Reader, environmentId: number, seq: number): Promise<SweptEvent[]> {
  const heads = await tx.all<{ key: number; bytes: number }>(
    `SELECT seq AS key, octet_length(payload) + coalesce(octet_length(preview), 0)
       + coalesce((SELECT sum(octet_length(results)) FROM run WHERE event_seq = event.seq), 0) AS bytes FROM event
     WHERE environment_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3`,
    environmentId,
    seq,
    STEP_ROWS,
  );
  const last = lastOfStep(heads);
  if (last === null) return [];
  const sql = `SELECT ${EVENT_COLUMNS} FROM event WHERE environment_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq`;
  return await tx.all<SweptEvent>(sql, environmentId, seq, last);
}

/** The last row that fits a step's bytes, the first always; null where there are none. */
export function lastOfStep<Key>(heads: readonly { key: Key; bytes: number }[]): Key | null {
  let bytes = 0;
  let last: Key | null = null;
  for (const head of heads) {
    bytes += head.bytes;
    if (last !== null && bytes > STEP_BYTES) break;
    last = head.key;
  }
  return last;
}

/** Expunges an event about one of them; of any other that arrived before, writes the address over. */
export async function sweepEvent(tx: Writer, event: SweptEvent, sought: readonly Open[]): Promise<void> {
  for (const one of sought) {
    const before = event.seq <= one.eventSeq;
    if (one.text.personId !== event.personId && !names(event, one.text, before)) continue;
    const payload = parseJson(event.payload);
    if (readExpunged(payload) === "person_erased") return;
    if (isAbout(event, payload, one.text, before)) return await expungeEvent(tx, event.seq, "person_erased");
    if (before) await redactEvent(tx, event, one.text);
  }
  if (event.seq <= Math.max(...sought.map(({ eventSeq }) => eventSeq)))
    await redactRuns(tx, event.seq, sought);
}

function names(event: SweptEvent, text: SoughtText, before: boolean): boolean {
  if (text.holdsId(event.payload)) return true;
  const texts = [event.payload, event.preview, event.warnings];
  return before && texts.some((one) => one !== null && text.holdsAddress(one));
}

/** Whether the event's person, or who its payload names where it never ran, is the one that is sought. */
function isAbout({ personId }: SweptEvent, payload: Json, text: SoughtText, before: boolean): boolean {
  if (personId !== null) return personId === text.personId;
  if (!isJsonObject(payload)) return false;
  const { mapped } = payload;
  if (isJsonObject(mapped)) {
    if (mapped.person_id === text.personId || text.isToken(mapped.person_token)) return true;
    return before && text.isAddress(mapped.person_email);
  }
  const record = isJsonObject(payload.record) ? payload.record : payload.previous;
  return isJsonObject(record ?? null) && personOf(record as JsonObject) === text.personId;
}

function personOf(record: JsonObject): string | null {
  return scalarText(record.owner) ?? scalarText(record.recipient);
}

async function redactEvent(tx: Writer, event: SweptEvent, text: SoughtText): Promise<void> {
  const redact = (stored: string | null) => (stored === null ? null : text.redactStored(stored));
  event.payload = redact(event.payload) ?? "";
  event.preview = redact(event.preview);
  event.warnings = redact(event.warnings);
  await tx.run(
    "UPDATE event SET payload = ?2, preview = ?3, warnings = ?4 WHERE seq = ?1",
    event.seq,
    event.payload,
    event.preview,
    event.warnings,
  );
}

/** What the runs of others' events quote of them. */
async function redactRuns(tx: Writer, eventSeq: number, sought: readonly Open[]): Promise<void> {
  const sql =
    "SELECT number AS key, results FROM run WHERE event_seq = ?1 UNION ALL SELECT key, result FROM effect WHERE event_seq = ?1 AND result IS NOT NULL";
  for (const { key, results } of await tx.all<{ key: number | string; results: string }>(sql, eventSeq)) {
    let redacted = results;
    for (const { text, eventSeq: until } of sought) {
      if (eventSeq <= until && text.holdsAddress(redacted)) redacted = text.redactStored(redacted);
    }
    if (redacted === results) continue;
    const update =
      typeof key === "number"
        ? "UPDATE run SET results = ?3 WHERE event_seq = ?1 AND number = ?2"
        : "UPDATE effect SET result = ?3 WHERE event_seq = ?1 AND key = ?2";
    await tx.run(update, eventSeq, key, redacted);
  }
}
