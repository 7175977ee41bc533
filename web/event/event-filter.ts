/** Filters of the event list, all stored in the address: the search, chips for values chosen elsewhere, and choices. */
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { isReading } from "../base/reading.ts";
import { setQuery } from "../base/route.ts";
import { serviceNow } from "../base/service-clock.ts";
import { formatMoment, HOUR_MS, MINUTE_MS, useNow } from "../base/time-words.ts";
import { Choice, RelayChoice } from "../component/choice.ts";
import { Icon } from "../component/icon.ts";
import { SafeText } from "../component/safe-text.ts";
import { EventSearch } from "./event-search.ts";

const TRIGGERS = [
  ["receiver", "Webhooks"],
  ["schedule", "Schedules"],
  ["data_change", "Record changes"],
] as const;
/** Spans back from now, in hours. */
const SPANS = [
  ["1", "Last hour"],
  ["24", "Last 24 hours"],
  ["168", "Last 7 days"],
] as const;
/** Query fields of the filter. `since` and `until` are a range chosen in the histogram and replace a span. */
const NAMES = ["relay", "state", "trigger", "reason", "person", "mapped", "q", "since", "until"] as const;

/** Returns the API query. A span counts from the current minute, so that the API address stays the same for a minute. */
function readFilter(query: URLSearchParams): Record<string, string> {
  const filter: Record<string, string> = {};
  for (const name of NAMES) {
    const value = query.get(name);
    if (value !== null && value !== "") filter[name] = value;
  }
  const hours = Number(query.get("hours"));
  if (hours > 0) {
    const minute = Math.floor(serviceNow() / MINUTE_MS) * MINUTE_MS;
    filter.since = new Date(minute - hours * HOUR_MS).toISOString();
  }
  return filter;
}

/** Returns the filter as in the address, without times computed from now. */
export function formatFilter(query: URLSearchParams): string {
  return writeQuery(Object.fromEntries([...NAMES, "hours"].map((name) => [name, query.get(name)])));
}

/** Filter of the last shown list. */
let listed: { key: string; filter: Record<string, string> } = { key: "", filter: {} };

/** Returns the API query for the list. Its span does not move while the user reads. */
export function filterToList(query: URLSearchParams): Record<string, string> {
  if (listed.key !== formatFilter(query) || !isReading())
    listed = { key: formatFilter(query), filter: readFilter(query) };
  return listed.filter;
}

/** Returns the API query of the last shown list, whose data is loaded, even if its span has moved since. */
export function filterAsListed(query: URLSearchParams): Record<string, string> {
  return listed.key === formatFilter(query) ? listed.filter : readFilter(query);
}

/**
 * Returns the filter of a bulk replay with fixed times. null: the filter is too wide. It must choose dead or failed
 * events, or done events of one relay.
 */
export function readBulkFilter(query: URLSearchParams): BulkFilter | null {
  const { state, q: _, mapped: __, ...rest } = readFilter(query);
  if (state === "done" && rest.relay !== undefined) return { ...rest, state };
  return state === "dead" || state === "failed" ? { ...rest, state } : null;
}

/** Reports whether the list has a search, which a bulk replay ignores. */
export function isSearched(query: URLSearchParams): boolean {
  return ["q", "mapped"].some((name) => (query.get(name) ?? "") !== "");
}

export function hasFilter(query: URLSearchParams): boolean {
  return [...NAMES, "hours"].some((name) => (query.get(name) ?? "") !== "");
}

export function clearFilter(): void {
  setQuery(Object.fromEntries([...NAMES, "hours"].map((name) => [name, ""])));
}

export function EventFilter({ place, query }: { place: Place; query: URLSearchParams }): View {
  const now = useNow(60_000);
  const [since, until] = [query.get("since") ?? "", query.get("until") ?? ""];
  const from = since === "" ? "" : `from ${formatMoment(since, now)}`;
  const to = until === "" ? "" : `to ${formatMoment(until, now)}`;
  return html`<div class="filters" role="search" aria-label="Filter events">
    <${EventSearch} place=${place} query=${query} />
    <${RelayChoice} place=${place} query=${query} />
    <${Choice} name="trigger" label="Trigger" none="Every trigger" query=${query} options=${TRIGGERS} />
    <${Choice} name="hours" label="Time" none="30 days" query=${query} options=${SPANS} without=${["since", "until"]} />
    ${["reason", "person", "mapped"].map((name) => {
      const value = query.get(name) ?? "";
      // The tab Retrying shows this filter.
      if (name === "reason" && value === "any" && query.get("state") === "queued") return null;
      const words = formatChosen(name, value);
      return value !== "" && html`<${Chip} key=${name} words=${words} names=${[name]} />`;
    })}
    ${`${from}${to}` !== "" && html`<${Chip} words=${`${from} ${to}`.trim()} names=${["since", "until"]} />`}
    ${hasFilter(query) && html`<button type="button" class="link" onClick=${clearFilter}>Clear</button>`}
  </div>`;
}

function formatChosen(name: string, value: string): string {
  if (name === "mapped") return value.replace(":", " ");
  if (name === "reason") return value === "any" ? "failed for any reason" : `failed with ${value}`;
  return `${name} ${value}`;
}

/** Part of the filter that a click removes. */
function Chip({ words, names }: { words: string; names: readonly string[] }): View {
  return html`<button type="button" class="filter-chip" onClick=${() => setQuery(Object.fromEntries(names.map((name) => [name, ""])))}>
    <span class="off-screen">Without </span><${SafeText} text=${words.slice(0, 80)} /><${Icon} name="cross" size=${12} /></button>`;
}
