/** Fields of an object in the order of the schema: first the chosen variant, last what only the JSON can edit. */
import { useRef, useState } from "preact/hooks";
import { html, type View } from "../../base/html.ts";
import { notifyDone } from "../../component/toast.ts";
import { setValue } from "../../editor/text-edit.ts";
import { EditedInJson, FieldFrame, type FrameProps, Meaning, PartProblems, typedIn } from "./field-frame.ts";
import { constOf, type GroupPart, type Part } from "./form-part.ts";
import { useForm } from "./form-scope.ts";
import { labelOf } from "./form-words.ts";
import { InputField } from "./input-field.ts";
import { chooseVariant, pathOf, readValue } from "./part-edit.ts";
import { RowsField } from "./rows-field.ts";

/** Up to this many optional fields are never folded. */
const MAX_OPEN = 3;
/** Rule of a field with one value, which the choice of the variant writes. */
const ONLY_VALUE = / It must be "[^"]*"\.$/;

export function GroupFields({ part }: { part: GroupPart }): View {
  const { fields, others, variants } = part;
  return html`${variants !== null && html`<${VariantChoice} part=${part} />`}
    <${Fields} key=${variants?.chosen} fields=${fields} />
    ${others.map((one, at) => html`<${EditedInJson} key=${at} part=${one} />`)}`;
}

/** Folds optional fields that were not set when the group appeared. Later none moves, because a moved field loses the focus. */
function Fields({ fields }: { fields: readonly Part[] }): View {
  const isUnset = ({ is, isRequired, node }: Part): boolean =>
    !isRequired && node === null && is !== "rows" && is !== "group";
  const [folded] = useState(() => {
    const names = fields.filter(isUnset).map(({ name }) => name);
    return new Set(names.length > MAX_OPEN ? names : []);
  });
  const inside = fields.filter(({ name }) => folded.has(name));
  const isOpen = useOnce(inside.some(({ node }) => node !== null));
  return html`${fields.filter(({ name }) => !folded.has(name)).map((one) => html`<${PartField} key=${one.name} part=${one} />`)}
    ${
      inside.length > 0 &&
      html`<details class="form-more" open=${isOpen}><summary>More fields: ${inside.map(({ steps }) => labelOf(pathOf(steps))).join(", ")}</summary>
        ${inside.map((one) => html`<${PartField} key=${one.name} part=${one} />`)}</details>`
    }`;
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
      return pathOf(part.steps) === "trigger.verify"
        ? html`<${VerifyField} part=${part} />`
        : html`<${GroupField} part=${part} />`;
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
  if (part.isRequired)
    return html`<fieldset class="form-group" data-field=${path}><legend>${labelOf(path)}</legend><${GroupContent} part=${part} /></fieldset>`;
  return html`<${FoldedGroup} part=${part} isOpen=${isOpen} note="optional" />`;
}

/** The recipe of a known sender is folded, because it needs no change. */
function VerifyField({ part }: { part: GroupPart }): View {
  const { sender } = useForm();
  const isOpen = useOnce(sender === null);
  return html`<${FoldedGroup} part=${part} isOpen=${isOpen} note=${sender == null ? "" : `as ${sender} signs`} />`;
}

function FoldedGroup({ part, isOpen, note }: { part: GroupPart; isOpen: boolean; note: string }): View {
  const path = pathOf(part.steps);
  return html`<details class="form-more form-group" data-field=${path} open=${isOpen}><summary><b>${labelOf(path)}</b> <span class="form-optional">${note}</span></summary><${GroupContent} part=${part} /></details>`;
}

function GroupContent({ part }: { part: GroupPart }): View {
  return html`<${Meaning} part=${part} /><${PartProblems} part=${part} /><${GroupFields} part=${part} />`;
}

/** Choice of the variant. A change keeps the fields that both variants have, and can be undone. */
function VariantChoice({ part }: { part: GroupPart }): View {
  const { edit, focusNext } = useForm();
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
    notifyDone(`Changed to “${title}”.`, async () => {
      edit((text) => (text === after ? before : setValue(text, steps, readValue(before, part.node))));
      focusNext(`[data-field="${pathOf(field.steps)}"] select`);
    });
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
