/** The filters of the events, all of them in the address. */
import type { BulkFilter } from "../../src/event/bulk-choice.ts";
import { html, type View } from "../ground/html.ts";
import type { Place } from "../ground/place.ts";
import { setQuery } from "../ground/route.ts";
import { Choice, RelayChoice } from "../part/choice.ts";
import { SearchBox } from "../part/search-box.ts";

const TRIGGERS = [
  ["receiver", "Webhooks"],
  ["schedule", "Ticks"],
  ["data_change", "Record changes"],
] as const;
/** How far back, in hours. */
const SPANS = [
  ["1", "Last hour"],
  ["24", "Last 24 hours"],
  ["168", "Last 7 days"],
] as const;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** `since` and `until`: an hour of Home's bars, in place of a span. */
const NAMES = ["relay", "state", "trigger", "person", "q", "since", "until"] as const;

/** The query of the call; a span is counted from the present minute, so that the address of the call rests for as long. */
export function readFilter(query: URLSearchParams): Record<string, string> {
  const filter: Record<string, string> = {};
  for (const name of NAMES) {
    const value = query.get(name);
    if (value !== null && value !== "") filter[name] = value;
  }
  const hours = Number(query.get("hours"));
  if (hours > 0) {
    const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    filter.since = new Date(minute - hours * HOUR_MS).toISOString();
  }
  return filter;
}

/** The filter of a bulk replay, whose times stay as they are now; null: only dead or failed events are replayed many at once. */
export function readBulkFilter(query: URLSearchParams): BulkFilter | null {
  const { state, q: _, ...rest } = readFilter(query);
  if (state !== "dead" && state !== "failed") return null;
  return { ...rest, state };
}

export function hasFilter(query: URLSearchParams): boolean {
  return [...NAMES, "hours"].some((name) => (query.get(name) ?? "") !== "");
}

export function clearFilter(): void {
  setQuery(Object.fromEntries([...NAMES, "hours"].map((name) => [name, ""])));
}

export function EventFilter({ place, query }: { place: Place; query: URLSearchParams }): View {
  return html`<div class="filters" role="search" aria-label="Filter events">
    <${SearchBox} value=${query.get("q") ?? ""} label="Find text or an event id" onValue=${(q: string) => setQuery({ q })} />
    <${RelayChoice} place=${place} query=${query} />
    <${Choice} name="trigger" label="Trigger" none="Every trigger" query=${query} options=${TRIGGERS} />
    <${Choice} name="hours" label="Time" none="30 days" query=${query} options=${SPANS} />
    ${hasFilter(query) && html`<button type="button" class="link" onClick=${clearFilter}>Clear</button>`}
  </div>`;
}
