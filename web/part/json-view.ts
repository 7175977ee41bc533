/**
 * Shows JSON: numbers exactly as they came, strings as text, what is deep or long folded until asked for. Nothing below a fold is drawn,
 * so a hostile value costs little.
 */
import { useState } from "preact/hooks";
import { sayCount, sayNumber } from "../ground/count-words.ts";
import { ExactNumber, type Json } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import { SafeText } from "./safe-text.ts";

const OPEN_DEPTH = 3;
const SHOWN_ITEMS = 50;
const NAME_CHARS = 200;

export function JsonView({ value, label }: { value: Json; label: string }): View {
  return html`<div class="json" role="group" aria-label=${label}><${Node} value=${value} depth=${0} /></div>`;
}

function Node({ value, name, depth }: { value: Json; name?: string | number; depth: number }): View {
  if (typeof value === "object" && value !== null && !(value instanceof ExactNumber)) {
    return html`<${Branch} value=${value} name=${name} depth=${depth} />`;
  }
  return html`<div class="json-line"><${Name} name=${name} /><${Leaf} value=${value} /></div>`;
}

function Branch({
  value,
  name,
  depth,
}: {
  value: Json[] | { [name: string]: Json };
  name?: string | number;
  depth: number;
}): View {
  const isList = Array.isArray(value);
  const entries: [string | number, Json][] = isList
    ? value.map((item, at) => [at, item])
    : Object.entries(value);
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && entries.length <= SHOWN_ITEMS * 2);
  const [shown, setShown] = useState(SHOWN_ITEMS);
  const [first, last] = isList ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) {
    return html`<div class="json-line"><${Name} name=${name} /><span class="json-mark">${first}${last}</span></div>`;
  }
  const count = sayCount(entries.length, isList ? "item" : "field");
  return html`<div class="json-branch">
    <button type="button" class="json-fold" aria-expanded=${isOpen} aria-label="${name ?? "value"}: ${count}" onClick=${() => setOpen(!isOpen)}>
      <span class="json-turn" aria-hidden="true">${isOpen ? "▾" : "▸"}</span><${Name} name=${name} /><span class="json-mark"
        >${first}${!isOpen && html`<span class="json-count">${count}</span>${last}`}</span
      >
    </button>
    ${
      isOpen &&
      html`<div class="json-inside">
          ${entries.slice(0, shown).map(([key, item]) => html`<${Node} key=${key} name=${key} value=${item} depth=${depth + 1} />`)}
          ${
            entries.length > shown &&
            html`<button type="button" class="link" onClick=${() => setShown(shown * 4)}>
              Show more of ${sayNumber(entries.length)}
            </button>`
          }
        </div>
        <div class="json-line json-mark">${last}</div>`
    }
  </div>`;
}

function Name({ name }: { name?: string | number }): View {
  if (name === undefined) return null;
  if (typeof name === "number") return html`<span class="json-index">${name}</span>`;
  return html`<span class="json-name"><${SafeText} text=${name} limit=${NAME_CHARS} /></span><span class="json-mark">: </span>`;
}

function Leaf({ value }: { value: Json }): View {
  if (typeof value === "string")
    return html`<span class="json-text"><${SafeText} text=${value} quoted /></span>`;
  if (value instanceof ExactNumber) return html`<span class="json-number">${value.text}</span>`;
  if (typeof value === "number") return html`<span class="json-number">${String(value)}</span>`;
  return html`<span class="json-word">${String(value)}</span>`;
}
