/** Rows of an object with free names: the map, the conditions, and the fields of a record. */
import { useId } from "preact/hooks";
import { writeExact } from "../../base/exact-json.ts";
import { html, type View } from "../../base/html.ts";
import { SafeText } from "../../component/safe-text.ts";
import { notifyDone } from "../../component/toast.ts";
import { namesFor } from "../../editor/schema.ts";
import { setValue } from "../../editor/text-edit.ts";
import { EditedInJson, Meaning, PartProblems, typedIn } from "./field-frame.ts";
import type { InputPart, Part, RowsPart } from "./form-part.ts";
import { mappedValue, useForm } from "./form-scope.ts";
import { labelOf, rowWordsOf } from "./form-words.ts";
import { pathOf, removePart } from "./part-edit.ts";
import { AddRow, RowName, useEmptyRow } from "./row-name.ts";
import { useTarget } from "./template-field.ts";
import { TextsField } from "./texts-field.ts";
import { RemoveButton, ValueField } from "./value-field.ts";

const SHOWN_CHARS = 120;

export function RowsField({ part }: { part: RowsPart }): View {
  const { known, edit, focusNext } = useForm();
  const { schema, steps, rows, name: field, isRequired } = part;
  const path = pathOf(steps);
  const id = useId();
  const words = rowWordsOf(field);
  const { isOpen, open, close } = useEmptyRow(steps, rows.length);
  const taken = new Set(rows.map(({ name }) => name));
  const offered = [
    ...Object.keys(schema["x-known-names"] ?? {}),
    ...namesFor(known, schema["x-names"], steps),
  ];
  const suggestions = offered.filter((name) => !taken.has(name));
  const remove = (row: Part, at: number): void => {
    let [before, after] = ["", ""];
    edit((text) => {
      before = text;
      after = removePart(text, row);
      return after;
    });
    focusNext(
      rows.length > 1
        ? `[data-row="${path}.${Math.max(0, at - 1)}"] input`
        : `[data-rows="${path}"] .form-add`,
    );
    notifyDone(`Removed ${row.name}.`, async () => {
      edit((text) => (text === after ? before : setValue(text, row.steps, row.node?.value ?? "")));
      focusNext(`[data-field="${pathOf(row.steps)}"] input`);
    });
  };
  return html`<fieldset class="form-group" data-rows=${path} data-field=${path}><legend>${labelOf(path)}${!isRequired && html` <span class="form-optional">optional</span>`}</legend>
    <${Meaning} part=${part} /><${PartProblems} part=${part} />
    ${[...rows, ...(isOpen ? [null] : [])].map(
      (
        row,
        at,
      ) => html`<div key=${at} class="form-row" data-row="${path}.${at}" data-field=${row === null ? "" : pathOf(row.steps)}>
        ${
          row?.is === "json"
            ? html`<${EditedInJson} part=${row} />`
            : html`<${RowName} key="name" steps=${steps} name=${row?.name ?? ""} label=${words.name} suggestions=${suggestions} meanings=${schema["x-known-names"]} onLeave=${close} />
              ${row !== null && html`<${RowRest} key="rest" part=${row} about="${id}-${at}" onRemove=${() => remove(row, at)} />`}`
        }
        ${row !== null && html`<${RowAbout} key="about" part=${row} id="${id}-${at}" meaning=${schema["x-known-names"]?.[row.name]} />`}</div>`,
    )}
    ${!isOpen && html`<${AddRow} words=${words.add} onAdd=${open} />`}
  </fieldset>`;
}

/** Value of a row, with its button. */
function RowRest({ part, about, onRemove }: { part: Part; about: string; onRemove: () => void }): View {
  const { value } = rowWordsOf(String(part.steps.at(-2)));
  const isEqual = value === "equals";
  return html`<span class="form-row-word">${isEqual ? value : ""}</span>
    <${RowValue} part=${part} about=${about} label="${isEqual ? "Text" : value} of ${part.name}" />
    <${RemoveButton} label="Remove ${part.name}" onRemove=${onRemove} />`;
}

function RowAbout({ part, id, meaning }: { part: Part; id: string; meaning: string | undefined }): View {
  return html`<div id=${id} class="form-row-about">${part.is !== "json" && html`<${PartProblems} part=${part} />`}${meaning !== undefined && html`<p class="form-hint">${meaning}</p>`}
    ${part.steps.at(-2) === "map" && html`<${FoundValue} name=${part.name} />`}</div>`;
}

/** `about` is the id of the element with the problems of the row. */
function RowValue({ part, label, about }: { part: Part; label: string; about: string }): View {
  if (part.is === "texts") return html`<${TextsField} part=${part} label=${label} about=${about} />`;
  if (part.is === "value") return html`<${ValueField} part=${part} label=${label} about=${about} />`;
  return html`<${PathInput} part=${part as InputPart} label=${label} about=${about} />`;
}

function PathInput({ part, label, about }: { part: InputPart; label: string; about: string }): View {
  const { edit, problems } = useForm();
  const target = useTarget(part.steps, label, "path");
  return html`<input ...${target} class="mono" aria-label=${label} aria-describedby=${about} aria-invalid=${(problems.get(pathOf(part.steps)) ?? []).length > 0} value=${part.node?.value ?? ""} placeholder="data.object.id" autocomplete="off" spellcheck=${false}
    onInput=${(event: InputEvent) => {
      const typed = typedIn(event);
      edit((text) => setValue(text, part.steps, typed));
    }} />`;
}

/** Value that the map reads from the request in view. */
function FoundValue({ name }: { name: string }): View {
  const found = mappedValue(useForm().outcome, name);
  if (found === null) return null;
  if (!found.found)
    return html`<p class="form-filled"><span class="form-empty">The path resolves to nothing in this request.</span></p>`;
  const { value } = found;
  return html`<p class="form-filled"><span class="form-arrow" aria-hidden="true">→</span><span class="off-screen">Value in this request: </span><${SafeText} text=${typeof value === "string" ? value : writeExact(value)} limit=${SHOWN_CHARS} /></p>`;
}
