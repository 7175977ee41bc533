/** List of open attention items, each with its cause and its fix. Home shows the same list, and the navigation counts it. */
import { useState } from "preact/hooks";
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import type { OverviewView } from "../../src/insight/overview/overview.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { EmptyState, LoadingState, StaleNotice } from "../component/notice.ts";
import { BulkReplayLine } from "../event/bulk-progress.ts";
import { BulkReplay } from "../event/bulk-replay.ts";
import { AttentionRow, needPaths } from "../home/attention-item.ts";

const REFRESH_MS = 5_000;

export function AttentionList({ place }: { place: Place }): View {
  const { data, error, reload } = useLoad<OverviewView>(apiPath(place, "overview"), REFRESH_MS);
  // The item disappears once its events are replayed, but the dialog stays open so that the user can read the outcome.
  const [chosen, setChosen] = useState<BulkFilter | null>(null);
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${4} onRetry=${reload} />`;
  const { needs, more } = data;
  const close = (): void => {
    setChosen(null);
    for (const path of needPaths(place)) invalidate(path);
  };
  return html`${error !== null && html`<${StaleNotice} error=${error} />`}
    <${BulkReplayLine} place=${place} />
    ${
      needs.length === 0
        ? html`<${EmptyState} icon="check" title="Nothing needs attention"><p>Problems of relays and dead events that were not replayed appear here at once.</p><//>`
        : html`<section class="needs" aria-label="Needs attention"><h2 class="off-screen">Needs attention</h2><ul class="need-list">${needs.map(
            (need) =>
              html`<${AttentionRow} key="${need.code} ${need.target}" place=${place} need=${need} onReplay=${setChosen} />`,
          )}</ul>${more && html`<p class="quiet">This list is not complete. The other tabs show everything.</p>`}</section>`
    }
    ${chosen !== null && html`<${BulkReplay} place=${place} filter=${chosen} onClose=${close} />`}`;
}
