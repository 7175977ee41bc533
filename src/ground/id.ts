/** Identifiers: a prefix that names the kind, and a UUIDv7 in lower-case hex (RFC 9562), so that ids sort by time. */

type IdPrefix =
  | "evt"
  | "rly"
  | "per"
  | "rec"
  | "grt"
  | "prc"
  | "sub"
  | "crd"
  | "aud"
  | "prb"
  | "alt"
  | "eml"
  | "key"
  | "apr"
  | "own"
  | "ses"
  | "fil";

/** A new id such as `evt_019a…`, its time part from `nowMs` (milliseconds since the epoch). */
export function newId(prefix: IdPrefix, nowMs: number): string {
  return `${prefix}_${Bun.randomUUIDv7("hex", nowMs).replaceAll("-", "")}`;
}

/** What every id made at `ms` or later sorts after, and every earlier one before. */
export function idFloor(prefix: IdPrefix, ms: number): string {
  return `${prefix}_${Math.max(0, ms).toString(16).padStart(12, "0")}`;
}

/** Whether `text` has the shape of an id with this prefix. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9a-f]{32}$/.test(text.slice(prefix.length + 1));
}
