/** Rows for requests to receivers: the outcome and its cause. */
import { useState } from "preact/hooks";
import type { EventItem, RecentRequest, UnknownRequest } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { Notice } from "../component/notice.ts";
import { breakable, SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { EventMark, StateMark } from "../component/state-mark.ts";
import { Ago, Moment } from "../component/time.ts";
import { countOf, firstOf, type LikeCalls } from "./similar-requests.ts";

/** Difference in time from which a row also shows when its first request arrived. */
const SEPARATE_MS = 60_000;

const MARKS = {
  refused: { state: "refused", word: "Rejected" },
  ignored: { state: "skipped", word: "Ignored" },
  duplicate: { state: "skipped", word: "Duplicate" },
  answered: { state: "done", word: "Handshake" },
} as const;

export function RequestRow({
  place,
  calls,
  withRelay = false,
}: {
  place: Place;
  calls: LikeCalls;
  withRelay?: boolean;
}): View {
  const [isOpen, setOpen] = useState(false);
  const [newest] = calls;
  const { outcome, code, cause, source, eventId, event, claimed, relay } = newest;
  const count = countOf(calls);
  const since = firstOf(calls);
  const isLong = Date.parse(newest.at) - Date.parse(since) >= SEPARATE_MS;
  return html`<li>
    <p class="call-head"><${StateMark} ...${MARKS[outcome]} />
      ${withRelay && html`<a class="call-relay" data-row href=${pagePath(place, "relays", relay)}>${relay}</a>`}
      ${outcome === "refused" && html`<code>${code}</code>`}
      ${event !== null && html`<${RequestEvent} event=${{ ...event, reason: null }} type=${event.eventType} />`}
      ${claimed != null && html`<${Claim} claimed=${claimed} />`}
      ${count > 1 && html`<span class="chip">${formatCount(count, "request")}</span>`}
      <span class="call-time"><${Ago} at=${newest.at} /></span></p>
    <p class="call-cause"><${Sentence} text=${cause} />${
      eventId !== null && html` <a href=${pagePath(place, "events", eventId)}>the first event</a>`
    } <span class="quiet">· ${calls.length > 1 ? "the last " : ""}from ${source}${isLong && html`, the first <${Ago} at=${since} />`}</span>
      ${withRelay && html` <${TryIt} place=${place} call=${newest} />`}
      ${calls.length > 1 && html` <button type="button" class="link" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${isOpen ? "Show as one" : "Show each"}</button>`}</p>
    ${newest.followers !== undefined && html`<${FollowerOutcomes} place=${place} followers=${newest.followers} />`}
    ${
      isOpen &&
      html`<ol class="like-calls">${calls.map(
        (call) => html`<li key=${call.id} class="like-call"><${Moment} at=${call.at} />
          <span>${call.count > 1 && `${formatCount(call.count, "request")} `}from ${call.source}</span>
          ${withRelay && html`<${TryIt} place=${place} call=${call} />`}</li>`,
      )}</ol>`
    }
  </li>`;
}

/** Lists what each relay that follows the receiver did with the request. */
function FollowerOutcomes({
  place,
  followers,
}: {
  place: Place;
  followers: NonNullable<RecentRequest["followers"]>;
}): View {
  return html`<ul class="call-followers" aria-label="Followers">${followers.map(
    ({
      relay,
      outcome,
      cause,
      eventId,
    }) => html`<li key=${relay}><a href=${pagePath(place, "relays", relay)}>${relay}</a> <${StateMark} ...${MARKS[outcome]} />
      <span class="quiet">· <${Sentence} text=${cause} />${
        eventId !== null && html` <a href=${pagePath(place, "events", eventId)}>its event</a>`
      }</span></li>`,
  )}</ul>`;
}

/** Shows the type, the id and the state of a request's event. */
export function RequestEvent({
  event,
  type,
}: {
  event: Pick<EventItem, "id" | "state" | "reason">;
  type: string | null;
}): View {
  return html`${type !== null && html`<bdi class="call-type">${breakable(type)}</bdi>`}
    <code class="quiet" title=${event.id}>…${event.id.slice(-8)}</code> <${EventMark} event=${event} />`;
}

/** Shows what the event of a rejected request claims to be. No signature verified it. */
function Claim({ claimed: { id, type } }: { claimed: NonNullable<RecentRequest["claimed"]> }): View {
  return html`<span class="call-claim" title="The request was rejected, so nothing verified its type and id">${
    type !== null && html`<${SafeText} text=${type} limit=${100} /> `
  }${id !== null && html`<code><${SafeText} text=${id} limit=${100} /></code> `}<span class="chip">not verified</span></span>`;
}

function TryIt({ place, call: { id, relay } }: { place: Place; call: RecentRequest }): View {
  return html`<a class="call-try" href=${pagePath(place, "relays", relay) + writeQuery({ tab: "test", call: id })} aria-label="Test it with ${relay}">Test it</a>`;
}

/** Notice for requests to a name that no receiver has. */
export function UnknownRequestNotice({ place, call }: { place: Place; call: UnknownRequest }): View {
  const { name, hidden, nearest, count, at, source } = call;
  return html`<${Notice} kind="warn">
    ${formatCount(count, "request")} to <code><${SafeText} text=${name} limit=${80} /></code>, the last <${Ago} at=${at} /> from ${source}:
    no receiver has this name. ${
      hidden &&
      "The name may be a secret by mistake, so Relay stores only its length and fingerprint. Compare the fingerprint with the secrets of your relays, and rotate the secret that matches. "
    }${
      nearest === null
        ? "Compare the URL of the sender with the receiver URL of the relay."
        : html`Did the sender mean <a href=${pagePath(place, "relays", nearest)}>${nearest}</a>?`
    }<//>`;
}
