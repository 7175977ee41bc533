/** Tabs for the states, each with the number of matching events. The address holds the chosen state. */
import type { EventCounts } from "../../src/engine/event/count.ts";
import { writeQuery } from "../base/api.ts";
import { sayNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { StateShape } from "../component/state-mark.ts";

const REFRESH_MS = 5_000;
/** Refresh interval of a search, which is slower because a search reads the events that it counts. */
const SEARCH_REFRESH_MS = 30_000;

/** States in the order of the tabs. Failures come first, because a narrow screen shows only the first tabs. */
const TABS = [
  ["", "All"],
  ["dead", "Dead"],
  ["failed", "Failed"],
  ["queued", "Queued"],
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
  const { state: chosen = "", ...others } = filter;
  const path = apiPath(place, "events", "counts") + writeQuery(others);
  const everyMs = others.q === undefined ? REFRESH_MS : SEARCH_REFRESH_MS;
  const counts = useLoad<{ counts: EventCounts }>(path, everyMs).data?.counts;
  return html`<div class="tabs" role="group" aria-label="State">${TABS.map(
    ([
      state,
      word,
    ]) => html`<button type="button" key=${state} class="tab" aria-pressed=${String(state === chosen)}
      onClick=${() => setQuery({ state })}>${state !== "" && html`<${StateShape} state=${state} />`}${word}${state !== "" && html` <${Count} state=${state} count=${counts?.[state]} />`}</button>`,
  )}</div>`;
}

function Count({
  state,
  count,
}: {
  state: keyof EventCounts;
  count: EventCounts[keyof EventCounts] | undefined;
}): View {
  if (count === undefined) return html`<span class="tab-count" aria-hidden="true">…</span>`;
  const { count: number, isMore } = count;
  const isTrouble = (state === "dead" || state === "failed") && number > 0;
  return html`<span class=${isTrouble ? "tab-count bad" : "tab-count"}
    title=${isMore ? `At least ${sayNumber(number)}: more are not counted.` : ""}>${sayNumber(number)}${isMore && "+"}</span>`;
}
