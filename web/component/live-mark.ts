/** Marks that say whether the shown data refreshes, and if not, why. Nothing counts as live while the service cannot be reached. */
import { unservedSince } from "../base/api.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { liveness } from "../base/live.ts";
import { useRests } from "../base/reading.ts";
import { serviceNow } from "../base/service-clock.ts";
import { formatFullTime, formatMoment } from "../base/time-words.ts";
import { StateShape } from "./state-mark.ts";

const REST_WORDS = {
  hidden: "Paused while the tab is hidden",
  scrolled: "Paused while you read: scroll up to continue",
  selected: "Paused while text is selected",
} as const;

/** Mark of a list, which does not refresh while the user reads. `ServiceMark` shows every other state. */
export function LiveMark(): View {
  const rests = useRests();
  if (rests === null) return null;
  return html`<span class="live"><${StateShape} state="paused" />${REST_WORDS[rests]}</span>`;
}

/** Mark of the whole page. */
export function ServiceMark(): View {
  const now = useCell(liveness);
  const unserved = useCell(unservedSince);
  const before = (since: string, title: string): View =>
    html`<span class="live away" title=${title}><${StateShape} state="failed" />From before ${formatMoment(since, serviceNow())}</span>`;
  if (now.kind === "away")
    return before(
      now.since,
      `The service has not answered since ${formatFullTime(now.since)}; the dashboard retries every few seconds.`,
    );
  if (unserved !== null)
    return before(
      unserved,
      `The service answers, but its database has not worked since ${formatFullTime(unserved)}; the dashboard retries automatically.`,
    );
  return now.kind === "live"
    ? html`<span class="live on" title="Changes appear here at once."><${StateShape} state="done" />Live</span>`
    : html`<span class="live" title="The page loads new data every few seconds."><${StateShape} state="running" />Refreshing</span>`;
}
