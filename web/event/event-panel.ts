/** Panel with the open event next to the list. */
import type { Event } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { Icon } from "../component/icon.ts";
import { LoadingState } from "../component/notice.ts";
import { breakable } from "../component/safe-text.ts";
import { EventMark } from "../component/state-mark.ts";
import { EventView, useEvent, whyNotReplayed } from "./event-view.ts";
import { formatType } from "./event-words.ts";

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
  return html`<aside class="event-panel" aria-label="Open event">
    <header class="event-panel-head">
      <h2><bdi>${event === undefined ? "Event" : breakable(formatType(event))}</bdi></h2>
      ${event !== undefined && html`<${EventMark} event=${event} />`}
      <div class="page-actions">
        <a class="button" href=${pagePath(place, "events", id)}>Open</a>
        <button type="button" class="bare" aria-label="Close" title="Close (Esc)" onClick=${onClose}><${Icon} name="cross" size=${14} /></button>
      </div>
    </header>
    ${
      event === undefined
        ? html`<${LoadingState} error=${error} isGone=${isGone} rows=${5} onRetry=${reload} />`
        : html`<${EventView} place=${place} event=${event} error=${error} onEvent=${(event: Event) => put({ event })} onReplay=${() => whyNotReplayed(event) === null && onReplay()} />`
    }
  </aside>`;
}
