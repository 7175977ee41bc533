/** Dialog that creates or changes a collection: its name, who reads its records, and its fields. */
import { useState } from "preact/hooks";
import type { Warning } from "../../src/base/refusal.ts";
import type { FieldType, ShownFields } from "../../src/shop/records/collection-definition.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { Dialog } from "../component/dialog.ts";
import { EndDialog } from "../component/end-dialog.ts";
import { Icon } from "../component/icon.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { WarningList } from "../component/warning-list.ts";
import { type Collection, KIND_WORDS } from "./shape.ts";

const TYPES: readonly FieldType[] = ["text", "number", "boolean", "date", "json", "file"];

interface FieldRow {
  key: number;
  name: string;
  type: FieldType;
  required: boolean;
  /** Typed limit; "" for none. */
  max: string;
}

let rowsMade = 0;
const makeRow = (row: Partial<Omit<FieldRow, "key">> = {}): FieldRow => ({
  name: "",
  type: "text",
  required: false,
  max: "",
  ...row,
  key: rowsMade++,
});

/** Initial values of a new collection that a relay needs: the missing name and the fields that the relay writes. */
interface Wanted {
  name: string;
  fields: readonly { name: string; type?: FieldType }[];
}

interface Props {
  place: Place;
  /** null for a new collection. */
  collection: Collection | null;
  wanted?: Wanted;
  onClose: () => void;
  onMade?: (name: string) => void;
}

export function CollectionForm({ place, collection: given, wanted, onClose, onMade }: Props): View {
  // Collection when the dialog opened. If another person saved it meanwhile, the service rejects this save instead of overwriting it.
  const [collection] = useState(given);
  const { send, isSending, error } = useSend();
  const [rows, setRows] = useState(() => rowsOf(collection, wanted));
  const [warnings, setWarnings] = useState<readonly Warning[]>([]);
  const [isDeleting, setDeleting] = useState(false);
  const list = apiPath(place, "collections");
  const changes = [list, apiPath(place, "overview"), apiPath(place, "relays"), apiPath(place, "events")];
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const name = collection?.name ?? String(data.get("name") ?? "").trim();
    const shape = { kind: String(data.get("kind")), fields: fieldsOf(rows) };
    const sent = await send<{ warnings: Warning[] }>({
      method: collection === null ? "POST" : "PUT",
      path: collection === null ? list : apiPath(place, "collections", name),
      body: collection === null ? { name, ...shape } : { ...shape, version: collection.version },
      changes,
      done: `The collection ${name} was ${collection === null ? "created" : "saved"}.`,
    });
    if (sent === null) return;
    if (sent.answer.warnings.length > 0) setWarnings(sent.answer.warnings);
    else if (collection === null) onMade?.(name);
    else onClose();
  };
  if (warnings.length > 0)
    return html`<${Dialog} title="Saved with warnings" onClose=${onClose}><${WarningList} warnings=${warnings} />
      <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>Close</button></div><//>`;
  if (isDeleting && collection !== null)
    return html`<${EndDialog} title="Delete the collection ${collection.name}?" act="Delete it and its records" done="The collection ${collection.name} is deleted."
      words="Relay also deletes its records. Relays that write to the collection fail until it exists again." method="DELETE" changes=${changes}
      path="${apiPath(place, "collections", collection.name)}?force=true" onClose=${onClose} onDone=${() => navigate(pagePath(place, "records"))} />`;
  const change = (key: number, to: Partial<FieldRow>): void =>
    setRows(rows.map((row) => (row.key === key ? { ...row, ...to } : row)));
  const held = collection?.kind;
  return html`<${Dialog} title=${collection === null ? "New collection" : `Collection ${collection.name}`} wide onClose=${onClose}>
    <form class="stack" onSubmit=${save}>
      ${
        collection === null &&
        html`<label class="field"><span>Name</span>
          <input name="name" required autofocus autocomplete="off" spellcheck=${false} maxlength="63" placeholder="orders" defaultValue=${wanted?.name ?? ""} />
          <small>Lowercase letters, digits, hyphens and underscores. Relays use this name. You cannot change it later.</small></label>`
      }
      <label class="field"><span>Who can read the records</span><select name="kind" required>
        ${held === undefined && html`<option value="" selected disabled>Choose…</option>`}
        ${Object.entries(KIND_WORDS).map(([kind, words]) => html`<option key=${kind} value=${kind} selected=${kind === held}>${kind}: ${words}</option>`)}</select></label>
      <fieldset class="collection-fields"><legend>Fields</legend>
        ${rows.map((row) => html`<${FieldInputs} key=${row.key} row=${row} onChange=${(to: Partial<FieldRow>) => change(row.key, to)} onRemove=${() => setRows(rows.filter(({ key }) => key !== row.key))} />`)}
        <button type="button" onClick=${() => setRows([...rows, makeRow()])}><${Icon} name="plus" size=${14} />Add a field</button>
        ${collection !== null && html`<p class="quiet">Existing records do not change. The new rules apply at the next write.</p>`}</fieldset>
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <div class="dialog-actions">
        ${collection !== null && html`<button type="button" class="quiet-danger dialog-first" onClick=${() => setDeleting(true)}>Delete…</button>`}
        <button type="button" onClick=${onClose}>Cancel</button>
        <button class="primary" disabled=${isSending}>${isSending ? "Saving…" : collection === null ? "Create collection" : "Save"}</button></div>
    </form><//>`;
}

function FieldInputs({
  row,
  onChange,
  onRemove,
}: {
  row: FieldRow;
  onChange: (to: Partial<FieldRow>) => void;
  onRemove: () => void;
}): View {
  const named = row.name === "" ? "the field" : row.name;
  const read = (event: Event): string => (event.target as HTMLInputElement | HTMLSelectElement).value;
  return html`<div class="collection-field">
    <input aria-label="Field name" required autocomplete="off" spellcheck=${false} maxlength="63" value=${row.name} onInput=${(event: Event) => onChange({ name: read(event) })} />
    <select aria-label="Type of ${named}" value=${row.type} onChange=${(event: Event) => onChange({ type: read(event) as FieldType })}>
      ${TYPES.map((type) => html`<option key=${type} value=${type} selected=${type === row.type}>${type}</option>`)}</select>
    <label class="switch"><input type="checkbox" checked=${row.required} onChange=${() => onChange({ required: !row.required })} />Required</label>
    <button type="button" class="icon-button" aria-label="Remove ${named}" title="Remove" onClick=${onRemove}><${Icon} name="cross" size=${14} /></button>
  </div>`;
}

function rowsOf(collection: Collection | null, wanted: Wanted | undefined): FieldRow[] {
  if (collection === null) {
    return wanted === undefined || wanted.fields.length === 0 ? [makeRow()] : wanted.fields.map(makeRow);
  }
  return Object.entries(collection.fields as unknown as ShownFields).map(([name, rule]) =>
    makeRow({
      name,
      type: rule.type,
      required: rule.required ?? false,
      max: rule.max === undefined ? "" : String(rule.max),
    }),
  );
}

function fieldsOf(rows: readonly FieldRow[]): object {
  return Object.fromEntries(
    rows.map(({ name, type, required, max }) => [
      name.trim(),
      { type, ...(required ? { required } : {}), ...(max === "" ? {} : { max: Number(max) }) },
    ]),
  );
}
