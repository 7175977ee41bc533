/** List of a collection's records, newest first. The address holds the owner filter and the search. */
import { useState } from "preact/hooks";
import { writeQuery } from "../base/api.ts";
import { isObject, type Json, writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { type List, useList } from "../base/use-list.ts";
import { useLoad } from "../base/use-load.ts";
import { Icon } from "../component/icon.ts";
import { EmptyState, LoadingState, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { PageHead } from "../component/page-head.ts";
import { PersonById } from "../component/person-link.ts";
import { SafeText } from "../component/safe-text.ts";
import { SearchBox } from "../component/search-box.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";
import { CollectionForm } from "./collection-form.ts";
import { Listeners } from "./listeners.ts";
import { RecordEditor } from "./record-editor.ts";
import { emptyData, fieldNames, type Record, type ShownCollection } from "./shape.ts";
import { Writer } from "./writer.ts";

const REFRESH_MS = 5_000;
const SHOWN_FIELDS = 4;
const CELL_CHARS = 60;

export function RecordListPage({ place, params, query }: PageProps): View {
  const name = params.collection ?? "";
  const shown = useLoad<ShownCollection>(apiPath(place, "collections", name)).data;
  const owned = { owner: query.get("owner"), to: query.get("to") };
  const path = apiPath(place, "collections", name, "records");
  const q = query.get("q") ?? "";
  const records = useList<Record>(path + writeQuery({ ...owned, q }), REFRESH_MS);
  const [isMaking, setMaking] = useState(false);
  const [isChanging, setChanging] = useState(false);
  const person = owned.owner ?? owned.to;
  const back = { back: "Records", backTo: pagePath(place, "records") };
  return html`<${PageHead} title=${name} ...${back} aside=${
    shown !== undefined && html`<span class="chip">${shown.collection.kind}</span>`
  }>${
    shown !== undefined &&
    html`<button data-needs="edit_records" type="button" onClick=${() => setMaking(true)}><${Icon} name="plus" size=${14} />New record…</button>
      <button data-needs="edit_definitions" type="button" onClick=${() => setChanging(true)}>Fields…</button>`
  }<//>
    ${isChanging && shown !== undefined && html`<${CollectionForm} place=${place} collection=${shown.collection} onClose=${() => setChanging(false)} />`}
    ${shown !== undefined && html`<${Listeners} place=${place} listeners=${shown.listeners} />`}
    <div class="filters" role="search" aria-label="Filter records">
      <${SearchBox} value=${q} label="Text in a record" needs="read_payloads" onValue=${(typed: string) => setQuery({ q: typed.trim() })} />
      ${person !== null && html`<span class="chip">${owned.owner !== null ? "of" : "for"} <${PersonById} place=${place} id=${person} /></span>`}
      ${(person !== null || q !== "") && html`<button type="button" class="link" onClick=${showAll}>Clear</button>`}</div>
    ${records.error !== null && records.items !== undefined && html`<${StaleNotice} error=${records.error} />`}
    ${
      records.items === undefined
        ? html`<${LoadingState} error=${records.error} isGone=${records.isGone} ...${back} onRetry=${records.reload} />`
        : records.items.length === 0
          ? html`<${None} list=${records} name=${name} isFiltered=${person !== null || q !== ""} />`
          : html`<${Table} label="Records of ${name}" columns=${columnsOf(place, name, fieldNames(shown?.collection.fields ?? null))} items=${records.items} />
            <${OlderButton} list=${records} none="No more entries." />`
    }
    ${
      isMaking &&
      shown !== undefined &&
      html`<${RecordEditor} place=${place} collection=${shown} data=${emptyData(shown.collection.fields)} onClose=${() => setMaking(false)} />`
    }`;
}

function showAll(): void {
  setQuery({ owner: "", to: "", q: "" });
}

/** A page of the API scans a bounded number of records, so an empty page does not mean that nothing matches. */
function None({ list, name, isFiltered }: { list: List<Record>; name: string; isFiltered: boolean }): View {
  if (list.next !== null) {
    return html`<${EmptyState} icon="search" title="No match among the newest"><p>Relay has not searched the older ones yet.</p>
      <button type="button" class="primary" disabled=${list.isLoadingOlder} onClick=${list.loadOlder}>
        ${list.isLoadingOlder ? "Searching…" : "Search older ones"}</button><//>`;
  }
  if (isFiltered)
    return html`<${EmptyState} icon="search" title="No record matches"><button type="button" onClick=${showAll}>Show all</button><//>`;
  return html`<${EmptyState} icon="records" title="No records yet">
    <p>Records that your app and your relays write to ${name} appear here.</p><//>`;
}

function columnsOf(place: Place, collection: string, fields: readonly string[]): Column<Record>[] {
  return [
    {
      name: "id",
      title: "Record",
      priority: 1,
      size: "short",
      cell: ({ id, odd }) =>
        html`<a data-row href=${pagePath(place, "records", collection, id)} >…${id.slice(-8)}<span class="off-screen"> record ${id}</span></a>${odd !== undefined && html` <span class="chip" title=${odd}>unreadable</span>`}`,
    },
    ...fields.slice(0, SHOWN_FIELDS).map(
      (field, at): Column<Record> => ({
        name: `field-${at}`,
        title: field,
        priority: at === 0 ? 1 : 3,
        cell: ({ data }) => html`<${Cell} data=${data} name=${field} />`,
      }),
    ),
    {
      name: "by",
      title: "Written by",
      priority: 2,
      size: "address",
      cell: (record) => html`<${Writer} place=${place} record=${record} />`,
    },
    timeColumn("time", "Changed", 2, ({ updatedAt }) => updatedAt),
  ];
}

function Cell({ data, name }: { data: Json; name: string }): View {
  const value = isObject(data) && Object.hasOwn(data, name) ? data[name] : undefined;
  if (value === undefined || value === null) return html`<span class="quiet">–</span>`;
  const text = typeof value === "string" ? value : writeExact(value);
  return html`<span class="clip"><${SafeText} text=${text.length > CELL_CHARS ? `${text.slice(0, CELL_CHARS)}…` : text} /></span>`;
}
