/** Fields with one plain value: a text, a number, a switch, or a choice. */
import { useState } from "preact/hooks";
import { html, type View } from "../../base/html.ts";
import { insertItem, removeAt, setValue } from "../../editor/text-edit.ts";
import { FieldFrame, type FrameProps, Meaning, PartProblems, typedIn } from "./field-frame.ts";
import type { InputPart } from "./form-part.ts";
import { useForm } from "./form-scope.ts";
import { formatChoice, labelOf } from "./form-words.ts";
import { pathOf, removePart, writeNumber, writeText } from "./part-edit.ts";

/** The name of a saved relay is only shown. A draft that has another name can still get the saved one back. */
export function TextField({ part }: { part: InputPart }): View {
  const { edit, saved } = useForm();
  const [example] = part.schema.examples ?? [];
  const isFixed = saved !== null && pathOf(part.steps) === "name" && part.node?.value === saved;
  const hint = isFixed
    ? "The name of a saved relay cannot change, because its receiver URL and its file have this name. For another name, make a new relay."
    : part.schema.description;
  return html`<${FieldFrame} part=${part} hint=${hint}>${(frame: FrameProps) =>
    html`<input ...${frame} readonly=${isFixed} value=${part.node?.value ?? ""} placeholder=${example ?? ""} autocomplete="off" spellcheck=${false}
      onInput=${(event: InputEvent) => {
        const typed = typedIn(event);
        edit((text) => writeText(text, part, typed));
      }} />`}<//>`;
}

/** A typed text that is no number stays in the field and out of the definition. */
export function NumberField({ part }: { part: InputPart }): View {
  const [wrong, setWrong] = useState<string | null>(null);
  const problem = wrong === null ? null : "The definition keeps the last number. Write a number.";
  return html`<${FieldFrame} part=${part} problem=${problem}>${(frame: FrameProps) =>
    html`<${NumberInput} part=${part} frame=${frame} wrong=${wrong} onWrong=${setWrong} />`}<//>`;
}

export function NumberInput({
  part,
  frame,
  wrong,
  onWrong,
}: {
  part: InputPart;
  frame: FrameProps | { "aria-label": string };
  wrong: string | null;
  onWrong: (typed: string | null) => void;
}): View {
  const { edit } = useForm();
  const type = (event: Event): void => {
    const typed = typedIn(event).trim();
    const isNumber = writeNumber("{}", part, typed) !== null;
    onWrong(isNumber ? null : typed);
    if (isNumber) edit((text) => writeNumber(text, part, typed) ?? text);
  };
  return html`<input ...${frame} class="form-number" inputmode="decimal" value=${wrong ?? part.node?.value ?? ""} autocomplete="off"
    onInput=${type} onBlur=${() => onWrong(null)} />`;
}

export function SwitchField({ part }: { part: InputPart }): View {
  const { edit } = useForm();
  const { schema, node, steps, isRequired } = part;
  const isOn = node !== null && node.value !== "false";
  const path = pathOf(steps);
  const change = (): void =>
    edit((text) => {
      if (!isOn) return setValue(text, steps, schema.const === undefined ? true : (schema.const as string));
      return isRequired ? setValue(text, steps, false) : removePart(text, part);
    });
  return html`<div class="form-field" data-field=${path}>
    <label class="form-switch"><input type="checkbox" checked=${isOn} onChange=${change} aria-describedby="${path}-about" />${labelOf(path)}</label>
    <div id="${path}-about" class="form-about"><${PartProblems} part=${part} /><${Meaning} part=${part} /></div></div>`;
}

export function ChoiceField({ part }: { part: InputPart }): View {
  const { edit } = useForm();
  const { schema, node, isRequired } = part;
  const value = node?.value ?? "";
  const listed = (schema.enum ?? []).map(String);
  return html`<${FieldFrame} part=${part}>${(frame: FrameProps) =>
    html`<select ...${frame} value=${value} onChange=${(event: Event) => {
      const typed = typedIn(event);
      edit((text) => writeText(text, part, typed));
    }}>
      ${(!isRequired || value === "") && html`<option value="" selected=${value === ""}>${isRequired ? "Choose…" : "Not set"}</option>`}
      ${value !== "" && !listed.includes(value) && html`<option value=${value} selected>${value} (not known)</option>`}
      ${listed.map((one) => html`<option key=${one} value=${one} selected=${one === value}>${formatChoice(one)}</option>`)}</select>`}<//>`;
}

export function ChoicesField({ part }: { part: InputPart }): View {
  const { edit } = useForm();
  const { schema, node, steps } = part;
  const path = pathOf(steps);
  const chosen = (node?.items ?? []).map(({ value }) => value);
  const change = (one: string): void => {
    const at = chosen.indexOf(one);
    edit((text) => (at < 0 ? insertItem(text, steps, chosen.length, one) : removeAt(text, [...steps, at])));
  };
  return html`<fieldset class="form-field" data-field=${path} aria-describedby="${path}-about"><legend>${labelOf(path)}</legend>
    <div class="form-choices">${(schema.items?.enum ?? [])
      .map(String)
      .map(
        (one) =>
          html`<label key=${one} class="form-switch"><input type="checkbox" checked=${chosen.includes(one)} onChange=${() => change(one)} />${one}</label>`,
      )}</div>
    <div id="${path}-about" class="form-about"><${PartProblems} part=${part} /><${Meaning} part=${part} /></div></fieldset>`;
}
