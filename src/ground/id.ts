/** Ids that sort by when they were made, and tokens that nobody guesses. */

export type IdPrefix =
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

/** When an id was made, milliseconds since the epoch. */
export function idTime(id: string): number {
  const at = id.indexOf("_") + 1;
  return Number.parseInt(id.slice(at, at + 12), 16);
}

/** Whether `text` has the shape of an id with this prefix. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9a-f]{32}$/.test(text.slice(prefix.length + 1));
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/** The largest multiple of 62 below 256; a byte from there on would favour the first letters. */
const FAIR_BYTES = LETTERS.length * Math.floor(256 / LETTERS.length);

/** `length` letters and digits, each equally likely: 32 of them hold 190 bits. */
export function newToken(length: number): string {
  let token = "";
  while (token.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < FAIR_BYTES && token.length < length) token += LETTERS[byte % LETTERS.length];
    }
  }
  return token;
}

/** SHA-256 of the token, 32 bytes: what the store holds of it. */
export function hashToken(token: string): Uint8Array {
  return new Uint8Array(new Bun.CryptoHasher("sha256").update(token).digest());
}
