/** Fields of an object in the order of the schema: first the chosen variant, last what only the JSON can edit. */
import { useRef } from "preact/hooks";
import { html, type View } from "../../base/html.ts";
import { tellDone } from "../../component/toast.ts";
import { setValue } from "../../editor/text-edit.ts";
import { EditedInJson, FieldFrame, type FrameProps, Meaning, PartProblems, typedIn } from "./field-frame.ts";
import { constOf, type GroupPart, type Part } from "./form-part.ts";
import { useForm } from "./form-scope.ts";
import { labelOf } from "./form-words.ts";
import { InputField } from "./input-field.ts";
import { chooseVariant, pathOf, readValue } from "./part-edit.ts";
import { RowsField } from "./rows-field.ts";

/** More optional fields than this are folded until one of them is set. */
const MAX_OPEN = 3;
/** Rule of a field with one value, which the choice of the variant writes. */
const ONLY_VALUE = / It must be "[^"]*"\.$/;

export function GroupFields({ part }: { part: GroupPart }): View {
  const { fields, others, variants } = part;
  const isMinor = ({ is, isRequired }: Part): boolean => !isRequired && is !== "rows" && is !== "group";
  const minor = fields.filter(isMinor);
  const isFolded = minor.length > MAX_OPEN;
  const shown = isFolded ? fields.filter((one) => !isMinor(one)) : fields;
  return html`${variants !== null && html`<${VariantChoice} part=${part} />`}
    ${shown.map((one) => html`<${PartField} key=${one.name} part=${one} />`)}
    ${isFolded && html`<${Folded} key=${variants?.chosen} parts=${minor} />`}
    ${others.map((one, at) => html`<${EditedInJson} key=${at} part=${one} />`)}`;
}

function Folded({ parts }: { parts: readonly Part[] }): View {
  const isOpen = useOnce(parts.some(({ node }) => node !== null));
  return html`<details class="form-more" open=${isOpen}><summary>${parts.map(({ steps }) => labelOf(pathOf(steps))).join(", ")}</summary>
    ${parts.map((one) => html`<${PartField} key=${one.name} part=${one} />`)}</details>`;
}

/** Stays true, because a part that folds while the user empties it would take the focus away. */
function useOnce(isTrue: boolean): boolean {
  const was = useRef(isTrue);
  was.current ||= isTrue;
  return was.current;
}

export function PartField({ part }: { part: Part }): View {
  switch (part.is) {
    case "json":
      return html`<${EditedInJson} part=${part} />`;
    case "rows":
      return html`<${RowsField} part=${part} />`;
    case "group":
      return html`<${GroupField} part=${part} />`;
    case "list":
      return null;
    default:
      return html`<${InputField} part=${part} />`;
  }
}

/** An optional object is folded until one of its fields is set. */
function GroupField({ part }: { part: GroupPart }): View {
  const path = pathOf(part.steps);
  const isOpen = useOnce(part.node !== null);
  const fields = html`<${Meaning} part=${part} /><${PartProblems} part=${part} /><${GroupFields} part=${part} />`;
  if (part.isRequired)
    return html`<fieldset class="form-group" data-field=${path}><legend>${labelOf(path)}</legend>${fields}</fieldset>`;
  return html`<details class="form-more form-group" data-field=${path} open=${isOpen}><summary><b>${labelOf(path)}</b> <span class="form-optional">optional</span></summary>${fields}</details>`;
}

/** Choice of the variant. A change keeps the fields that both variants have, and can be undone. */
function VariantChoice({ part }: { part: GroupPart }): View {
  const { edit } = useForm();
  const { variants, steps } = part;
  if (variants === null) return null;
  const { name, chosen, schemas } = variants;
  const variant = schemas.find((one) => constOf(one, name) === chosen);
  const field: Part = {
    ...part,
    is: "choice",
    name,
    steps: [...steps, name],
    schema: variant?.properties?.[name] ?? {},
    isRequired: true,
  };
  const choose = (next: string): void => {
    let [before, after] = ["", ""];
    edit((text) => {
      before = text;
      after = chooseVariant(text, part, next);
      return after;
    });
    const title = schemas.find((one) => constOf(one, name) === next)?.title ?? next;
    tellDone(`Changed to “${title}”.`, async () =>
      edit((text) => (text === after ? before : setValue(text, steps, readValue(before, part.node)))),
    );
  };
  const isKnown = variant !== undefined;
  const hint = (variant?.description ?? variant?.properties?.[name]?.description)?.replace(ONLY_VALUE, "");
  const isSaid = hint === `${variant?.title}.`;
  return html`<${FieldFrame} part=${field} hint=${isSaid ? "" : hint}>${(frame: FrameProps) =>
    html`<select ...${frame} value=${chosen ?? ""} onChange=${(event: Event) => choose(typedIn(event))}>
      ${!isKnown && html`<option value=${chosen ?? ""} selected disabled>${chosen === null || chosen === "" ? "Choose…" : `${chosen} (not known)`}</option>`}
      ${schemas.map((one) => {
        const value = constOf(one, name) ?? "";
        return html`<option key=${value} value=${value} selected=${value === chosen}>${one.title ?? value}</option>`;
      })}</select>`}<//>`;
}
