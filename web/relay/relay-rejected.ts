/** List of the events that a relay rejected while its secret or recipe was wrong: which of them arrived since then, and the import of the others. */
import { useState } from "preact/hooks";
import type { RejectedView } from "../../src/rules/relay/rejected-request.ts";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { EndDialog } from "../component/end-dialog.ts";
import { LoadingState, StaleNotice } from "../component/notice.ts";
import { breakable, SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { Moment } from "../component/time.ts";
import { RelayImport } from "./relay-import.ts";

const REFRESH_MS = 5_000;
const SHOWN_ITEMS = 200;
const MAX_ID_CHARS = 80;

export function RelayRejected({ place, name }: { place: Place; name: string }): View {
  const path = `${apiPath(place, "relays", name)}/rejected`;
  const { data, error, reload } = useLoad<{ rejected: RejectedView }>(path, REFRESH_MS);
  const [asks, setAsks] = useState<"import" | "close" | null>(null);
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${4} onRetry=${reload} />`;
  const { rejected } = data;
  const changes = [apiPath(place, "relays"), apiPath(place, "overview"), "/api/overview"];
  const finish = (): void => {
    setAsks(null);
    for (const changed of changes) invalidate(changed);
  };
  return html`<section class="block" aria-label="Missing events">
    <div class="block-head"><h2>Missing events</h2><div class="page-actions">
      ${rejected.since !== null && html`<button data-needs="edit_definitions" type="button" class="primary" onClick=${() => setAsks("import")}>Import the missing events…</button>`}
      ${rejected.since !== null && !rejected.ongoing && html`<button data-needs="replay" type="button" onClick=${() => setAsks("close")}>Close the list…</button>`}
    </div></div>
    ${error !== null && html`<${StaleNotice} error=${error} />`}
    <div class="stack"><p><${Sentence} text=${rejected.message} /></p>
      ${rejected.items.length > 0 && html`<${Items} place=${place} items=${rejected.items} />`}</div>
    ${asks === "import" && html`<${RelayImport} place=${place} name=${name} onClose=${finish} />`}
    ${
      asks === "close" &&
      html`<${EndDialog} title="Close the list of ${name}?" words=${formatConsequence(rejected)} act="Close the list" method="POST"
        path="${path}/close" changes=${changes} done="Closed. The list is deleted." onClose=${finish} />`
    }
  </section>`;
}

function formatConsequence({ missing, withoutId }: RejectedView): string {
  const left = [
    ...(missing > 0 ? [`${formatCount(missing, "event")} still missing`] : []),
    ...(withoutId > 0 ? [`${formatCount(withoutId, "request")} without a readable event id`] : []),
  ];
  return `Relay deletes the list (${left.join(", ")}) and Home no longer shows it. Events that arrive later run as usual. Close the list only if nothing more is to come.`;
}

/** The missing events first, in the order of their first request. */
function Items({ place, items }: { place: Place; items: RejectedView["items"] }): View {
  const sorted = [...items].sort(
    (one, other) => Number(one.arrivedAt !== null) - Number(other.arrivedAt !== null),
  );
  const left = sorted.length - SHOWN_ITEMS;
  return html`<p class="quiet">Relay took the ids and types from requests that it could not verify.</p>
    <ul class="calls" aria-label="Events of rejected requests">${sorted.slice(0, SHOWN_ITEMS).map(
      ({ eventId, eventType, firstAt, arrivedAt, event }) =>
        html`<li key=${eventId}><p class="call-head">
          ${arrivedAt === null ? html`<${StateMark} state="refused" word="Missing" />` : html`<${StateMark} state="done" word="Arrived" />`}
          <code class="wrap"><${SafeText} text=${eventId} limit=${MAX_ID_CHARS} /></code>
          ${eventType !== null && html`<bdi class="call-type">${breakable(eventType)}</bdi>`}
          ${event !== null && html`<a href=${pagePath(place, "events", event)} aria-label="Open event ${event}">Open event</a>`}
          <span class="call-time">first rejected at <${Moment} at=${firstAt} /></span></p></li>`,
    )}</ul>
    ${left > 0 && html`<p class="quiet">${formatNumber(left)} more are not shown.</p>`}`;
}
