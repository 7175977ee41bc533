/** The events of an environment, newest first. */
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, pagePath } from "../ground/place.ts";
import { EmptyState, ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { clearFilter, EventFilter, hasFilter, readFilter } from "./event-filter.ts";
import { EventTable } from "./event-table.ts";
import { type LiveEvents, useLiveEvents } from "./live-events.ts";

export function EventListPage({ place, query }: PageProps): View {
  const live = useLiveEvents(apiPath(place, "events"), readFilter(query), true);
  return html`<${PageHead} title="Events" aside=${html`<${LiveMark} live=${live} />`} />
    <${EventFilter} place=${place} query=${query} />
    ${
      live.error !== null &&
      live.items !== undefined &&
      html`<${Notice} kind="warn">
      ${live.error} What you see is from before.<//>`
    }
    ${
      live.items === undefined
        ? live.error === null
          ? html`<${Skeleton} rows=${10} />`
          : html`<${ErrorState} error=${live.error} onRetry=${live.reload} />`
        : live.items.length === 0
          ? html`<${None} live=${live} isFiltered=${hasFilter(query)} relays=${pagePath(place, "relays")} />`
          : html`<${EventTable} place=${place} events=${live.items} />
            <div class="more">${
              live.next === null
                ? html`<span class="quiet">These are all; events are kept for 30 days.</span>`
                : html`<button type="button" disabled=${live.isLoadingOlder} onClick=${live.loadOlder}>
                  ${live.isLoadingOlder ? "Loading…" : "Older"}</button>`
            }</div>`
    }`;
}

const REST_WORDS = {
  hidden: "Paused while the tab is hidden",
  scrolled: "Paused while you read: scroll up to go on",
  selected: "Paused while text is selected",
} as const;

function LiveMark({ live }: { live: LiveEvents }): View {
  if (live.items === undefined) return null;
  return html`<span class=${live.rests === null ? "live on" : "live"}><span class="dot" aria-hidden="true" />
    ${live.rests === null ? "Live" : REST_WORDS[live.rests]}</span>`;
}

/** A page looks at a bounded number of events, so that none found may mean none yet. */
function None({ live, isFiltered, relays }: { live: LiveEvents; isFiltered: boolean; relays: string }): View {
  if (live.next !== null) {
    return html`<${EmptyState} icon="search" title="None among the newest events"><p>Older ones were not looked at yet.</p>
      <button type="button" class="primary" disabled=${live.isLoadingOlder} onClick=${live.loadOlder}>
        ${live.isLoadingOlder ? "Looking…" : "Look further back"}</button><//>`;
  }
  if (isFiltered) {
    return html`<${EmptyState} icon="search" title="No event matches">
      <p>An event that a relay’s <code>when</code> did not match, or whose signature did not verify, is not recorded.</p>
      <button type="button" onClick=${clearFilter}>Show all</button><//>`;
  }
  return html`<${EmptyState} icon="events" title="Nothing has happened yet">
    <p>Each webhook, tick and record change that a relay takes up appears here at once, with what every action did.</p>
    <a class="button" href=${relays}>Go to the relays</a><//>`;
}
