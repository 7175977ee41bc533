/** Name of something in the environment: a collection, a product, a plan or an entitlement. A missing one is created in place. */
import { useId, useState } from "preact/hooks";
import type { Simulation } from "../../../src/insight/simulate/step.ts";
import type { FieldType } from "../../../src/shop/records/collection-definition.ts";
import type { Page, RelayItem } from "../../base/answer.ts";
import { html, type View } from "../../base/html.ts";
import { apiPath, type Place } from "../../base/place.ts";
import { useLoad } from "../../base/use-load.ts";
import { type JsonNode, nodeAt } from "../../editor/json-tree.ts";
import { namesFor } from "../../editor/schema.ts";
import { NAMES_QUERY } from "../../editor/use-known.ts";
import { CollectionForm } from "../../records/collection-form.ts";
import { ItemForm, type Kind } from "../../selling/item-form.ts";
import { FieldFrame, type FrameProps, typedIn } from "./field-frame.ts";
import type { InputPart } from "./form-part.ts";
import { mappedValue, useForm } from "./form-scope.ts";
import { pathOf, writeText } from "./part-edit.ts";

const ACCESS = "access:";
const WORDS = { collection: "collection", product: "product", plan: "plan", access: "access slug" } as const;

type Thing = keyof typeof WORDS;

/** Returns the kinds of things that the name can mean. */
function thingsOf(source: string | undefined, name: string): Thing[] {
  if (source === "collection" || source === "product" || source === "plan") return [source];
  if (source !== "entitlement") return [];
  return name.startsWith(ACCESS) ? ["access"] : ["product", "plan"];
}

export function NameField({ part }: { part: InputPart }): View {
  const { place, edit, known, focusNext } = useForm();
  const id = useId();
  const [making, setMaking] = useState<Thing | null>(null);
  const { schema, steps, node } = part;
  const source = schema["x-names"];
  const value = node?.value ?? "";
  const names = namesFor(known, source, steps.slice(0, -1));
  const isName = new RegExp((schema as { pattern?: string }).pattern ?? "").test(value);
  const things = isName && !names.includes(value) ? thingsOf(source, value) : [];
  const isAbsent = useLists(place).every((list) => list?.next === null);
  // The button that opened the dialog disappears when the name exists.
  const close = (): void => {
    setMaking(null);
    focusNext(`[data-field="${pathOf(steps)}"] input`);
  };
  return html`<${FieldFrame} part=${part}>${(frame: FrameProps) =>
    html`<input ...${frame} class="mono" list="${id}-names" value=${value} autocomplete="off" spellcheck=${false}
        onInput=${(event: InputEvent) => {
          const typed = typedIn(event);
          edit((text) => writeText(text, part, typed));
        }} />
      <datalist id="${id}-names">${names.map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
      ${
        isAbsent &&
        things.length > 0 &&
        html`<p class="form-create">${things.map(
          (thing) =>
            html` <button key=${thing} type="button" onClick=${() => setMaking(thing)}>Create ${WORDS[thing]} ${value.replace(ACCESS, "")}…</button>`,
        )}</p>`
      }
      ${making !== null && html`<${CreateDialog} thing=${making} name=${value.replace(ACCESS, "")} part=${part} onClose=${close} />`}`}<//>`;
}

/** Loads the lists of names. Only a complete list shows that a name is absent. */
function useLists(place: Place): (Page<unknown> | undefined)[] {
  const list = (what: string) => useLoad<Page<unknown>>(apiPath(place, what) + NAMES_QUERY).data;
  return [list("collections"), list("products"), list("plans"), list("access")];
}

const KINDS: Readonly<Record<Exclude<Thing, "collection">, Kind>> = {
  product: "products",
  plan: "plans",
  access: "access",
};

/** The relay is suggested as the seller if it is saved and its action sells. */
function CreateDialog({
  thing,
  name,
  part,
  onClose,
}: {
  thing: Thing;
  name: string;
  part: InputPart;
  onClose: () => void;
}): View {
  const { place, known, relay, outcome } = useForm();
  const relays = useLoad<Page<RelayItem>>(`${apiPath(place, "relays")}?limit=200`).data?.items;
  if (thing === "collection") {
    const wanted = { name, fields: fieldsWritten(known, part, outcome) };
    return html`<${CollectionForm} place=${place} collection=${null} wanted=${wanted} onClose=${onClose} onMade=${onClose} />`;
  }
  // The form reads its first values once, so it waits for the relays.
  if (relays === undefined) return null;
  const sells = part.schema["x-names"] !== "entitlement" && relays.some((one) => one.name === relay);
  return html`<${ItemForm} place=${place} kind=${KINDS[thing]} item=${null} wanted=${{ name, relay: sells ? relay : null }} uses=${[]} onClose=${onClose} onSaved=${onClose} />`;
}

/** A template that is only one mapped value, which keeps its type. */
const MAPPED = /^\{\{\s*mapped\.(\w+)\s*\}\}$/;

/** Returns the fields that the action writes into the new collection, with the type of each value for the request in view. */
function fieldsWritten(
  { root }: { root: JsonNode | null },
  { steps }: InputPart,
  outcome: Simulation | null,
): { name: string; type?: FieldType }[] {
  const data = [...steps.slice(0, -1), "data"];
  return (nodeAt(root, data)?.members ?? []).map(({ name, value }) => {
    const [, mapped] = MAPPED.exec(value?.value ?? "") ?? [];
    const type = mapped === undefined ? "" : typeof mappedValue(outcome, mapped)?.value;
    return type === "number" || type === "boolean" ? { name, type } : { name };
  });
}
