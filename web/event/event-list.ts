/** List of the environment's events, newest first. On a wide screen the open event appears next to it. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import type { EventItem } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { type List, useList } from "../base/use-list.ts";
import { useWide } from "../base/use-wide.ts";
import { Icon } from "../component/icon.ts";
import { LiveMark } from "../component/live-mark.ts";
import { EmptyState, LoadingState, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { PageHead } from "../component/page-head.ts";
import { useSelection } from "../component/selection.ts";
import { useKeys } from "../component/use-keys.ts";
import { BulkReplayLine } from "./bulk-progress.ts";
import { BulkReplay } from "./bulk-replay.ts";
import { ChosenBar } from "./chosen-bar.ts";
import {
  clearFilter,
  EventFilter,
  filterToList,
  formatFilter,
  hasFilter,
  isSearched,
  readBulkFilter,
} from "./event-filter.ts";
import { EventHistogram } from "./event-histogram.ts";
import { EventPanel } from "./event-panel.ts";
import { EventTable } from "./event-table.ts";
import { ReplayChosen } from "./replay-chosen.ts";
import { StateTabs } from "./state-tabs.ts";

const REFRESH_MS = 2_000;
const PANEL_PX = 1_200;
const NO_ITEMS: readonly EventItem[] = [];
const SEARCHED_WORDS = "A replay cannot use a text search. Clear the search first.";

export function EventListPage({ place, query }: PageProps): View {
  const filter = filterToList(query);
  const list = useKept(
    formatFilter(query),
    useList<EventItem>(apiPath(place, "events") + writeQuery(filter), REFRESH_MS),
  );
  const [chosenFilter, setChosenFilter] = useState<BulkFilter | null>(null);
  const [replayed, setReplayed] = useState<readonly string[]>([]);
  const items = list.items ?? NO_ITEMS;
  const hasNone = list.items?.length === 0 && list.next === null && !hasFilter(query);
  const ids = items.map(({ id }) => id).join();
  const selection = useSelection(useMemo(() => items, [ids]));
  const hasRoom = useWide(PANEL_PX);
  const bulk = readBulkFilter(query);
  const openId = query.get("open") ?? "";
  const isOpen = hasRoom && openId !== "";
  const close = (): void => {
    document.querySelector<HTMLElement>("main tr[aria-current] a[data-row]")?.focus({ preventScroll: true });
    setQuery({ open: "" });
  };
  const replay = (id: string): void => setReplayed(selection.chosen.size > 0 ? [...selection.chosen] : [id]);
  useKeys({
    Escape: () => {
      if (isOpen) close();
      else if (selection.chosen.size > 0) selection.set([]);
      else return false;
    },
  });
  const pressOnRow = (key: string, event: EventItem): boolean => {
    // Moving past the last row loads older events.
    if ((key === "j" || key === "ArrowDown") && event === items.at(-1)) list.loadOlder();
    if (key === "r") replay(event.id);
    return key === "r";
  };
  return html`<${PageHead} title="Events" aside=${list.items !== undefined && html`<${LiveMark} />`}>
      ${bulk !== null && items.length > 0 && selection.chosen.size === 0 && html`<button data-needs="replay" type="button" disabled=${isSearched(query)} title=${isSearched(query) ? SEARCHED_WORDS : ""} onClick=${() => setChosenFilter(bulk)}><${Icon} name="replay" size=${14} />Replay these…</button>`}
    <//>
    <${BulkReplayLine} place=${place} />
    <${StateTabs} place=${place} filter=${filter} />
    <${EventFilter} place=${place} query=${query} />
    ${!hasNone && html`<${EventHistogram} place=${place} filter=${filter} />`}
    ${list.error !== null && list.items !== undefined && html`<${StaleNotice} error=${list.error} />`}
    <div class=${isOpen ? "events-split" : ""}><div>
    ${
      list.items === undefined
        ? html`<${LoadingState} error=${list.error} rows=${10} onRetry=${list.reload} />`
        : list.items.length === 0
          ? html`<${None} list=${list} isFiltered=${hasFilter(query)} relays=${pagePath(place, "relays")} />`
          : html`<${EventTable} place=${place} events=${list.items} selection=${selection} openId=${openId}
              onOpen=${hasRoom ? ({ id }: EventItem) => setQuery({ open: id }) : undefined} onKey=${pressOnRow} />
            <${OlderButton} list=${list} none="No more events. Relay keeps events for 30 days." />`
    }</div>
    ${isOpen && html`<${EventPanel} key=${openId} place=${place} id=${openId} onClose=${close} onReplay=${() => setReplayed([openId])} />`}</div>
    <${ChosenBar} place=${place} items=${items} selection=${selection} onReplay=${() => setReplayed([...selection.chosen])} />
    ${replayed.length > 0 && html`<${ReplayChosen} place=${place} ids=${replayed} onClose=${() => setReplayed([])} />`}
    ${chosenFilter !== null && html`<${BulkReplay} place=${place} filter=${chosenFilter} onClose=${() => setChosenFilter(null)} />`}`;
}

/** Keeps the shown list while a list with the same filter and a moved span loads. */
function useKept(filter: string, list: List<EventItem>): List<EventItem> {
  const last = useRef({ filter, list });
  if (list.items !== undefined || list.error !== null || last.current.filter !== filter)
    last.current = { filter, list };
  return last.current.list;
}

/** A page of the API scans a bounded number of events, so an empty page does not mean that nothing matches. */
function None({
  list,
  isFiltered,
  relays,
}: {
  list: List<EventItem>;
  isFiltered: boolean;
  relays: string;
}): View {
  if (list.next !== null) {
    return html`<${EmptyState} icon="search" title="No match among the newest events"><p>Relay has not searched the older ones yet.</p>
      <button type="button" class="primary" disabled=${list.isLoadingOlder} onClick=${list.loadOlder}>
        ${list.isLoadingOlder ? "Searching…" : "Search older ones"}</button><//>`;
  }
  if (isFiltered) {
    return html`<${EmptyState} icon="search" title="No event matches">
      <p>A request that does not match <code>when</code> or has a wrong signature does not become an event. See it under Requests.</p>
      <button type="button" onClick=${clearFilter}>Show all</button><//>`;
  }
  return html`<${EmptyState} icon="events" title="No events yet">
    <p>Each webhook, schedule tick and record change that starts a relay appears here at once, with the result of every action.</p>
    <a class="button" href=${relays}>Open relays</a><//>`;
}
