/** One event in a line: its state, subject, reason and time. */

import type { EventItem } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { breakable, escapeTricky } from "../component/safe-text.ts";
import { EventMark } from "../component/state-mark.ts";
import { Ago } from "../component/time.ts";
import { EventReason } from "../event/event-table.ts";

export function EventLine({
  place,
  event,
  onReplay,
}: {
  place: Place;
  event: EventItem;
  /** Opens the replay dialog. Without it, the line has no button. */
  onReplay?: ((id: string) => void) | undefined;
}): View {
  const { id, eventType, relay, reason, preview, createdAt } = event;
  return html`<li><${EventMark} event=${event} />
    <span class="event-line-what"><a data-row href=${pagePath(place, "events", id)}><bdi>${breakable(eventType ?? "event")}</bdi> at ${relay.name}</a>
      ${reason !== null && html` <span class="event-line-why"><${EventReason} event=${event} /></span>`}
      ${preview !== null && html` <bdi class="quiet">${escapeTricky(preview)}</bdi>`}</span>
    <${Ago} at=${createdAt} />
    ${onReplay !== undefined && html`<button data-needs="replay" type="button" aria-label="Replay ${eventType ?? "event"} at ${relay.name}…" onClick=${() => onReplay(id)}>Replay…</button>`}</li>`;
}
