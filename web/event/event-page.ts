/** Page of one event, with buttons for the previous and next event of the list. */

import { useState } from "preact/hooks";
import type { Event, EventItem } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { asLeft, navigate } from "../base/route.ts";
import { useList } from "../base/use-list.ts";
import { Icon } from "../component/icon.ts";
import { LoadingState } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { EventMark } from "../component/state-mark.ts";
import { notifyDone } from "../component/toast.ts";
import { useKeys } from "../component/use-keys.ts";
import { filterAsListed } from "./event-filter.ts";
import { EventReplay } from "./event-replay.ts";
import { EventView, useEvent, whyNotReplayed } from "./event-view.ts";
import { formatType } from "./event-words.ts";

export function EventPage({ place, params }: PageProps): View {
  const { id = "" } = params;
  const { event, error, isGone, reload, put } = useEvent(place, id);
  const [isReplaying, setReplaying] = useState(false);
  const stop = event === undefined ? null : whyNotReplayed(event);
  const neighbors = useNeighbors(place, id);
  const go = (to: string | null) => () => {
    if (to === null) return false;
    navigate(pagePath(place, "events", to), { replace: true });
  };
  const replay = (): boolean => {
    const may = event !== undefined && stop === null;
    if (may) setReplaying(true);
    return may;
  };
  useKeys({
    p: go(neighbors.previous),
    "[": go(neighbors.previous),
    n: go(neighbors.next),
    "]": go(neighbors.next),
    r: replay,
  });
  const back = { back: "Events", backTo: pagePath(place, "events") };
  if (event === undefined) {
    return html`<${PageHead} title="Event" ...${back} />
      <${LoadingState} error=${error} isGone=${isGone} ...${back} onRetry=${reload} />`;
  }
  const type = formatType(event);
  const title =
    event.payload !== null && type !== "webhook"
      ? `${type} · ${event.relay.name} event`
      : `${event.relay.name} event`;
  const replayed = (queued: Event): void => {
    setReplaying(false);
    put({ event: queued });
    invalidate(apiPath(place, "events"));
    notifyDone("Queued for replay. The result appears here.");
  };
  return html`<${PageHead} title=${title} ...${back} aside=${html`<${EventMark} event=${event} />`}>
      <div class="event-steps" role="group" aria-label="Events of this filter">
        <${Step} to=${neighbors.previous} place=${place} words="Previous event" letter="p" icon="up" />
        <${Step} to=${neighbors.next} place=${place} words="Next event" letter="n" icon="down" /></div>
    <//>
    <${EventView} place=${place} event=${event} error=${error} onEvent=${(event: Event) => put({ event })} onReplay=${replay} />
    ${isReplaying && html`<${EventReplay} place=${place} id=${id} onClose=${() => setReplaying(false)} onReplayed=${replayed} />`}`;
}

function Step({
  to,
  place,
  words,
  letter,
  icon,
}: {
  to: string | null;
  place: Place;
  words: string;
  letter: string;
  icon: "up" | "down";
}): View {
  return html`<button type="button" class="icon-only" disabled=${to === null} aria-label=${words} title="${words} (${letter})"
    onClick=${() => to !== null && navigate(pagePath(place, "events", to), { replace: true })}><${Icon} name=${icon} size=${14} /></button>`;
}

/** Returns the ids above (newer) and below (older) the event in the list that the user left. */
function useNeighbors(place: Place, id: string): { previous: string | null; next: string | null } {
  const [, left = ""] = asLeft(pagePath(place, "events")).split("?", 2);
  const filter = filterAsListed(new URLSearchParams(left));
  const { items = [] } = useList<EventItem>(apiPath(place, "events") + writeQuery(filter));
  const at = items.findIndex((item) => item.id === id);
  if (at === -1) return { previous: null, next: null };
  return { previous: items[at - 1]?.id ?? null, next: items[at + 1]?.id ?? null };
}
