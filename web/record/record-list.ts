/** The records of a collection, newest records. */
import type { RecordView as Shown } from "../../src/records/record.ts";
import { isObject, type Json, writeExact } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, pagePath } from "../ground/place.ts";
import { useList } from "../ground/use-list.ts";
import { useLoad } from "../ground/use-load.ts";
import { EmptyState, ErrorState, Skeleton } from "../part/notice.ts";
import { OlderButton } from "../part/older-button.ts";
import { PageHead } from "../part/page-head.ts";
import { SafeText } from "../part/safe-text.ts";
import { Ago } from "../part/time.ts";
import { type Collection, fieldNames } from "./collection-list.ts";

export type RecordView = Omit<Shown, "data"> & { data: Json };

const SHOWN_FIELDS = 4;
const CELL_CHARS = 60;

export function RecordListPage({ place, params }: PageProps): View {
  const name = params.collection ?? "";
  const collection = useLoad<{ collection: Collection }>(apiPath(place, "collections", name)).data
    ?.collection;
  const path = apiPath(place, "collections", name, "records");
  const records = useList<RecordView>(path, 5_000);
  const columns = fieldNames(collection?.fields ?? null).slice(0, SHOWN_FIELDS);
  return html`<${PageHead} title=${name} back="Records" backTo=${pagePath(place, "collections")} aside=${
    collection !== undefined &&
    html`<span class="chip">
    ${collection.kind}</span>`
  } />
    ${
      records.items === undefined
        ? records.error === null
          ? html`<${Skeleton} />`
          : html`<${ErrorState} error=${records.error} onRetry=${records.reload} />`
        : records.items.length === 0
          ? html`<${EmptyState} icon="records" title="No records yet">
            <p>What your app and your relays write to ${name} appears here.</p><//>`
          : html`<div class="scroll-x"><table class="list records"><thead><tr><th scope="col">Record</th>
            ${columns.map((column) => html`<th key=${column} scope="col">${column}</th>`)}
            <th scope="col">Written by</th><th scope="col">Changed</th></tr></thead>
            <tbody>${records.items.map(
              (record) => html`<tr key=${record.id}>
                <td class="cell-id">
                  <a data-row href=${pagePath(place, "collections", name, record.id)} aria-label="Record ${record.id}">…${record.id.slice(-8)}
                  </a></td>
                ${columns.map((column) => html`<td key=${column}><${Cell} data=${record.data} name=${column} /></td>`)}
                <td><${SafeText} text=${record.by} limit=${80} /></td><td class="cell-time">
                  <${Ago} at=${record.updatedAt} /></td></tr>`,
            )}</tbody></table></div>
            <${OlderButton} list=${records} none="These are all." />`
    }`;
}

function Cell({ data, name }: { data: Json; name: string }): View {
  const value = isObject(data) && Object.hasOwn(data, name) ? data[name] : undefined;
  if (value === undefined || value === null) return html`<span class="quiet">–</span>`;
  const text = typeof value === "string" ? value : writeExact(value);
  return html`<span class="clip">
    <${SafeText} text=${text.length > CELL_CHARS ? `${text.slice(0, CELL_CHARS)}…` : text} /></span>`;
}
