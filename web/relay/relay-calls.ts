/** The last calls of one receiver that became no event, each with its cause, and those to a name that was probably meant for it. */

import { useState } from "preact/hooks";
import type { Page, RecentCall, UnknownCall } from "../ground/answer.ts";
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { Notice, Skeleton } from "../part/notice.ts";
import { SafeText } from "../part/safe-text.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";
import { RelayMissed } from "./relay-missed.ts";

const REFRESH_MS = 5_000;
const SHOWN_CALLS = 6;
/** Of calls that are one row, the first is told where it came so much earlier. */
const TOLD_APART_MS = 60_000;

const MARKS = {
  refused: { state: "failed", word: "Refused" },
  ignored: { state: "skipped", word: "Ignored" },
  duplicate: { state: "skipped", word: "Duplicate" },
} as const;

export function RelayCalls({ place, name }: { place: Place; name: string }): View {
  const [isImporting, setImporting] = useState(false);
  const query = `?relay=${encodeURIComponent(name)}&limit=${SHOWN_CALLS}`;
  const calls = useLoad<Page<RecentCall>>(`${apiPath(place, "calls")}${query}`, REFRESH_MS);
  const unknown = useLoad<Page<UnknownCall>>(`${apiPath(place, "unknown-calls")}?limit=200`, REFRESH_MS);
  const meant = (unknown.data?.items ?? []).filter(({ nearest }) => nearest === name);
  const items = calls.data?.items;
  return html`<section class="block" aria-label="Calls that became no event">
    <div class="block-head"><h2>Calls that became no event</h2><div class="page-actions">
      <button type="button" onClick=${() => setImporting(true)}>Import missed events…</button></div></div>
    ${isImporting && html`<${RelayMissed} place=${place} name=${name} onClose=${() => setImporting(false)} />`}
    ${meant.map(
      (call) => html`<${Notice} key=${call.id} kind="warn">
        ${sayCount(call.count, "call")} to <code><${SafeText} text=${call.name} limit=${80} /></code>, the last <${Ago} at=${call.at} />:
        no receiver has this name. Did the sender mean ${name}?<//>`,
    )}
    ${calls.error !== null && html`<${Notice} kind="warn">${calls.error}<//>`}
    ${
      items === undefined
        ? calls.error === null && html`<${Skeleton} rows=${2} />`
        : items.length === 0
          ? html`<p class="none">None: every call that came is an event.</p>`
          : html`<ul class="calls">${items.map((call) => html`<${CallRow} key=${call.id} place=${place} call=${call} />`)}</ul>`
    }
  </section>`;
}

function CallRow({ place, call }: { place: Place; call: RecentCall }): View {
  const { outcome, code, cause, source, eventId, count } = call;
  const isLong = Date.parse(call.at) - Date.parse(call.firstAt) >= TOLD_APART_MS;
  return html`<li>
    <p class="call-head"><${StateMark} ...${MARKS[outcome]} />
      ${outcome === "refused" && html`<code>${code}</code>`}
      ${count > 1 && html`<span class="chip">${sayCount(count, "call")}</span>`}
      <span class="call-time"><${Ago} at=${call.at} /></span></p>
    <p class="call-cause"><${Sentence} text=${cause} />${
      eventId !== null && html` <a href=${pagePath(place, "events", eventId)}>the first event</a>`
    } <span class="quiet">· from ${source}${isLong && html`, the first <${Ago} at=${call.firstAt} />`}</span></p>
  </li>`;
}
