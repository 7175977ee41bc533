/** The events of the present filter over time; a range that is chosen becomes part of the filter. */
import type { HistogramView } from "../../src/engine/event/histogram.ts";
import { writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { isReading } from "../ground/reading.ts";
import { setQuery } from "../ground/route.ts";
import { useLoad } from "../ground/use-load.ts";
import { Histogram } from "../part/histogram.ts";

const REFRESH_MS = 10_000;

export function EventHistogram({
  place,
  filter,
}: {
  place: Place;
  filter: Readonly<Record<string, string>>;
}): View {
  const path = apiPath(place, "events", "histogram") + writeQuery(filter);
  const { data } = useLoad<{ histogram: HistogramView }>(path, REFRESH_MS, isReading);
  // What it will take is kept free, so that the list does not jump; a filter that cannot be drawn is told by the list.
  if (data === undefined) return html`<div class="histogram histogram-room" aria-hidden="true" />`;
  const { bars, everyMs, approximate } = data.histogram;
  return html`<${Histogram} label="Events over time" bars=${bars} everyMs=${everyMs} approximate=${approximate}
    onChoose=${(since: string, until: string) => setQuery({ since, until, hours: "" })} />`;
}
