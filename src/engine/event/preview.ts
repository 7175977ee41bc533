/**
 * Makes a short line about an event: its mapped `event_type` and its first mapped values, from the stored payload. A page of a list reads the
 * payloads after its items are found, a bounded number of bytes at a step, because payloads can be large.
 */
import { isJsonObject, type Json, type JsonObject, parseJson, scalarText } from "../../base/json.ts";
import { PERSON_KEYS } from "../../base/shape.ts";
import { cutToLine } from "../../base/text.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Store } from "../../store/port.ts";

export const MAX_TYPE_CHARS = 100;
export const MAX_LINE_CHARS = 200;
const MAX_VALUE_CHARS = 60;
const SEPARATOR = " · ";
/** Bytes of payloads read between two turns of the event loop; at least one payload. */
const STEP_BYTES = 128 * 1024;

export interface Preview {
  eventType: string | null;
  preview: string | null;
}
const PERSON_NAMES: ReadonlySet<string> = new Set(PERSON_KEYS);
const EMPTY: Preview = { eventType: null, preview: null };

/** Adds a preview to each item of a page. */
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
      items.push({ ...item, ...(text === undefined ? EMPTY : previewOf(text, item.person !== null)) });
    }
    if (items.length < found.length) await yieldToEventLoop();
  }
  return items;
}

/** Makes a preview from a payload's text. `isFound`: the item shows its person, so the mapped person keys are left out. */
export function previewOf(text: string, isFound: boolean): Preview {
  const payload = parse(text);
  if (!isJsonObject(payload)) return EMPTY;
  const { mapped, tick, record } = payload;
  if (isJsonObject(mapped)) return previewMapped(mapped, isFound);
  if (isJsonObject(tick)) return { eventType: null, preview: formatLine([["since", tick.periodStart]]) };
  if (isJsonObject(record)) {
    const data = isJsonObject(record.data) ? Object.entries(record.data) : [];
    return { eventType: null, preview: formatLine([["collection", record.collection], ...data]) };
  }
  return EMPTY;
}

/** Returns the first 100 characters of the mapped event_type, or null. */
export function findEventType(payload: Json): string | null {
  const mapped = isJsonObject(payload) ? payload.mapped : undefined;
  return isJsonObject(mapped) ? previewMapped(mapped, false).eventType : null;
}

/** The sender's event id comes last, because it says least. */
function previewMapped({ event_type: type, event_id: id, ...mapped }: JsonObject, isFound: boolean): Preview {
  const word = scalarText(type);
  const values = Object.entries(mapped).filter(([name]) => !isFound || !PERSON_NAMES.has(name));
  return {
    eventType: word === null ? null : shorten(word, MAX_TYPE_CHARS) || null,
    preview: formatLine([...values, ["event_id", id]]),
  };
}

/** Joins names and shortened values up to the length of the line. Lists, objects and nulls are left out. */
function formatLine(values: readonly (readonly [name: string, value: Json | undefined])[]): string | null {
  let line = "";
  for (const [name, value] of values) {
    const text = scalarText(value);
    if (text === null || text === "") continue;
    const part = `${shorten(name, MAX_VALUE_CHARS)} ${shorten(text, MAX_VALUE_CHARS)}`;
    const longer = line === "" ? part : `${line}${SEPARATOR}${part}`;
    if (longer.length > MAX_LINE_CHARS) break;
    line = longer;
  }
  return line === "" ? null : line;
}

/** Cuts the text first, so that a large one costs no more than a small one. */
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
