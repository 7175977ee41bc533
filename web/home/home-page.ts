/** Home, the first screen: what needs you with its way out, then how the last 24 hours went. Before the first event, what is still to do. */
import { useState } from "preact/hooks";
import type { BulkFilter } from "../../src/event/bulk-choice.ts";
import type { OverviewView } from "../../src/overview/overview.ts";
import { BulkReplayLine } from "../event/bulk-progress.ts";
import { BulkReplay } from "../event/bulk-replay.ts";
import { writeQuery } from "../ground/api.ts";
import { sayCount, sayNumber } from "../ground/count-words.ts";
import { html, type View } from "../ground/html.ts";
import { invalidate } from "../ground/loaded.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { sayExactly } from "../ground/time-words.ts";
import { useLoad } from "../ground/use-load.ts";
import { Icon } from "../part/icon.ts";
import { ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { Ago } from "../part/time.ts";
import { FirstSteps } from "./first-steps.ts";
import { HourBars } from "./hour-bars.ts";
import { NeedItem, needPaths } from "./need-item.ts";
import { RelaysByTrouble } from "./relays-by-trouble.ts";

const REFRESH_MS = 5_000;
const PLACE_WORDS = { local: "local development", development: "development", production: "production" };

export function HomePage({ place }: PageProps): View {
  const { data, error, reload } = useLoad<OverviewView>(apiPath(place, "overview"), REFRESH_MS);
  // The need goes once its events are replayed; the dialog stays until it is closed, so that its outcome is read.
  const [chosen, setChosen] = useState<BulkFilter | null>(null);
  const close = (): void => {
    setChosen(null);
    for (const path of needPaths(place)) invalidate(path);
  };
  const head = html`<${PageHead} title="Home" />`;
  if (data === undefined) {
    if (error !== null) return html`${head}<${ErrorState} error=${error} onRetry=${reload} />`;
    return html`${head}<${Skeleton} rows=${6} />`;
  }
  const { needs, more, start } = data;
  return html`${head}
    ${error !== null && html`<${Notice} kind="warn">${error} What you see is from before.<//>`}
    <${BulkReplayLine} place=${place} />
    ${
      needs.length > 0 &&
      html`<section class="block needs" aria-label="Needs you">
        <div class="block-head"><h2>Needs you</h2>
          <span class="quiet">${sayCount(needs.length, "thing")}${more ? " and more" : ""} in ${PLACE_WORDS[place.environment]}</span></div>
        <ul class="need-list">${needs.map(
          (need) =>
            html`<${NeedItem} key="${need.code} ${need.target}" place=${place} need=${need} onReplay=${setChosen} />`,
        )}</ul>
        ${more && html`<p class="quiet">There is more: <a href=${pagePath(place, "attention")}>see everything that stands</a>.</p>`}
      </section>`
    }
    ${start === null ? html`<${Day} place=${place} data=${data} />` : html`<${FirstSteps} place=${place} start=${start} />`}
    ${chosen !== null && html`<${BulkReplay} place=${place} filter=${chosen} onClose=${close} />`}`;
}

function Day({ place, data }: { place: Place; data: OverviewView }): View {
  return html`
    ${
      data.needs.length === 0 &&
      html`<p class="calm"><${Icon} name="check" size=${18} /><span><b>Nothing needs you.</b> Every relay does what it should, as far as can be told.</span></p>`
    }
    <section class="block" aria-label="Last 24 hours"><div class="block-head"><h2>Last 24 hours</h2>
      ${data.approximate === true && html`<span class="quiet">about: there were more events than are counted</span>`}</div>
      <${Figures} place=${place} data=${data} />
      <${HourBars} place=${place} hours=${data.hours} /></section>
    <${RelaysByTrouble} place=${place} data=${data} />`;
}

const STATES = [
  ["done", "Done", "done"],
  ["waiting", "Waiting", "queued"],
  ["failed", "Failed", "failed"],
  ["dead", "Dead", "dead"],
] as const;

function Figures({ place, data: { last24h, refused, ticks } }: { place: Place; data: OverviewView }): View {
  const tick = ticks[0];
  return html`<ul class="figures">
    ${STATES.map(([name, words, state]) => {
      const href = pagePath(place, "events") + writeQuery({ state, hours: 24 });
      return html`<li key=${name} class="figure figure-${name} ${last24h[name] > 0 ? "some" : ""}"><a href=${href}>
        <b>${sayNumber(last24h[name])}</b> <span><i class="swatch swatch-${name}" aria-hidden="true" />${words}</span></a></li>`;
    })}
    <li class="figure figure-refused ${refused.calls > 0 ? "some" : ""}"><a href=${pagePath(place, "calls") + writeQuery({ outcome: "refused" })}>
      <b>${sayNumber(refused.calls)}</b> <span>Refused calls</span></a></li>
    ${
      tick !== undefined &&
      html`<li class="figure"><a href=${pagePath(place, "relays", tick.relay)} title=${sayExactly(tick.at)}>
        <b><${Ago} at=${tick.at} /></b> <span>Next tick: ${tick.relay}</span></a></li>`
    }
  </ul>`;
}
