/**
 * Untrusted text that cannot deceive: control and direction characters, invisible letters and stacked marks appear as
 * escapes. A long text is cut until the user expands it.
 */
import { useState } from "preact/hooks";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { findDeceptive, listBeyondAscii } from "../base/look-alike.ts";
import { escapeOf, hexOf, TRICKY } from "../base/tricky.ts";

const CUT_CHARS = 1_000;

/** Returns the text with its deceptive characters as highlighted escapes. */
export function escapeTricky(text: string): View[] {
  const parts: View[] = [];
  let from = 0;
  for (const match of text.matchAll(TRICKY)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(html`<span class="escaped" title=${nameOf(match[0])}>${escapeOf(match[0])}</span>`);
    from = match.index + match[0].length;
  }
  parts.push(text.slice(from));
  return parts;
}

/**
 * Returns the text from `from` to `to` with everything deceptive escaped: also letters that imitate others and blanks
 * other than the space. `isExact` escapes all that is not ASCII. Use it for text that a person approves.
 */
export function revealText(
  text: string,
  { from = 0, to = text.length, isExact = false }: { from?: number; to?: number; isExact?: boolean } = {},
): View[] {
  const parts: View[] = [];
  let at = from;
  for (const one of isExact ? listBeyondAscii(text) : findDeceptive(text)) {
    if (one.at < at || one.at >= to) continue;
    if (one.at > at) parts.push(text.slice(at, one.at));
    parts.push(html`<span class="escaped" title=${one.why}>${escapeOf(one.text)}</span>`);
    at = one.at + one.text.length;
  }
  if (at < to) parts.push(text.slice(at, to));
  return parts;
}

/** Adds break opportunities after dots and similar characters, so that a long name without blanks breaks between its words. */
export function breakable(text: string): View[] {
  return escapeTricky(text).flatMap((part): View[] =>
    typeof part === "string" ? part.split(BEHIND_A_DOT).flatMap(withBreak) : [part],
  );
}
const BEHIND_A_DOT = /(?<=[\p{L}\p{N}][._:/])(?=[\p{L}\p{N}])/u;
const withBreak = (piece: string, at: number): View[] => (at === 0 ? [piece] : [html`<wbr />`, piece]);

function nameOf(characters: string): string {
  return `U+${hexOf(characters).toUpperCase().padStart(4, "0")}, which can hide or reverse text`;
}

/** Shows untrusted text, cut at `limit` characters. `quoted` adds JSON's quotes and escapes. */
export function SafeText({
  text,
  limit = CUT_CHARS,
  quoted = false,
  breaks = false,
}: {
  text: string;
  limit?: number;
  quoted?: boolean;
  /** Allows breaks as in a long name. */
  breaks?: boolean;
}): View {
  const [all, setAll] = useState(false);
  const isCut = !all && text.length > limit;
  const shown = isCut ? text.slice(0, limit) : text;
  const body = (breaks ? breakable : escapeTricky)(quoted ? JSON.stringify(shown).slice(1, -1) : shown);
  return html`<bdi class="safe">${quoted && '"'}${body}${isCut && "…"}${quoted && '"'}</bdi>${
    isCut &&
    html` <button type="button" class="link" onClick=${() => setAll(true)}>Show all ${formatNumber(text.length)} characters</button>`
  }`;
}
