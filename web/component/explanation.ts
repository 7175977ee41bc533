/** Explanation of a problem, an alert or a failed event, with the parts in the order of `relay help <code>` and the error pages. */
import { html, type View } from "../base/html.ts";
import { Sentence } from "./sentence.ts";

export function Explanation({
  what = null,
  why = null,
  todo = null,
  next = null,
}: {
  what?: string | null;
  why?: string | null;
  todo?: string | null;
  next?: string | null;
}): View {
  const texts = { "What happened": what, Why: why, "What to do": todo, "What happens next": next };
  const parts = Object.entries(texts).flatMap(([label, text]) => (text === null ? [] : [{ label, text }]));
  return html`<dl class="explanation">${parts.map(
    ({ label, text }) => html`<div key=${label}><dt>${label}</dt><dd><${Sentence} text=${text} /></dd></div>`,
  )}</dl>`;
}
