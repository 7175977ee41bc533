/** Recent activity: a range stored in the address, the range's events over time by state, and its figures. */
import { useRef } from "preact/hooks";
import type { HistogramView } from "../../src/engine/event/histogram.ts";
import type { OverviewView } from "../../src/insight/overview/overview.ts";
import type { UrlTimesView } from "../../src/insight/overview/url-time.ts";
import { writeQuery } from "../base/api.ts";
import { formatCount, formatNumber, OUTCOMES, totalOf } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { formatFullTime, MINUTE_MS, useNow } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { Histogram } from "../component/histogram.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { StateShape } from "../component/state-mark.ts";
import { type Tab, TabLinks } from "../component/tab-links.ts";
import { Ago } from "../component/time.ts";

const REFRESH_MS = 10_000;
const RANGES = [
  ["1h", "1 hour", 1],
  ["", "24 hours", 24],
  ["7d", "7 days", 168],
  ["30d", "30 days", 720],
] as const;
const STATES = [
  ["done", "Done", "done"],
  ["waiting", "Queued", "queued"],
  ["failed", "Failed", "failed"],
  ["dead", "Dead", "dead"],
] as const;

export function Pulse({
  place,
  data,
  query,
}: {
  place: Place;
  data: OverviewView;
  query: URLSearchParams;
}): View {
  const asked = query.get("range") ?? "";
  const [name, words, hours] = RANGES.find(([one]) => one === asked) ?? RANGES[1];
  // Moves the start of the range in whole steps, so that the API address changes seldom. The old data stays until the next arrives.
  const stepMs = hours === 1 ? MINUTE_MS : 5 * MINUTE_MS;
  const since = new Date(
    Math.floor(useNow(MINUTE_MS) / stepMs) * stepMs - hours * 60 * MINUTE_MS,
  ).toISOString();
  const drawn = useRange<{ histogram: HistogramView }>(
    name,
    apiPath(place, "events", "histogram") + writeQuery({ since }),
  );
  const times = useRange<{ urls: UrlTimesView }>(name, apiPath(place, "url-times") + writeQuery({ since }));
  const histogram = drawn.data?.histogram;
  const tabs: Tab[] = RANGES.map(([range, title]) => ({
    name: range,
    title,
    href: pagePath(place, "home") + writeQuery({ range }),
  }));
  const choose = (since: string, until: string): void =>
    navigate(pagePath(place, "events") + writeQuery({ since, until }));
  return html`<section class="block" aria-label="Arrived in the last ${words}"><div class="block-head"><h2>Arrived in the last ${words}</h2></div>
    <${TabLinks} label="Range" tabs=${tabs} chosen=${name} />
    <${Figures} place=${place} data=${data} hours=${hours} histogram=${histogram} urls=${times.data?.urls} />
    ${drawn.error !== null && html`<${Notice} kind="warn"><${Sentence} text=${drawn.error} /><//>`}
    ${
      histogram === undefined
        ? html`<div class="histogram histogram-room" aria-hidden="true" />`
        : html`<${Histogram} label="Events over time" bars=${histogram.bars} everyMs=${histogram.everyMs} approximate=${histogram.approximate} onChoose=${choose} />`
    }</section>`;
}

/** Loads an address and keeps the last answer of the same range until the next one arrives. */
function useRange<Answer>(name: string, path: string): { data: Answer | undefined; error: string | null } {
  const { data, error } = useLoad<Answer>(path, REFRESH_MS);
  const last = useRef<{ name: string; data: Answer } | null>(null);
  if (data !== undefined) last.current = { name, data };
  return { data: last.current?.name === name ? last.current.data : undefined, error };
}

/** Formats `340 ms` or `1.2 s`. */
function formatTook(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function Figures({
  place,
  data: { ticks },
  hours,
  histogram,
  urls,
}: {
  place: Place;
  data: OverviewView;
  hours: number;
  histogram: HistogramView | undefined;
  urls: UrlTimesView | undefined;
}): View {
  const counts = histogram === undefined ? null : addUp(histogram.bars);
  const about = histogram?.approximate === true ? "about " : "";
  return html`<ul class="figures">
    ${STATES.map(([name, words, state]) => {
      const href = pagePath(place, "events") + writeQuery({ state, hours });
      return html`<li key=${name} class="figure figure-${name} ${counts !== null && counts[name] > 0 ? "some" : ""}"><a href=${href}>
        <b>${counts === null ? "…" : about + formatNumber(counts[name])}</b> <span><${StateShape} state=${name} />${words}</span></a></li>`;
    })}
    <${Refused} place=${place} counts=${counts} />
    ${
      urls !== undefined &&
      urls.p95Ms !== null &&
      html`<li class="figure"><a href=${urls.slowest === null ? null : pagePath(place, "relays", urls.slowest)}
        title="For the newest ${formatCount(urls.calls, "request")}: median ${formatTook(urls.p50Ms ?? 0)}, 95th percentile ${formatTook(urls.p95Ms)}. Slowest relay: ${urls.slowest ?? ""}.">
        <b>${formatTook(urls.p95Ms)}</b> <span>Receiver response time, p95</span></a></li>`
    }
    ${ticks.slice(0, 1).map(
      ({
        relay,
        at,
      }) => html`<li key=${relay} class="figure"><a href=${pagePath(place, "relays", relay)} title=${ticks.map((one) => `${one.relay}: ${formatFullTime(one.at)}`).join("\n")}>
        <b><${Ago} at=${at} /></b> <span>Next tick: ${relay}</span></a></li>`,
    )}
  </ul>
  ${ticks.length > 1 && html`<p class="quiet">Then ${ticks.slice(1).map(({ relay, at }, index) => html`${index > 0 && ", "}<a href=${pagePath(place, "relays", relay)}>${relay}</a> <${Ago} at=${at} />`)}.</p>`}`;
}

/** Shows how many requests were rejected, and their share of all requests. */
function Refused({ place, counts }: { place: Place; counts: ReturnType<typeof addUp> | null }): View {
  const rejected = counts?.rejected ?? 0;
  const requests = counts === null ? 0 : rejected + totalOf(counts);
  const share = requests === 0 ? 0 : Math.round((rejected / requests) * 1_000) / 10;
  const words = `Rejected requests${rejected > 0 ? ` (${share}\u00a0%)` : ""}`;
  return html`<li class="figure figure-refused ${rejected > 0 ? "some" : ""}"><a href=${pagePath(place, "requests") + writeQuery({ outcome: "refused" })}>
      <b>${counts === null ? "…" : formatNumber(rejected)}</b> <span><${StateShape} state="refused" />${words}</span></a></li>`;
}

function addUp(bars: HistogramView["bars"]) {
  const sum = { done: 0, waiting: 0, failed: 0, dead: 0, rejected: 0 };
  for (const bar of bars) {
    for (const outcome of OUTCOMES) sum[outcome] += bar[outcome];
    sum.rejected += bar.rejected;
  }
  return sum;
}
