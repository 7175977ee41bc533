/** The filters of the events, all of them in the address: what is searched for, chips for what was chosen elsewhere, and choices. */
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { isReading } from "../base/reading.ts";
import { setQuery } from "../base/route.ts";
import { serviceNow } from "../base/service-clock.ts";
import { HOUR_MS, MINUTE_MS, sayMoment, useNow } from "../base/time-words.ts";
import { Choice, RelayChoice } from "../component/choice.ts";
import { Icon } from "../component/icon.ts";
import { SafeText } from "../component/safe-text.ts";
import { EventSearch } from "./event-search.ts";

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
/** `since` and `until`: a range of the bars, in place of a span. */
const NAMES = ["relay", "state", "trigger", "reason", "person", "mapped", "q", "since", "until"] as const;

/** The query of the call; a span is counted from the present minute, so that the address of the call rests for as long. */
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

/** The filter as the address has it, whatever the time is. */
export function sayFilter(query: URLSearchParams): string {
  return writeQuery(Object.fromEntries([...NAMES, "hours"].map((name) => [name, query.get(name)])));
}

/** What was listed last. */
let listed: { said: string; filter: Record<string, string> } = { said: "", filter: {} };

/** The query of the call for the page that lists it: its span rests while somebody reads. */
export function filterToList(query: URLSearchParams): Record<string, string> {
  if (listed.said !== sayFilter(query) || !isReading())
    listed = { said: sayFilter(query), filter: readFilter(query) };
  return listed.filter;
}

/** The query of the call as it was listed last, whatever the time is now: what was listed is known. */
export function filterAsListed(query: URLSearchParams): Record<string, string> {
  return listed.said === sayFilter(query) ? listed.filter : readFilter(query);
}

/** The filter of a bulk replay, whose times stay as they are now; null: only dead or failed events are replayed many at once, and done ones of a relay. */
export function readBulkFilter(query: URLSearchParams): BulkFilter | null {
  const { state, q: _, mapped: __, ...rest } = readFilter(query);
  if (state === "done" && rest.relay !== undefined) return { ...rest, state };
  return state === "dead" || state === "failed" ? { ...rest, state } : null;
}

/** Whether it is searched for something that does not choose what is replayed. */
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
  const from = since === "" ? "" : `from ${sayMoment(since, now)}`;
  const to = until === "" ? "" : `to ${sayMoment(until, now)}`;
  return html`<div class="filters" role="search" aria-label="Filter events">
    <${EventSearch} query=${query} />
    <${RelayChoice} place=${place} query=${query} />
    <${Choice} name="trigger" label="Trigger" none="Every trigger" query=${query} options=${TRIGGERS} />
    <${Choice} name="hours" label="Time" none="30 days" query=${query} options=${SPANS} without=${["since", "until"]} />
    ${["reason", "person", "mapped"].map((name) => {
      const value = query.get(name) ?? "";
      const words = sayChosen(name, value);
      return value !== "" && html`<${Chip} key=${name} words=${words} names=${[name]} />`;
    })}
    ${`${from}${to}` !== "" && html`<${Chip} words=${`${from} ${to}`.trim()} names=${["since", "until"]} />`}
    ${hasFilter(query) && html`<button type="button" class="link" onClick=${clearFilter}>Clear</button>`}
  </div>`;
}

function sayChosen(name: string, value: string): string {
  if (name === "mapped") return value.replace(":", " ");
  if (name === "reason") return value === "any" ? "failed with anything" : `failed with ${value}`;
  return `${name} ${value}`;
}

/** A part of the filter that is taken away by a click. */
function Chip({ words, names }: { words: string; names: readonly string[] }): View {
  return html`<button type="button" class="filter-chip" onClick=${() => setQuery(Object.fromEntries(names.map((name) => [name, ""])))}>
    <span class="off-screen">Without </span><${SafeText} text=${words.slice(0, 80)} /><${Icon} name="cross" size=${12} /></button>`;
}
