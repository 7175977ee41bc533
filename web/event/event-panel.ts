/** The event that is looked at, beside the list. */
import type { Event } from "../ground/answer.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { Icon } from "../part/icon.ts";
import { NotYet } from "../part/notice.ts";
import { StateMark } from "../part/state-mark.ts";
import { EventView, useEvent, whyNotReplayed } from "./event-view.ts";
import { sayType } from "./event-words.ts";

export function EventPanel({
  place,
  id,
  onClose,
  onReplay,
}: {
  place: Place;
  id: string;
  onClose: () => void;
  onReplay: () => void;
}): View {
  const { event, error, isGone, reload, put } = useEvent(place, id);
  const stop = event === undefined ? null : whyNotReplayed(event);
  return html`<aside class="event-panel" aria-label="The event that is open">
    <header class="event-panel-head">
      <h2><bdi>${event === undefined ? "Event" : sayType(event)}</bdi></h2>
      ${event !== undefined && html`<${StateMark} state=${event.state} />`}
      <div class="page-actions">
        <button type="button" disabled=${event === undefined || stop !== null} title=${stop ?? "r"} onClick=${onReplay}><${Icon} name="replay" size=${14} />Replay</button>
        <a class="button" href=${pagePath(place, "events", id)}>Open</a>
        <button type="button" class="bare" aria-label="Close" title="Close (Esc)" onClick=${onClose}><${Icon} name="cross" size=${14} /></button>
      </div>
    </header>
    ${
      event === undefined
        ? html`<${NotYet} error=${error} isGone=${isGone} rows=${5} onRetry=${reload} />`
        : html`<${EventView} place=${place} event=${event} error=${error} onEvent=${(event: Event) => put({ event })} />`
    }
  </aside>`;
}
