/**
 * Strict hex, base64 and base64url: each in its own alphabet only, hex in either case, padding whole or absent, no stray bits in
 * the last character. It never guesses an encoding and never skips a character, which Node's own decoders do.
 * Source: RFC 4648; recipes, "Encodings and keys".
 */

export type Encoding = "hex" | "base64" | "base64url";

const ALPHABET: Readonly<Record<Encoding, RegExp>> = {
  hex: /^[0-9a-fA-F]*$/,
  base64: /^[A-Za-z0-9+/]*={0,2}$/,
  base64url: /^[A-Za-z0-9_-]*={0,2}$/,
};

/** Bytes that a text of this many characters, padding included, can stand for at most. */
function longestDecodedBytes(chars: number, encoding: Encoding): number {
  return encoding === "hex" ? chars >>> 1 : Math.floor((chars * 3) / 4);
}

/**
 * Decodes into the beginning of `target` and gives the number of bytes written; -1 where the text is not well formed or does
 * not fit. What `target` holds after a -1 means nothing.
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

/** The bytes a text stands for, or null where it is not well formed. */
export function decodeText(text: string, encoding: Encoding): Buffer | null {
  const target = Buffer.alloc(longestDecodedBytes(text.length, encoding));
  const bytes = decodeInto(text, encoding, target);
  return bytes < 0 ? null : target.subarray(0, bytes);
}
