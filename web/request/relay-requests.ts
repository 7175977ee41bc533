/** Last requests of one receiver that became no event, each with its cause, and requests to a similar unknown name. */

import { useState } from "preact/hooks";
import type { Page, RecentRequest, UnknownRequest } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Notice, Skeleton } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { RelayImport } from "../relay/relay-import.ts";
import { RequestRow, UnknownRequestNotice } from "./request-row.ts";
import { gatherLike } from "./similar-requests.ts";

const REFRESH_MS = 5_000;
const SHOWN_CALLS = 6;

export function RelayRequests({ place, name }: { place: Place; name: string }): View {
  const [isImporting, setImporting] = useState(false);
  const query = writeQuery({ relay: name, limit: SHOWN_CALLS });
  const calls = useLoad<Page<RecentRequest>>(apiPath(place, "calls") + query, REFRESH_MS);
  const unknown = useLoad<Page<UnknownRequest>>(`${apiPath(place, "unknown-calls")}?limit=200`, REFRESH_MS);
  const meant = (unknown.data?.items ?? []).filter(({ nearest }) => nearest === name);
  const items = calls.data?.items;
  return html`<section class="block" aria-label="Rejected and ignored requests">
    <div class="block-head"><h2>Rejected and ignored requests</h2><div class="page-actions">
      <button data-needs="edit_definitions" type="button" onClick=${() => setImporting(true)}>Import missed events…</button>
      ${
        items !== undefined &&
        items.length > 0 &&
        html`<a class="button" href=${pagePath(place, "requests") + writeQuery({ relay: name })}>All requests</a>`
      }</div></div>
    ${isImporting && html`<${RelayImport} place=${place} name=${name} onClose=${() => setImporting(false)} />`}
    ${meant.map((call) => html`<${UnknownRequestNotice} key=${call.id} place=${place} call=${call} />`)}
    ${calls.error !== null && html`<${Notice} kind="warn"><${Sentence} text=${calls.error} /><//>`}
    ${
      items === undefined
        ? calls.error === null && html`<${Skeleton} rows=${2} />`
        : items.length === 0
          ? html`<p class="none">No request was rejected or ignored.</p>`
          : html`<ul class="calls">${gatherLike(items).map((calls) => html`<${RequestRow} key=${calls.at(-1)?.id} place=${place} calls=${calls} withRelay=${calls[0].relay !== name} />`)}</ul>`
    }
  </section>`;
}
