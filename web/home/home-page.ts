/** Home page: the open attention items and the recent activity, or the remaining first steps before the first event. */
import { useEffect, useState } from "preact/hooks";
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import type { OverviewView } from "../../src/insight/overview/overview.ts";
import { UnlessWaiting, WaitingApprovals } from "../approval/waiting-approvals.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { Icon } from "../component/icon.ts";
import { ErrorState, Skeleton, StaleNotice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { BulkReplayLine } from "../event/bulk-progress.ts";
import { BulkReplay } from "../event/bulk-replay.ts";
import { NearLimits } from "../settings/limit-usage.ts";
import { AttentionRow, needPaths } from "./attention-item.ts";
import { FirstSteps } from "./first-steps.ts";
import { Pulse } from "./pulse.ts";
import { RelaysByTrouble } from "./relays-by-trouble.ts";

const REFRESH_MS = 5_000;
const PLACE_WORDS = { local: "local development", development: "development", production: "production" };

export function HomePage({ place, query }: PageProps): View {
  const { data, error, reload } = useLoad<OverviewView>(apiPath(place, "overview"), REFRESH_MS);
  // The item disappears once its events are replayed, but the dialog stays open so that the user can read the outcome.
  const [chosen, setChosen] = useState<BulkFilter | null>(null);
  // A user who fixed the cause on another page returns with the name of the relay. Its dead events can be replayed now.
  const fixed = query.get("replay") ?? "";
  const isFixed = data?.needs.some(({ relay, dead }) => relay === fixed && dead?.cause.stands === "no");
  useEffect(() => {
    if (isFixed !== true) return;
    setChosen({ state: "dead", relay: fixed });
    setQuery({ replay: "" });
  }, [isFixed, fixed]);
  const close = (): void => {
    setChosen(null);
    for (const path of needPaths(place)) invalidate(path);
  };
  const head = html`<${PageHead} title="Home" />${isOnTheWay(place) && html`<${WaitingApprovals} place=${place} />`}`;
  if (data === undefined) {
    if (error !== null) return html`${head}<${ErrorState} error=${error} onRetry=${reload} />`;
    return html`${head}<${Skeleton} rows=${6} />`;
  }
  const { needs, more, start } = data;
  return html`${head}
    ${error !== null && html`<${StaleNotice} error=${error} />`}
    <${BulkReplayLine} place=${place} />
    ${
      needs.length > 0 &&
      html`<section class="block needs" aria-label="Needs attention">
        <div class="block-head"><h2>Needs attention</h2>
          <span class="quiet">${formatNeeds(needs, place)}${more ? ", and more" : ""}</span></div>
        <ul class="need-list">${needs.map(
          (need) =>
            html`<${AttentionRow} key="${need.code} ${need.target}" place=${place} need=${need} onReplay=${setChosen} />`,
        )}</ul>
        ${more && html`<p class="quiet">The list is not complete: <a href=${pagePath(place, "alerts")}>show all open items</a>.</p>`}
      </section>`
    }
    <${NearLimits} place=${place} />
    ${start === null ? html`<${Day} place=${place} data=${data} query=${query} />` : html`<${FirstSteps} place=${place} start=${start} />`}
    ${chosen !== null && html`<${BulkReplay} place=${place} filter=${chosen} onClose=${close} />`}`;
}

/** Counts the items as the navigation does: an item of the server does not count for the environment. */
function formatNeeds(needs: OverviewView["needs"], { environment }: Place): string {
  const server = needs.filter(({ target }) => target === "server").length;
  const own = needs.length - server;
  const words = `${formatCount(own, "item")} in ${PLACE_WORDS[environment]}`;
  if (server === 0) return words;
  return own === 0 ? `${formatCount(server, "item")} of the server` : `${words}, ${server} of the server`;
}

/**
 * Reports whether this page shows pending changes of production. Development shows them because they are made there. In production they are attention
 * items.
 */
const isOnTheWay = ({ environment }: Place): boolean => environment === "development";

function Day({ place, data, query }: { place: Place; data: OverviewView; query: URLSearchParams }): View {
  const calm = html`<p class="calm"><${Icon} name="check" size=${18} /><span><b>Nothing needs attention.</b> Relay found no problem with any relay.</span></p>`;
  return html`
    ${data.needs.length === 0 && (isOnTheWay(place) ? html`<${UnlessWaiting} place=${place}>${calm}<//>` : calm)}
    <${Pulse} place=${place} data=${data} query=${query} />
    <${RelaysByTrouble} place=${place} data=${data} />`;
}
