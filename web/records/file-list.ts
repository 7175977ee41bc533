/** List of the files that records can reference. A file can be downloaded, and deleted while no record references it. */
import { useState } from "preact/hooks";
import type { FileView } from "../../src/shop/records/file.ts";
import { writeQuery } from "../base/api.ts";
import { formatBytes } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useList } from "../base/use-list.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Dialog } from "../component/dialog.ts";
import { EndDialog } from "../component/end-dialog.ts";
import { Icon } from "../component/icon.ts";
import { EmptyState, LoadingState, Notice, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";
import { mayBeDone, useSend } from "../component/use-send.ts";

const REFRESH_MS = 10_000;
/** Size limit of the service, which cuts off a larger upload. */
const MAX_FILE_MB = 5;

export function FileList({ place }: { place: Place }): View {
  const path = apiPath(place, "files");
  const list = useList<FileView>(path, REFRESH_MS);
  const [isUploading, setUploading] = useState(false);
  const [deleting, setDeleting] = useState<FileView | null>(null);
  const { items, error, reload } = list;
  return html`<p class="tab-lead">Files for record fields of the type <code>file</code> (by id). Up to ${MAX_FILE_MB} MB each.</p>
    <div class="tab-actions"><button data-needs="edit_records" type="button" onClick=${() => setUploading(true)}><${Icon} name="plus" size=${14} />Upload a file…</button></div>
    ${error !== null && items !== undefined && html`<${StaleNotice} error=${error} />`}
    ${
      items === undefined
        ? html`<${LoadingState} error=${error} onRetry=${reload} />`
        : items.length === 0
          ? html`<${EmptyState} icon="records" title="No files yet">
            <p>Files that your app uploads appear here. You can also upload files here or with <code>relay files upload</code>.</p><//>`
          : html`<${Table} label="Files" columns=${columnsOf(place, setDeleting)} items=${items} />
            <${OlderButton} list=${list} none="No more entries." />`
    }
    ${isUploading && html`<${UploadDialog} path=${path} onClose=${() => setUploading(false)} />`}
    ${
      deleting !== null &&
      html`<${EndDialog} title="Delete ${deleting.name}?" method="DELETE" path=${apiPath(place, "files", deleting.id)} act="Delete" done="${deleting.name} is deleted."
        words="You cannot undo this. Relay refuses to delete a file that a record uses." changes=${[path]} onClose=${() => setDeleting(null)} />`
    }`;
}

function columnsOf(place: Place, onDelete: (file: FileView) => void): Column<FileView>[] {
  return [
    {
      name: "file",
      title: "Name",
      priority: 1,
      cell: ({ id, name }) =>
        html`<a data-needs="read_payloads" class="clip" href=${apiPath(place, "files", id)} download=${name}><${SafeText} text=${name} limit=${100} /></a>
          <span class="clip hidden-values"><${SafeText} text=${name} limit=${100} /></span>`,
    },
    {
      name: "id",
      title: "Id",
      priority: 2,
      size: "name",
      cell: ({ id, name }) =>
        html`<code title=${id}>…${id.slice(-8)}</code> <${CopyButton} text=${id} label="Copy the id of ${name}" words=${null} />`,
    },
    {
      name: "type",
      title: "Type",
      priority: 3,
      size: "name",
      cell: ({ mediaType }) => html`<span class="clip quiet">${mediaType}</span>`,
    },
    { name: "size", title: "Size", priority: 2, size: "short", cell: ({ bytes }) => formatBytes(bytes) },
    timeColumn("time", "Stored", 2, ({ createdAt }) => createdAt),
    {
      name: "end",
      title: "",
      priority: 1,
      size: "short",
      cell: (file) =>
        html`<button data-needs="edit_records" type="button" class="quiet-danger" aria-label="Delete… ${file.name}" onClick=${() => onDelete(file)}>Delete…</button>`,
    },
  ];
}

function UploadDialog({ path, onClose }: { path: string; onClose: () => void }): View {
  const [file, setFile] = useState<File | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const { send, isSending, error, code } = useSend();
  const choose = (chosen: File | undefined): void => {
    setFile(chosen ?? null);
    setWrong(chosen === undefined ? null : rejectFile(chosen));
  };
  const upload = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (file === null || rejectFile(file) !== null) return;
    const name = String(new FormData(event.target as HTMLFormElement).get("name") ?? "").trim();
    // The browser leaves the type empty if it does not know it.
    const body = new Blob([file], { type: file.type === "" ? "application/octet-stream" : file.type });
    const sent = await send<{ file: FileView }>({
      method: "POST",
      path: path + writeQuery({ name }),
      body,
      changes: [path],
      done: ({ file: kept }) => `${kept.name} is uploaded.`,
    });
    if (sent !== null) onClose();
  };
  return html`<${Dialog} title="Upload a file" onClose=${onClose}><form class="stack" onSubmit=${upload}>
    <label class="field"><span>File</span><input type="file" name="file" required autofocus
        onChange=${(event: Event) => choose((event.target as HTMLInputElement).files?.[0])} />
      ${wrong !== null && html`<small class="field-problem" role="alert">${wrong}</small>`}</label>
    ${
      file !== null &&
      html`<label key=${file.name} class="field"><span>Name</span><input name="name" required autocomplete="off" spellcheck=${false} maxlength="200" defaultValue=${file.name} />
        <small>${formatBytes(file.size)}. The file name of the download.</small></label>`
    }
    ${
      error !== null &&
      html`<${Notice} kind="bad"><p><${Sentence} text=${error} /></p>${mayBeDone(code) && html`<p>The result is unknown. Look for the file in the list before you upload it again.</p>`}<//>`
    }
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending || wrong !== null}>${isSending ? "Uploading…" : "Upload"}</button></div>
  </form><//>`;
}

/** Returns why the file is rejected, or null. */
function rejectFile({ name, size }: File): string | null {
  if (size <= MAX_FILE_MB * 1024 ** 2) return null;
  return `${name} has ${formatBytes(size)}, over the limit of ${MAX_FILE_MB} MB: choose a smaller file, or store it elsewhere and write its URL into the record.`;
}
