/** Calls of receivers as rows: what became of each, and why. */
import type { RecentCall, UnknownCall } from "../ground/answer.ts";
import { writeQuery } from "../ground/api.ts";
import { sayCount } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { Notice } from "../part/notice.ts";
import { SafeText } from "../part/safe-text.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";

/** Of calls that are one row, the first is told where it came so much earlier. */
const TOLD_APART_MS = 60_000;

const MARKS = {
  refused: { state: "refused", word: "Refused" },
  ignored: { state: "skipped", word: "Ignored" },
  duplicate: { state: "skipped", word: "Duplicate" },
} as const;

export function CallRow({
  place,
  call,
  withRelay = false,
}: {
  place: Place;
  call: RecentCall;
  withRelay?: boolean;
}): View {
  const { outcome, code, cause, source, eventId, count, relay } = call;
  const isLong = Date.parse(call.at) - Date.parse(call.firstAt) >= TOLD_APART_MS;
  return html`<li>
    <p class="call-head"><${StateMark} ...${MARKS[outcome]} />
      ${withRelay && html`<a data-row href=${pagePath(place, "relays", relay)}>${relay}</a>`}
      ${outcome === "refused" && html`<code>${code}</code>`}
      ${count > 1 && html`<span class="chip">${sayCount(count, "call")}</span>`}
      <span class="call-time"><${Ago} at=${call.at} /></span></p>
    <p class="call-cause"><${Sentence} text=${cause} />${
      eventId !== null && html` <a href=${pagePath(place, "events", eventId)}>the first event</a>`
    } <span class="quiet">· from ${source}${isLong && html`, the first <${Ago} at=${call.firstAt} />`}</span>
      ${withRelay && html` <a class="call-try" href=${pagePath(place, "relays", relay) + writeQuery({ tab: "test", call: call.id })} aria-label="Try it in the Test tab of ${relay}">Try it</a>`}</p>
  </li>`;
}

/** Calls to a name that no receiver has. */
export function UnknownCallNotice({ place, call }: { place: Place; call: UnknownCall }): View {
  const { name, nearest, count, at, source } = call;
  return html`<${Notice} kind="warn">
    ${sayCount(count, "call")} to <code><${SafeText} text=${name} limit=${80} /></code>, the last <${Ago} at=${at} /> from ${source}:
    no receiver has this name. ${
      nearest === null
        ? "Compare the URL that the sender calls with a relay’s."
        : html`Did the sender mean <a href=${pagePath(place, "relays", nearest)}>${nearest}</a>?`
    }<//>`;
}
