/** Explanation of a problem, an alert or a failed event, with the parts in the order of `relay help <code>` and the error pages. */
import type { RecentChange } from "../../src/rules/relay/recent-change.ts";
import { html, type View } from "../base/html.ts";
import { ChangeRow } from "./recent-change.ts";
import { Sentence } from "./sentence.ts";

export function Explanation({
  what = null,
  why = null,
  todo = null,
  next = null,
  change = null,
  hints = [],
}: {
  what?: string | null;
  why?: string | null;
  todo?: string | null;
  next?: string | null;
  /** Change shortly before, which is shown first. */
  change?: RecentChange | null;
  /** Sentences to read first. */
  hints?: readonly string[];
}): View {
  const texts = { "What happened": what, Why: why, "What to do": todo, "What happens next": next };
  const parts = Object.entries(texts).flatMap(([label, text]) => (text === null ? [] : [{ label, text }]));
  return html`<dl class="explanation">${change !== null && html`<${ChangeRow} change=${change} />`}
    ${hints.map((hint) => html`<div key=${hint}><dt>Look here first</dt><dd><${Sentence} text=${hint} /></dd></div>`)}${parts.map(
      ({ label, text }) =>
        html`<div key=${label}><dt>${label}</dt><dd><${Sentence} text=${text} /></dd></div>`,
    )}</dl>`;
}
