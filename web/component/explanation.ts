/** Explanation of a problem, an alert or a failed event, with the parts in the order of `relay help <code>` and the error pages. */
import type { EventCause } from "../../src/insight/overview/failure-cause.ts";
import type { RecentChange } from "../../src/rules/relay/recent-change.ts";
import { html, type View } from "../base/html.ts";
import { ChangeRow } from "./recent-change.ts";
import { Sentence } from "./sentence.ts";

/** Texts for whether the cause of a failure still exists. */
export const SAID_STANDS = { yes: "Still exists", no: "Probably fixed", unknown: "Unknown" } as const;

export function Explanation({
  what = null,
  why = null,
  todo = null,
  next = null,
  change = null,
  hints = [],
  doubt = null,
}: {
  what?: string | null;
  why?: string | null;
  todo?: string | null;
  next?: string | null;
  /** Change shortly before, which is shown first. */
  change?: RecentChange | null;
  /** State of the cause after a change that is newer than the last failure. */
  doubt?: Pick<EventCause, "stands" | "message"> | null;
  /** Sentences to read first. */
  hints?: readonly string[];
}): View {
  const texts = { "What happened": what, Why: why, "What to do": todo, "What happens next": next };
  const parts = Object.entries(texts).flatMap(([label, text]) => (text === null ? [] : [{ label, text }]));
  return html`<dl class="explanation">${change !== null && html`<${ChangeRow} change=${change} />`}
    ${doubt !== null && html`<${NowRow} cause=${doubt} />`}
    ${hints.map((hint) => html`<div key=${hint}><dt>Look here first</dt><dd><${Sentence} text=${hint} /></dd></div>`)}${parts.map(
      ({ label, text }) =>
        html`<div key=${label}><dt>${label}</dt><dd><${Sentence} text=${text} /></dd></div>`,
    )}</dl>`;
}

/** Row that says whether the cause still exists. */
export function NowRow({
  cause: { stands, message },
}: {
  cause: Pick<EventCause, "stands" | "message">;
}): View {
  return html`<div class="explanation-${stands}"><dt>Now</dt><dd><b>${SAID_STANDS[stands]}.</b> <${Sentence} text=${message} /></dd></div>`;
}
