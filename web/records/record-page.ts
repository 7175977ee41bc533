/** Page of one record: its data as a tree or text, its owner, who wrote it with which event, and the relays that a change triggers. */
import { useState } from "preact/hooks";
import { writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { EndDialog } from "../component/end-dialog.ts";
import { JsonView } from "../component/json-view.ts";
import { LoadingState, Notice, StaleNotice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { PersonById } from "../component/person-link.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { type Tab, TabLinks } from "../component/tab-links.ts";
import { Ago } from "../component/time.ts";
import { Listeners } from "./listeners.ts";
import { RecordEditor } from "./record-editor.ts";
import { type HeldFile, heldFiles, type Record, type ShownCollection } from "./shape.ts";
import { Writer } from "./writer.ts";

const REFRESH_MS = 5_000;
const RAW_CHARS = 20_000;

export function RecordPage({ place, params, query }: PageProps): View {
  const { collection = "", id = "" } = params;
  const path = apiPath(place, "collections", collection, "records", id);
  const { data, error, isGone, reload } = useLoad<{ record: Record }>(path, REFRESH_MS);
  const shown = useLoad<ShownCollection>(apiPath(place, "collections", collection)).data;
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  const list = pagePath(place, "records", collection);
  const acts =
    data !== undefined &&
    shown !== undefined &&
    html`<button data-needs="edit_records" type="button" onClick=${() => setOpen("edit")}>Change…</button>
      <button data-needs="edit_records" type="button" class="quiet-danger" onClick=${() => setOpen("delete")}>Delete…</button>`;
  const back = { back: collection, backTo: list };
  const head = html`<${PageHead} title="Record of ${collection}" ...${back}>${acts}<//>`;
  if (data === undefined)
    return html`${head}<${LoadingState} error=${error} isGone=${isGone} ...${back} onRetry=${reload} />`;
  const { record } = data;
  const leave = (): void => navigate(list, { replace: true });
  return html`${head}
    ${error !== null && html`<${StaleNotice} error=${error} />`}
    ${record.odd !== undefined && html`<${Notice} kind="warn"><p><${Sentence} text=${record.odd} /></p><//>`}
    <${Facts} place=${place} record=${record} files=${heldFiles(shown?.collection.fields ?? null, record.data)} />
    ${shown !== undefined && html`<${Listeners} place=${place} listeners=${shown.listeners} changes=${["updated", "deleted"]} />`}
    <${Data} here=${pagePath(place, "records", collection, id)} record=${record} isRaw=${query.get("as") === "text"} />
    ${open === "edit" && shown !== undefined && html`<${RecordEditor} place=${place} collection=${shown} record=${record} data=${record.data} onClose=${() => setOpen(null)} />`}
    ${
      open === "delete" &&
      html`<${EndDialog} title="Delete this record?" method="DELETE" path=${path} act="Delete" done="The record is deleted."
        words=${`You cannot undo this.${(shown?.listeners ?? []).some(({ on }) => on.includes("deleted")) ? " Relays that watch for deleted records run." : ""}`}
        changes=${[]} onClose=${() => setOpen(null)} onDone=${leave} />`
    }`;
}

function Facts({ place, record, files }: { place: Place; record: Record; files: HeldFile[] }): View {
  return html`<dl class="facts">
      <div><dt>Record</dt><dd><code>${record.id}</code>
        <${CopyButton} text=${record.id} label="Copy the record id" words=${null} /></dd></div>
      <div><dt>Owner</dt><dd>${record.owner === null ? html`<span class="quiet">the app</span>` : html`<${PersonById} place=${place} id=${record.owner} />`}</dd></div>
      ${record.recipient !== null && html`<div><dt>For</dt><dd><${PersonById} place=${place} id=${record.recipient} /></dd></div>`}
      <div><dt>Written by</dt><dd><span><${Writer} place=${place} record=${record} /></span></dd></div>
      ${files.map(({ field, id }) => html`<div key=${field}><dt>${field}</dt><dd><a href=${apiPath(place, "files", id)} download>Download the file</a></dd></div>`)}
      <div><dt>Made</dt><dd><${Ago} at=${record.createdAt} /></dd></div>
      <div><dt>Changed</dt><dd><${Ago} at=${record.updatedAt} /></dd></div>
    </dl>`;
}

function Data({ here, record, isRaw }: { here: string; record: Record; isRaw: boolean }): View {
  const tabs: Tab[] = [
    { name: "tree", title: "Tree", href: here },
    { name: "text", title: "Text", href: `${here}?as=text` },
  ];
  const text = writeExact(record.data, 2);
  return html`<section class="block" aria-label="Data"><div class="block-head"><h2>Data</h2>
      <div class="page-actions"><${CopyButton} text=${text} label="Copy the data as JSON" /></div></div>
    <${TabLinks} label="How the data is shown" tabs=${tabs} chosen=${isRaw ? "text" : "tree"} />
    ${isRaw ? html`<pre class="record-text"><${SafeText} text=${text} limit=${RAW_CHARS} /></pre>` : html`<${JsonView} value=${record.data} label="Data" />`}</section>`;
}
