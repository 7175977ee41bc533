/**
 * Measures, cuts, checks and decodes text. Plain text follows a law (decisions, section 5): it is valid Unicode without control characters other than
 * newline and tab. It is stored and shown as text, never as markup. Hex, base64 and base64url are strict: only their own alphabet, hex in either
 * case, padding complete or absent, no stray bits in the last character. Unlike Node's decoders, these never guess an encoding or skip a character.
 * Source: RFC 4648; recipes, "Encodings and keys".
 */
const encoder = new TextEncoder();

/** Returns the number of bytes of the text in UTF-8. */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** Returns whether the text has at most `maxBytes` in UTF-8. A short text need not be measured. */
export function fitsUtf8(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes || utf8Bytes(text) <= maxBytes;
}

/** Returns the longest beginning of `text` that fits into `maxBytes` of UTF-8. */
export function cutUtf8(text: string, maxBytes: number): string {
  if (fitsUtf8(text, maxBytes)) return text;
  const { read } = encoder.encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

/** C0 without tab and newline, DEL, C1 (Unicode category Cc). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the law is about exactly these.
const FORBIDDEN_CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above, newline and tab included.
const CONTROL_RUN = /[\u0000-\u001f\u007f-\u009f]+/g;

/** Says why `text` breaks the plain-text law, to complete "`title` …". Returns null if it does not. */
export function breaksPlainText(text: string): string | null {
  if (!text.isWellFormed()) return "is not valid Unicode (it holds half of a surrogate pair)";
  const found = FORBIDDEN_CONTROL.exec(text);
  if (found === null) return null;
  const code = text.charCodeAt(found.index).toString(16).toUpperCase().padStart(4, "0");
  return `holds the control character U+${code}, where only newline and tab are allowed`;
}

/** Says why `text` cannot be on one line: it breaks the plain-text law, or has a newline or a tab. Returns null if it can. */
export function breaksOneLine(text: string): string | null {
  return breaksPlainText(text) ?? (/[\n\t]/.test(text) ? "holds a newline or a tab" : null);
}

/**
 * Makes one line of at most `maxChars` Unicode characters from any text. Control characters become spaces, half surrogate pairs become U+FFFD, and
 * outer white space is removed. The cut never splits a character as people see it (UAX #29 grapheme cluster).
 */
export function cutToLine(text: string, maxChars: number): string {
  const line = text.toWellFormed().replace(CONTROL_RUN, " ").trim();
  if (line.length <= maxChars) return line;
  let kept = "";
  let chars = 0;
  for (const { segment } of new Intl.Segmenter("en").segment(line)) {
    const size = Array.from(segment).length;
    if (chars + size > maxChars) break;
    kept += segment;
    chars += size;
  }
  return kept.trimEnd();
}

/** Makes one line as `cutToLine` does. A cut line ends with an ellipsis, so that a reader does not take it for the whole. */
export function shortenToLine(text: string, maxChars: number): string {
  const line = cutToLine(text, Number.POSITIVE_INFINITY);
  return cutToLine(line, maxChars) === line ? line : `${cutToLine(line, maxChars - 1)}…`;
}

/** Returns the text on one line and safe for a terminal, because an escape sequence from a payload must not reach it. */
export function plain(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/\p{C}/gu, "?");
}

/** Removes numbers and quotations from a sentence, so that two causes of one kind are equal. */
export function withoutDetails(sentence: string): string {
  return sentence.replace(/"[^"]*"|`[^`]*`/g, '""').replace(/\d+/g, "0");
}

/** Counts the Unicode characters (code points) of a text, as a limit "in characters" does. */
export function countChars(text: string): number {
  let count = text.length;
  for (let at = 1; at < text.length; at++) {
    // The second half of a pair counts with the first.
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800)
      count -= 1;
  }
  return count;
}

/** The longest name that is compared. A longer one is no typing mistake, and comparing it would take long. */
const MAX_COMPARED_CHARS = 64;

