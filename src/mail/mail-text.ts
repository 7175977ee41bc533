/**
 * Subject and text of a mail from rendered templates, which may hold anything a provider sent: one line and plain text, cut to their
 * limits, never markup.
 */
import { MAX_EMAIL_TEXT_CHARS, MAX_SUBJECT_CHARS } from "../ground/limit.ts";
import { cutToLine } from "../ground/plain-text.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: all control characters but newline and tab.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** One line of at most 300 characters: a newline becomes a space. */
export function makeSubject(rendered: string): string {
  return cutToLine(rendered, MAX_SUBJECT_CHARS);
}

/** At most 10,000 characters of plain text; newlines as `\n`, other control characters but tabs gone. */
export function makeText(rendered: string): string {
  const text = rendered.toWellFormed().replaceAll(/\r\n?/g, "\n").replaceAll(CONTROL, "");
  if (text.length <= MAX_EMAIL_TEXT_CHARS) return text;
  return Array.from(text).slice(0, MAX_EMAIL_TEXT_CHARS).join("");
}
