/**
 * The plain-text law: text is valid Unicode without control characters other than newline and tab, stored and shown as text, never
 * as markup. It decides what passes; it never changes what passed. Source: decisions, section 5.
 */

/** C0 without tab and newline, DEL, C1 (Unicode category Cc). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the law is about exactly these.
const FORBIDDEN_CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above, newline and tab included.
const CONTROL_RUN = /[\u0000-\u001f\u007f-\u009f]+/g;

/** Why `text` breaks the plain-text law, completing "`title` …", or null when it keeps it. */
export function breaksPlainText(text: string): string | null {
  if (!text.isWellFormed()) return "is not valid Unicode (it holds half of a surrogate pair)";
  const found = FORBIDDEN_CONTROL.exec(text);
  if (found === null) return null;
  const code = text.charCodeAt(found.index).toString(16).toUpperCase().padStart(4, "0");
  return `holds the control character U+${code}, where only newline and tab are allowed`;
}

/** Why `text` may not stand on one line: the plain-text law, and no newline or tab either. */
export function breaksOneLine(text: string): string | null {
  return breaksPlainText(text) ?? (/[\n\t]/.test(text) ? "holds a newline or a tab" : null);
}

/**
 * One line of at most `maxChars` Unicode characters from any text: control characters become a space, half surrogates U+FFFD, outer
 * white space goes, and the cut never falls inside a character as people see it (UAX #29 grapheme cluster).
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

/** Unicode characters (code points) of a text: what a limit "in characters" counts. */
export function countChars(text: string): number {
  let count = text.length;
  for (let at = 1; at < text.length; at++) {
    // The second half of a pair counts with the first.
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800)
      count -= 1;
  }
  return count;
}
