/**
 * What an event is about in one short line: its mapped `event_type` and its first mapped values, read from the stored payload. A page of a
 * list reads them after it is chosen, a bounded number of bytes at a step, since a payload may be large and nothing else of it is read.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, scalarText } from "../../base/json.ts";
import { PERSON_KEYS } from "../../base/shape.ts";
import { cutToLine } from "../../base/text.ts";
import { turnLoop } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";
import type { EventItem } from "./view.ts";

export const MAX_TYPE_CHARS = 100;
export const MAX_LINE_CHARS = 200;
const MAX_VALUE_CHARS = 60;
const BETWEEN = " · ";
/** Of payloads, read between two turns of the loop; one at least. */
const STEP_BYTES = 128 * 1024;

export type Preview = Pick<EventItem, "eventType" | "preview">;
const PERSON_NAMES: ReadonlySet<string> = new Set(PERSON_KEYS);
const NOTHING: Preview = { eventType: null, preview: null };

/** The items of a page with what each is about. */
export async function addPreviews<Item extends { person: unknown }>(
  store: Store,
  found: readonly { seq: number; bytes: number; item: Item }[],
): Promise<(Item & Preview)[]> {
  const items: (Item & Preview)[] = [];
  while (items.length < found.length) {
    let end = items.length;
    for (let bytes = 0; end < found.length && (bytes === 0 || bytes < STEP_BYTES); end++)
      bytes += found[end]?.bytes ?? 0;
    const some = found.slice(items.length, end);
    const rows = await store.read((tx) =>
      tx.all<{ seq: number; payload: string }>(
        "SELECT seq, payload FROM event WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each($seqs))",
        { seqs: JSON.stringify(some.map(({ seq }) => seq)) },
      ),
    );
    const texts = new Map(rows.map(({ seq, payload }) => [seq, payload]));
    for (const { seq, item } of some) {
      const text = texts.get(seq);
      items.push({ ...item, ...(text === undefined ? NOTHING : previewOf(text, item.person !== null)) });
    }
    if (items.length < found.length) await turnLoop();
  }
  return items;
}

/** Of a stored payload's text. `isFound`: its person stands beside it, so that what names it says nothing new. */
export function previewOf(text: string, isFound: boolean): Preview {
  const payload = parse(text);
  if (!isJsonObject(payload)) return NOTHING;
  const { mapped, tick, record } = payload;
  if (isJsonObject(mapped)) return ofMapped(mapped, isFound);
  if (isJsonObject(tick)) return { eventType: null, preview: say([["since", tick.periodStart]]) };
  if (isJsonObject(record)) {
    const data = isJsonObject(record.data) ? Object.entries(record.data) : [];
    return { eventType: null, preview: say([["collection", record.collection], ...data]) };
  }
  return NOTHING;
}

/** The sender's id of the event says least, so it stands last. */
function ofMapped({ event_type: type, event_id: id, ...mapped }: JsonObject, isFound: boolean): Preview {
  const word = scalarText(type);
  const values = Object.entries(mapped).filter(([name]) => !isFound || !PERSON_NAMES.has(name));
  return {
    eventType: word === null ? null : shorten(word, MAX_TYPE_CHARS) || null,
    preview: say([...values, ["event_id", id]]),
  };
}

/** Names and values as far as the line reaches, each value cut; lists, objects and nulls are left out. */
function say(values: readonly (readonly [name: string, value: Json | undefined])[]): string | null {
  let line = "";
  for (const [name, value] of values) {
    const text = scalarText(value);
    if (text === null || text === "") continue;
    const part = `${shorten(name, MAX_VALUE_CHARS)} ${shorten(text, MAX_VALUE_CHARS)}`;
    const longer = line === "" ? part : `${line}${BETWEEN}${part}`;
    if (longer.length > MAX_LINE_CHARS) break;
    line = longer;
  }
  return line === "" ? null : line;
}

/** A large text costs no more than a small one. */
function shorten(text: string, maxChars: number): string {
  const line = cutToLine(text.slice(0, maxChars * 4), maxChars * 4);
  return line.length <= maxChars ? line : `${cutToLine(line, maxChars - 1)}…`;
}

function parse(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
