/** One record as JSON, with whose it is and who wrote it. */
import { writeExact } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, pagePath } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { CopyButton } from "../part/copy-button.ts";
import { JsonView } from "../part/json-view.ts";
import { ErrorState, Skeleton } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { SafeText } from "../part/safe-text.ts";
import { Ago } from "../part/time.ts";
import type { RecordView } from "./record-list.ts";

export function RecordPage({ place, params }: PageProps): View {
  const { collection = "", id = "" } = params;
  const { data, error, reload } = useLoad<{ record: RecordView }>(
    apiPath(place, "collections", collection, "records", id),
  );
  const head = html`<${PageHead} title="Record of ${collection}" back=${collection} backTo=${pagePath(place, "collections", collection)} />`;
  if (data === undefined)
    return html`${head}${error === null ? html`<${Skeleton} />` : html`<${ErrorState} error=${error} onRetry=${reload} />`}`;
  const { record } = data;
  return html`${head}
    <dl class="facts">
      <div><dt>Record</dt><dd><code>${record.id}</code>
        <${CopyButton} text=${record.id} label="Copy the record id" words=${null} /></dd></div>
      <div><dt>Owner</dt><dd>${record.owner ?? html`<span class="quiet">the app</span>`}</dd></div>
      ${record.recipient !== null && html`<div><dt>For</dt><dd>${record.recipient}</dd></div>`}
      <div><dt>Written by</dt><dd><${SafeText} text=${record.by} limit=${80} /></dd></div>
      <div><dt>Made</dt><dd><${Ago} at=${record.createdAt} /></dd></div>
      <div><dt>Changed</dt><dd><${Ago} at=${record.updatedAt} /></dd></div>
    </dl>
    <section class="block" aria-label="Data"><div class="block-head"><h2>Data</h2><div class="page-actions">
      <${CopyButton} text=${writeExact(record.data, 2)} label="Copy the data as JSON" /></div></div>
      <${JsonView} value=${record.data} label="Data" /></section>`;
}
