/** One text, or several texts of which any fits. */
import { html, type View } from "../../base/html.ts";
import { Icon } from "../../component/icon.ts";
import { insertItem, removeAt, setValue } from "../../editor/text-edit.ts";
import { typedIn } from "./field-frame.ts";
import type { InputPart } from "./form-part.ts";
import { useForm } from "./form-scope.ts";
import { labelOf } from "./form-words.ts";
import { pathOf } from "./part-edit.ts";

export function TextsField({
  part,
  label = labelOf(pathOf(part.steps)),
  about,
}: {
  part: InputPart;
  label?: string;
  /** Id of the element that describes the field. */
  about?: string;
}): View {
  const { edit, focusNext } = useForm();
  const { node, steps } = part;
  const path = pathOf(steps);
  const isList = node?.kind === "list";
  const texts = isList ? node.items.map(({ value }) => value) : [node?.value ?? ""];
  const at = (index: number) => (isList ? [...steps, index] : steps);
  const add = (): void => {
    edit((text) =>
      isList ? insertItem(text, steps, texts.length, "") : setValue(text, steps, [texts[0] ?? "", ""]),
    );
    focusNext(`[data-text="${path}.${texts.length}"]`);
  };
  const remove = (index: number): void => {
    edit((text) => removeAt(text, [...steps, index]));
    focusNext(`[data-text="${path}.${Math.max(0, index - 1)}"]`);
  };
  return html`<div class="form-texts">${texts.map(
    (value, index) => html`<div key=${index} class="form-text">
      ${index > 0 && html`<span class="quiet">or</span>`}
      <input aria-label=${index === 0 ? label : `${label}, choice ${index + 1}`} aria-describedby=${about} data-text="${path}.${index}" value=${value} autocomplete="off" spellcheck=${false}
        onInput=${(event: InputEvent) => {
          const typed = typedIn(event);
          edit((text) => setValue(text, at(index), typed));
        }} />
      ${texts.length > 1 && html`<button type="button" class="bare" aria-label="Remove choice ${index + 1}" title="Remove" onClick=${() => remove(index)}><${Icon} name="cross" size=${14} /></button>`}
    </div>`,
  )}<button type="button" class="link form-or" onClick=${add}>or another text</button></div>`;
}
