/** Measuring and cutting text by its UTF-8 size, never inside a character. */

const encoder = new TextEncoder();

/** Bytes of the text in UTF-8. */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** Whether the text is at most `maxBytes` in UTF-8; a short one need not be measured. */
export function fitsUtf8(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes || utf8Bytes(text) <= maxBytes;
}

/** The longest beginning of `text` that fits `maxBytes` of UTF-8. */
export function cutUtf8(text: string, maxBytes: number): string {
  if (fitsUtf8(text, maxBytes)) return text;
  const { read } = encoder.encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}