/** Returns the known name nearest to `given`, or null if none is near. At most a third of the letters, and at most three, may differ. */
export function findNearestName(given: string, known: readonly string[]): string | null {
  if (given.length === 0 || given.length > MAX_COMPARED_CHARS) return null;
  const plain = fold(given);
  let nearest: string | null = null;
  let least = Math.min(3, Math.max(1, Math.floor(given.length / 3))) + 1;
  for (const name of known) {
    const distance = countEdits(plain, fold(name), least);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

/** Ignores case and separators, so that `Person-Email` equals `person_email`. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ .]/g, "");
}

/** Counts the insertions, deletions, replacements and swaps of neighbors between two short texts (optimal string alignment). Stops at `limit`. */
function countEdits(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const now = [row];
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1];
      let edits = Math.min(
        at(last, column) + 1,
        at(now, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      if (
        row > 1 &&
        column > 1 &&
        left[row - 1] === right[column - 2] &&
        left[row - 2] === right[column - 1]
      ) {
        edits = Math.min(edits, at(beforeLast, column - 2) + 1);
      }
      now.push(edits);
    }
    // A swap continues from the row before last, so both rows must have reached `limit`.
    if (Math.min(...now) >= limit && Math.min(...last) >= limit) return limit;
    beforeLast = last;
    last = now;
  }
  return at(last, right.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}

export type Encoding = "hex" | "base64" | "base64url";

const ALPHABET: Readonly<Record<Encoding, RegExp>> = {
  hex: /^[0-9a-fA-F]*$/,
  base64: /^[A-Za-z0-9+/]*={0,2}$/,
  base64url: /^[A-Za-z0-9_-]*={0,2}$/,
};

/** Returns the most bytes that a text of this many characters, including padding, can encode. */
function longestDecodedBytes(chars: number, encoding: Encoding): number {
  return encoding === "hex" ? chars >>> 1 : Math.floor((chars * 3) / 4);
}

/**
 * Decodes into the beginning of `target`. Returns the number of bytes written, or -1 if the text is malformed or does not fit. After -1, the contents
 * of `target` mean nothing.
 */
export function decodeInto(text: string, encoding: Encoding, target: Buffer): number {
  if (encoding === "hex") return decodeHexInto(text, target);
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  if (padding > 0 && text.length % 4 !== 0) return -1;
  const bytes = Math.floor(((text.length - padding) * 3) / 4);
  if (bytes > target.length || !ALPHABET[encoding].test(text)) return -1;
  if (target.write(text, 0, bytes, encoding) !== bytes) return -1;
  const canonical = target.toString(encoding, 0, bytes);
  const bare = padding === 0 ? text : text.slice(0, -padding);
  return canonical.startsWith(bare) && canonical.length - bare.length <= 2 ? bytes : -1;
}

function decodeHexInto(text: string, target: Buffer): number {
  if (text.length % 2 !== 0 || text.length / 2 > target.length || !ALPHABET.hex.test(text)) return -1;
  return target.write(text, "hex");
}

/** Returns the bytes that a text encodes, or null if it is malformed. */
export function decodeText(text: string, encoding: Encoding): Buffer | null {
  const target = Buffer.alloc(longestDecodedBytes(text.length, encoding));
  const bytes = decodeInto(text, encoding, target);
  return bytes < 0 ? null : target.subarray(0, bytes);
}

/** Made for the first list, because loading the language's rules takes milliseconds of a short command. */
let conjunction: Intl.ListFormat | undefined;

/** Joins words as a sentence lists them: `a, b and c`. */
export function joinWords(words: readonly string[]): string {
  conjunction ??= new Intl.ListFormat("en-GB", { type: "conjunction" });
  return conjunction.format(words);
}

/** Formats a whole number with commas, such as `6,063`. The system's own formatter takes 2 ms at its first use, which a short command would notice. */
export function formatCount(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, ",");
}

/** Adds a period to a sentence that has none. */
export function endSentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** One email address without characters that have a meaning in a header or an SMTP line. */
export const PLAIN_ADDRESS = /^[^\s"(),:;<>@[\]\\\p{Cc}]+@[^\s"(),:;<>@[\]\\\p{Cc}]+$/u;
