/** Tabs for the states, each with the number of matching events. The address holds the chosen state. */
import type { EventCounts } from "../../src/engine/event/count.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { StateShape } from "../component/state-mark.ts";

const REFRESH_MS = 5_000;
/** Refresh interval of a search, which is slower because a search reads the events that it counts. */
const SEARCH_REFRESH_MS = 30_000;

const ANY_REASON = "any";
/** States in the order of the tabs. Failures come first, because a narrow screen shows only the first tabs. */
const TABS = [
  ["", "All"],
  ["dead", "Dead"],
  ["failed", "Failed"],
  ["queued", "Queued"],
  ["retrying", "Retrying"],
  ["running", "Running"],
  ["done", "Done"],
] as const;

export function StateTabs({
  place,
  filter,
}: {
  place: Place;
  filter: Readonly<Record<string, string>>;
}): View {
  const { state = "", ...others } = filter;
  const { reason, ...wide } = others;
  const chosen = state === "queued" && reason === ANY_REASON ? "retrying" : state;
  const counts = useCounts(place, reason === ANY_REASON ? wide : others);
  const retrying = useCounts(place, { ...wide, reason: ANY_REASON })?.queued;
  return html`<div class="tabs" role="group" aria-label="State">${TABS.map(
    ([
      state,
      word,
    ]) => html`<button type="button" key=${state} class="tab" aria-pressed=${String(state === chosen)}
      onClick=${() => setQuery(readTab(state, reason))}>${state !== "" && html`<${StateShape} state=${state} />`}${word}${state !== "" && html` <${Count} state=${state} count=${state === "retrying" ? retrying : counts?.[state]} />`}</button>`,
  )}</div>`;
}

function useCounts(place: Place, filter: Readonly<Record<string, string>>): EventCounts | undefined {
  const path = apiPath(place, "events", "counts") + writeQuery(filter);
  const everyMs = filter.q === undefined ? REFRESH_MS : SEARCH_REFRESH_MS;
  return useLoad<{ counts: EventCounts }>(path, everyMs).data?.counts;
}

/** Returns the query of a tab. A queued event with a reason waits for its next attempt. */
function readTab(state: string, reason = ""): Record<string, string> {
  if (state === "retrying") return { state: "queued", reason: ANY_REASON };
  return { state, reason: reason === ANY_REASON ? "" : reason };
}

function Count({
  state,
  count,
}: {
  state: keyof EventCounts | "retrying";
  count: EventCounts[keyof EventCounts] | undefined;
}): View {
  if (count === undefined) return html`<span class="tab-count" aria-hidden="true">…</span>`;
  const { count: number, isMore } = count;
  const isTrouble = (state === "dead" || state === "failed") && number > 0;
  return html`<span class=${isTrouble ? "tab-count bad" : "tab-count"}
    title=${isMore ? `At least ${formatNumber(number)}: more are not counted.` : ""}>${formatNumber(number)}${isMore && "+"}</span>`;
}
