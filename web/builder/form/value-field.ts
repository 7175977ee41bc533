/** Any JSON value without JSON: a text, a number, yes or no, nothing, a group of names, or a list. */
import { useState } from "preact/hooks";
import type { Json } from "../../base/exact-json.ts";
import { html, type View } from "../../base/html.ts";
import { Icon } from "../../component/icon.ts";
import { SafeText } from "../../component/safe-text.ts";
import type { JsonNode } from "../../editor/json-tree.ts";
import { insertItem, removeAt, setValue } from "../../editor/text-edit.ts";
import { typedIn } from "./field-frame.ts";
import type { InputPart } from "./form-part.ts";
import { isNumber } from "./form-part.ts";
import { useForm } from "./form-scope.ts";
import { labelOf } from "./form-words.ts";
import { pathOf } from "./part-edit.ts";
import { AddRow, RowName, useEmptyRow } from "./row-name.ts";
import { NumberInput } from "./scalar-field.ts";
import { TemplateInput } from "./template-field.ts";

const KINDS = {
  text: "Text",
  number: "Number",
  flag: "Yes/no",
  nothing: "Nothing",
  group: "Group",
  list: "List",
} as const;

type Kind = keyof typeof KINDS;

const SCALARS: readonly Kind[] = ["text", "number", "flag"];

function kindOf(node: JsonNode | null): Kind {
  if (node === null || node.kind === "text") return "text";
  if (node.kind === "word")
    return node.value === "null" ? "nothing" : isNumber(node.value) ? "number" : "flag";
  return node.kind === "object" ? "group" : "list";
}

/** Returns the value after a change of its kind. A text or number keeps what fits. */
function convert(node: JsonNode | null, kind: Kind): Json {
  const text = node?.kind === "text" || node?.kind === "word" ? node.value : "";
  switch (kind) {
    case "text":
      return text;
    case "number":
      return isNumber(text) ? Number(text) : 0;
    case "flag":
      return text !== "false";
    case "nothing":
      return null;
    default:
      return kind === "group" ? {} : [];
  }
}

export function ValueField({
  part,
  label = labelOf(pathOf(part.steps)),
  about,
}: {
  part: InputPart;
  label?: string;
  /** Id of the element that describes the field. */
  about?: string;
}): View {
  const { edit } = useForm();
  const [wrong, setWrong] = useState<string | null>(null);
  const { node, steps, schema } = part;
  const kind = kindOf(node);
  const kinds = schema.anyOf === undefined ? (Object.keys(KINDS) as Kind[]) : SCALARS;
  const frame = { "aria-label": label, "aria-describedby": about };
  return html`<div class="form-value form-value-${kind}" data-field=${pathOf(steps)}>
    <select aria-label="Kind of ${label}" value=${kind} onChange=${(event: Event) => {
      const chosen = typedIn(event) as Kind;
      edit((text) => setValue(text, steps, convert(node, chosen)));
    }}>${kinds.map((one) => html`<option key=${one} value=${one} selected=${one === kind}>${KINDS[one]}</option>`)}</select>
    ${
      kind === "text" &&
      (schema["x-templated"] === true
        ? html`<div class="form-value-text"><${TemplateInput} part=${{ ...part, isRequired: true }} label=${label} frame=${frame} /></div>`
        : html`<input ...${frame} value=${node?.value ?? ""} autocomplete="off" onInput=${(
            event: InputEvent,
          ) => {
            const typed = typedIn(event);
            edit((text) => setValue(text, steps, typed));
          }} />`)
    }
    ${kind === "number" && html`<${NumberInput} part=${part} frame=${frame} wrong=${wrong} onWrong=${setWrong} />`}
    ${
      kind === "flag" &&
      html`<select ...${frame} value=${node?.value} onChange=${(event: Event) => {
        const isYes = typedIn(event) === "true";
        edit((text) => setValue(text, steps, isYes));
      }}>${["true", "false"].map((one) => html`<option key=${one} value=${one} selected=${one === node?.value}>${one === "true" ? "Yes" : "No"}</option>`)}</select>`
    }
    ${kind === "group" && html`<${GroupValue} part=${part} label=${label} />`}
    ${
      kind === "list" &&
      html`<div class="form-inside" role="group" aria-label=${label}>${(node?.items ?? []).map(
        (item, at) =>
          html`<div key=${at} class="form-inner-row"><${ValueField} part=${innerPart(part, item, at)} label="Item ${at + 1} of ${label}" />
            <${RemoveButton} label="Remove item ${at + 1}" onRemove=${() => edit((text) => removeAt(text, [...steps, at]))} /></div>`,
      )}<button type="button" onClick=${() => edit((text) => insertItem(text, steps, node?.items.length ?? 0, ""))}><${Icon} name="plus" size=${14} />Add an item</button></div>`
    }</div>`;
}

function innerPart(part: InputPart, node: JsonNode, step: string | number): InputPart {
  return { ...part, name: String(step), steps: [...part.steps, step], node, isRequired: true, holder: null };
}

function GroupValue({ part, label }: { part: InputPart; label: string }): View {
  const { edit, onShowJson } = useForm();
  const { node, steps } = part;
  const members = node?.members ?? [];
  const { isOpen, open, close } = useEmptyRow(steps, members.length);
  const path = pathOf(steps);
  return html`<div class="form-inside" role="group" aria-label=${label}>${[
    ...members,
    ...(isOpen ? [null] : []),
  ].map((member, at) => {
    const { name = "", value = null } = member ?? {};
    // Of two members with one name, the last one counts.
    const isHidden = members.findLastIndex((one) => one.name === name) !== at;
    if (value !== null && isHidden)
      return html`<p key=${at}><b>Edited in JSON</b> <code><${SafeText} text=${name} limit=${60} /></code> <button type="button" onClick=${() => onShowJson(value)}>Show in JSON</button></p>`;
    return html`<div key=${at} class="form-inner-row" data-row="${path}.${at}"><${RowName} key="name" steps=${steps} name=${name} label="Name in ${label}" suggestions=${[]} onLeave=${close} />
      ${value !== null && html`<${ValueField} part=${innerPart(part, value, name)} label=${name} /><${RemoveButton} label="Remove ${name}" onRemove=${() => edit((text) => removeAt(text, [...steps, name]))} />`}</div>`;
  })}${!isOpen && html`<${AddRow} words="Add a name" onAdd=${open} />`}</div>`;
}

export function RemoveButton({ label, onRemove }: { label: string; onRemove: () => void }): View {
  return html`<button type="button" class="bare form-remove" aria-label=${label} title="Remove" onClick=${onRemove}><${Icon} name="cross" size=${14} /></button>`;
}
