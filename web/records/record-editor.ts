/**
 * Editor of a new or existing record. The text is sent unchanged, so that every number arrives exactly. If another
 * person changed the record meanwhile, the editor shows the current version and overwrites nothing unseen.
 */
import { useState } from "preact/hooks";
import { call, RawJson } from "../base/api.ts";
import { type Json, parseExact, writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { Listeners } from "./listeners.ts";
import type { Record, ShownCollection } from "./shape.ts";

interface Props {
  place: Place;
  collection: ShownCollection;
  /** The edited record; absent for a new one. */
  record?: Record;
  data: Json;
  onClose: () => void;
}

export function RecordEditor({ place, collection, record, data, onClose }: Props): View {
  const { name, kind } = collection.collection;
  const [text, setText] = useState(() => writeExact(data, 2));
  const [basis, setBasis] = useState(record);
  const [theirs, setTheirs] = useState<Record | null>(null);
  const { send, isSending, error, code, problems, clear } = useSend();
  const [broken, setBroken] = useState<string | null>(null);
  const records = apiPath(place, "collections", name, "records");
  const path = record === undefined ? records : apiPath(place, "collections", name, "records", record.id);
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const wrong = breaksJson(text);
    setBroken(wrong);
    if (wrong !== null) return;
    const form = new FormData(event.target as HTMLFormElement);
    const to = String(form.get("to") ?? "").trim();
    const more = {
      ...(basis === undefined ? {} : { updatedAt: basis.updatedAt }),
      ...(to === "" ? {} : { to }),
    };
    const rest = Object.entries(more).map(
      ([field, value]) => `${JSON.stringify(field)}:${JSON.stringify(value)},`,
    );
    const sent = await send<{ record: Record }>({
      method: record === undefined ? "POST" : "PUT",
      path,
      body: new RawJson(`{${rest.join("")}"data":${text}}`),
      changes: [records],
      done: record === undefined ? "Record created." : "Record saved.",
    });
    if (sent === null) return setTheirs(await readTheirs());
    onClose();
    if (record === undefined) navigate(pagePath(place, "records", name, sent.answer.record.id));
  };
  /** Returns the current record if it differs from the loaded one. */
  const readTheirs = async (): Promise<Record | null> => {
    if (basis === undefined) return null;
    const now = await call<{ record: Record }>("GET", path).catch(() => null);
    return now !== null && now.record.updatedAt !== basis.updatedAt ? now.record : null;
  };
  const take = (isTheirs: boolean): void => {
    if (theirs === null) return;
    if (isTheirs) setText(writeExact(theirs.data, 2));
    setBasis(theirs);
    setTheirs(null);
    clear();
  };
  const isConflict = code === "version_conflict" && theirs !== null;
  const title = record === undefined ? `New record in ${name}` : `Edit record of ${name}`;
  return html`<${Dialog} title=${title} onClose=${onClose} wide><form class="stack" onSubmit=${save}>
    <${Listeners} place=${place} listeners=${collection.listeners} changes=${[record === undefined ? "created" : "updated"]} />
    <label class="field"><span>Data</span>
      <textarea class="mono" name="data" rows="14" spellcheck="false" autofocus aria-invalid=${broken !== null || problems.length > 0} value=${text}
        onInput=${(event: InputEvent) => setText((event.target as HTMLTextAreaElement).value)} /></label>
    ${
      record === undefined &&
      (kind === "addressed" || kind === "direct") &&
      html`<label class="field"><span>For</span><input name="to" required autocomplete="off" placeholder="per_…" />
        <small>The id of the person who gets the record. The page of the person shows it.</small></label>`
    }
    ${broken !== null && html`<${Notice} kind="bad">${broken}<//>`}
    ${
      isConflict
        ? html`<${Notice} kind="warn"><p><${Sentence} text=${error ?? ""} /></p><pre class="record-theirs">${writeExact(theirs.data, 2)}</pre>
          <p class="dialog-actions"><button type="button" onClick=${() => take(true)}>Start from their version</button>
            <button type="button" onClick=${() => take(false)}>Save my version</button></p><//>`
        : problems.length > 0
          ? html`<${Notice} kind="bad"><ul>${problems.map((one) => html`<li key=${one.field}><${Sentence} text=${one.message} /></li>`)}</ul><//>`
          : error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`
    }
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending || isConflict}>${isSending ? "Creating…" : record === undefined ? "Create record" : "Save"}</button></div>
  </form><//>`;
}

function breaksJson(text: string): string | null {
  try {
    parseExact(text);
    return null;
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}
