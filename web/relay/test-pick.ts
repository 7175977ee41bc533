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
import { StateMark } from "../component/state-mark.ts";
import { Ago } from "../component/time.ts";
import { CallRow } from "../request/request-row.ts";

const SHOWN = 10;

export function StoredEvents({ place, name }: { place: Place; name: string }): View {
  const { data, error } = useLoad<Page<EventItem>>(
    apiPath(place, "events") + writeQuery({ relay: name, limit: SHOWN }),
  );
  if (error !== null && data === undefined)
    return html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`;
  if (data === undefined) return html`<${Skeleton} rows=${4} />`;
  if (data.items.length === 0)
    return html`<p class="none">No event has arrived yet: try an example, or paste a call.</p>`;
  return html`<ul class="test-events card-list">${data.items.map(
    ({ id, state, eventType, preview, createdAt }) => html`<li key=${id}>
      <button type="button" class="bare test-event" onClick=${() => setQuery({ event: id, with: "" })}><${StateMark} state=${state} />
        <span class="clip"><b><${SafeText} text=${eventType ?? "event"} limit=${80} /></b> <${SafeText} text=${preview ?? id} limit=${160} /></span>
        <span class="quiet"><${Ago} at=${createdAt} /></span></button></li>`,
  )}</ul>`;
}

/** Shows a picked request. Relay stores no body of a request without an event, so the user must get it from the sender. */
export function PickedCall({ place, name, id }: { place: Place; name: string; id: string }): View {
  const { data } = useLoad<Page<RecentRequest>>(
    apiPath(place, "calls") + writeQuery({ relay: name, limit: 200 }),
  );
  const call = data?.items.find((one) => one.id === id);
  if (data === undefined) return html`<${Skeleton} rows=${1} />`;
  if (call === undefined)
    return html`<${Notice} kind="info">This call is kept no longer: the last 1,000 of the environment are.<//>`;
  return html`<ul class="calls card-list"><${CallRow} place=${place} calls=${[call]} /></ul>
    ${
      call.eventId === null
        ? html`<p class="quiet">Its body and headers are not kept, because nobody proved who sent them. The sender’s list of deliveries shows both: paste them here, and the first difference is told.</p>`
        : html`<p><button type="button" onClick=${() => setQuery({ event: call.eventId ?? "", call: "", with: "" })}>Try the event that was first received</button></p>`
    }`;
}
