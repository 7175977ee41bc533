/** Histogram of the filtered events. A chosen range becomes part of the filter. */
import type { HistogramView } from "../../src/engine/event/histogram.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { isReading } from "../base/reading.ts";
import { setQuery } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { Histogram } from "../component/histogram.ts";

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
  // Reserves the space of the histogram, so that the list does not jump. The list reports an invalid filter.
  if (data === undefined) return html`<div class="histogram histogram-room" aria-hidden="true" />`;
  const { bars, everyMs, approximate } = data.histogram;
  return html`<${Histogram} label="Events over time" bars=${bars} everyMs=${everyMs} approximate=${approximate}
    onChoose=${(since: string, until: string) => setQuery({ since, until, hours: "" })} />`;
}
