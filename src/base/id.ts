/** Makes IDs that sort by their time, random tokens, and the hashes of tokens that the store holds. */

type IdPrefix =
  | "cap"
  | "cas"
  | "chn"
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
  | "lgn"
  | "fac"
  | "rpl"
  | "fil"
  | "nod";

/** Returns a new ID such as `evt_019a…`. Its time part is `nowMs`, in milliseconds since the epoch. */
export function newId(prefix: IdPrefix, nowMs: number): string {
  return `${prefix}_${Bun.randomUUIDv7("buffer", nowMs).toString("hex")}`;
}

/**
 * Returns the ID of a row that has a number and a time and therefore stores no ID: a UUIDv8 (RFC 9562) of both. It sorts like the IDs of `newId` and
 * never equals one of them.
 */
export function numberedId(prefix: IdPrefix, atMs: number, seq: number): string {
  if (atMs !== numberedAtMs) {
    numberedAtMs = atMs;
    numberedTime = `${atMs.toString(16).padStart(12, "0")}80008`;
  }
  const number = seq.toString(16);
  return `${prefix}_${numberedTime}${FIFTEEN_ZEROS.slice(number.length)}${number}`;
}

const FIFTEEN_ZEROS = "0".repeat(15);
/** The time of the last ID and its text. Many IDs are made within a millisecond. */
let numberedAtMs = Number.NaN;
let numberedTime = "";

/** Returns the time and the number of a `numberedId`, or null for any other text. */
export function readNumberedId(prefix: IdPrefix, id: string): { atMs: number; seq: number } | null {
  if (!isId(prefix, id)) return null;
  const hex = id.slice(prefix.length + 1);
  const [atMs, seq] = [Number.parseInt(hex.slice(0, 12), 16), Number.parseInt(hex.slice(17), 16)];
  return hex.slice(12, 17) === "80008" && Number.isSafeInteger(seq) ? { atMs, seq } : null;
}

/** Returns whether `text` has the form of an ID with this prefix. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9a-f]{32}$/.test(text.slice(prefix.length + 1));
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Returns `length` random letters, each equally likely. 32 letters and digits hold 190 bits. */
export function newToken(length: number, letters: string = LETTERS): string {
  // The largest multiple of the alphabet's length up to 256. Bytes from there on would favor the first letters.
  const fairBytes = letters.length * Math.floor(256 / letters.length);
  let token = "";
  while (token.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < fairBytes && token.length < length) token += letters[byte % letters.length];
    }
  }
  return token;
}

/** Returns the SHA-256 of the token, 32 bytes. The store holds only this hash. */
export function hashToken(token: string): Uint8Array {
  return new Uint8Array(new Bun.CryptoHasher("sha256").update(token).digest());
}

/** Returns the first 52 bits of a hash of at least 8 bytes, which a number holds exactly. */
export function numberOfHash(hash: Uint8Array): number {
  let number = 0;
  for (let at = 0; at < 6; at++) number = number * 256 + (hash[at] ?? 0);
  return number * 16 + ((hash[6] ?? 0) >>> 4);
}
