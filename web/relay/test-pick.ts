/** Choices for a test: the relay's last events, and a rejected request. */

import type { EventItem, Page, RecentRequest } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { Notice, Skeleton } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { EventMark } from "../component/state-mark.ts";
import { Ago } from "../component/time.ts";
import { RequestRow } from "../request/request-row.ts";

const SHOWN = 10;

export function StoredEvents({ place, name }: { place: Place; name: string }): View {
  const { data, error } = useLoad<Page<EventItem>>(
    apiPath(place, "events") + writeQuery({ relay: name, limit: SHOWN }),
  );
  if (error !== null && data === undefined)
    return html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`;
  if (data === undefined) return html`<${Skeleton} rows=${4} />`;
  if (data.items.length === 0)
    return html`<p class="none">No events yet. Use an example or paste a request.</p>`;
  return html`<ul class="test-events card-list">${data.items.map(
    (event) => html`<li key=${event.id}>
      <button type="button" class="bare test-event" onClick=${() => setQuery({ event: event.id, with: "" })}><${EventMark} event=${event} />
        <span class="clip"><b><${SafeText} text=${event.eventType ?? "event"} limit=${80} /></b> <${SafeText} text=${event.preview ?? event.id} limit=${160} /></span>
        <span class="quiet"><${Ago} at=${event.createdAt} /></span></button></li>`,
  )}</ul>`;
}

/** Shows a picked request. Relay stores no body of a request without an event, so the user must get it from the sender. */
export function PickedRequest({ place, name, id }: { place: Place; name: string; id: string }): View {
  const { data } = useLoad<Page<RecentRequest>>(
    apiPath(place, "calls") + writeQuery({ relay: name, limit: 200 }),
  );
  const call = data?.items.find((one) => one.id === id);
  if (data === undefined) return html`<${Skeleton} rows=${1} />`;
  if (call === undefined)
    return html`<${Notice} kind="info">Relay does not have this request any more. It keeps the last 1,000 of the environment.<//>`;
  return html`<ul class="calls card-list"><${RequestRow} place=${place} calls=${[call]} /></ul>
    ${
      call.eventId === null
        ? html`<p class="quiet">Relay does not store the body and headers of unverified requests. Copy both from the delivery list of the sender and paste them here. The test shows the first difference.</p>`
        : html`<p><button type="button" onClick=${() => setQuery({ event: call.eventId ?? "", call: "", with: "" })}>Test with the first event</button></p>`
    }`;
}
