/**
 * View of a JSON value: exact numbers, strings as text, and deep or long parts folded. Folded parts are not rendered,
 * so a hostile value costs little. If paths can be copied, arrow keys move between values and y copies the path of the
 * focused one.
 */
import { useState } from "preact/hooks";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { ExactNumber, type Json } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { SafeText } from "./safe-text.ts";

const OPEN_DEPTH = 3;
const SHOWN_ITEMS = 50;
const NAME_CHARS = 200;
/** Longest path that can be copied. */
const MAX_PATH_CHARS = 1_000;

export function JsonView({
  value,
  label,
  path,
  onCopyPath,
}: {
  value: Json;
  label: string;
  /** Path of the value and the function that copies a path. Paths cannot be copied if one of them is absent. */
  path?: string;
  onCopyPath?: (path: string) => void;
}): View {
  const canCopy = path !== undefined && onCopyPath !== undefined;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const { path: focused } = (event.target as HTMLElement).dataset;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (walk(event, event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    } else if (event.key === "y" && focused !== undefined && focused !== "") {
      onCopyPath?.(focused);
      event.preventDefault();
    }
  };
  const onClick = (event: MouseEvent): void => {
    const { copy } = (event.target as HTMLElement).dataset;
    if (copy !== undefined) onCopyPath?.(copy);
  };
  return html`<div class="json" role="group" aria-label=${canCopy ? `${label}: arrow keys move, y copies a path` : label}
    ...${canCopy ? { onKeyDown, onClick } : {}}><${Node} value=${value} path=${canCopy ? path : undefined} depth=${0} /></div>`;
}

/** Moves the focus to the next or previous value. Returns false at the end. */
function walk(event: KeyboardEvent, by: 1 | -1): boolean {
  const stops = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("button[data-path]")];
  const at = stops.indexOf(event.target as HTMLElement);
  const next = at < 0 ? undefined : stops[at + by];
  next?.focus();
  return next !== undefined;
}

interface NodeProps {
  value: Json;
  name?: string | number | undefined;
  /** undefined: the path cannot be copied. */
  path: string | undefined;
  depth: number;
}

function Node({ value, name, path, depth }: NodeProps): View {
  if (typeof value === "object" && value !== null && !(value instanceof ExactNumber)) {
    return html`<${Branch} value=${value} name=${name} path=${path} depth=${depth} />`;
  }
  return html`<div class="json-line"><${Name} name=${name} /><${Leaf} value=${value} /><${Copy} path=${path} isStop /></div>`;
}

/**
 * `isStop`: the arrow keys stop here, because no other part of the value can have the focus. A large tree has many
 * buttons, so each is one element and CSS adds its icon.
 */
function Copy({ path, isStop = false }: { path: string | undefined; isStop?: boolean }): View {
  if (path === undefined || path === "") return null;
  const words = `Copy the path ${path.slice(0, NAME_CHARS)}`;
  return html`<button type="button" class="json-copy" tabindex="-1" aria-label=${words} title=${words} data-copy=${path} data-path=${isStop ? path : undefined} />`;
}

function Branch({
  value,
  name,
  path,
  depth,
}: NodeProps & { value: Json[] | { [name: string]: Json } }): View {
  const isList = Array.isArray(value);
  const entries: [string | number, Json][] = isList
    ? value.map((item, at) => [at, item])
    : Object.entries(value);
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && entries.length <= SHOWN_ITEMS * 2);
  const [shown, setShown] = useState(SHOWN_ITEMS);
  const [first, last] = isList ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) {
    return html`<div class="json-line"><${Name} name=${name} /><span class="json-mark">${first}${last}</span><${Copy} path=${path} isStop /></div>`;
  }
  const count = formatCount(entries.length, isList ? "item" : "field");
  return html`<div class="json-branch">
    <button type="button" class="json-fold" data-path=${path} aria-expanded=${isOpen} aria-label="${name ?? "value"}: ${count}" onClick=${() => setOpen(!isOpen)}>
      <span class="json-turn" aria-hidden="true">${isOpen ? "▾" : "▸"}</span><${Name} name=${name} /><span class="json-mark"
        >${first}${!isOpen && html`<span class="json-count">${count}</span>${last}`}</span
      >
    </button><${Copy} path=${path} />
    ${
      isOpen &&
      html`<div class="json-inside">
          ${entries.slice(0, shown).map(([key, item]) => html`<${Node} key=${key} name=${key} value=${item} path=${pathBelow(path, key)} depth=${depth + 1} />`)}
          ${
            entries.length > shown &&
            html`<button type="button" class="link" onClick=${() => setShown(shown * 4)}>
              Show more of ${formatNumber(entries.length)}
            </button>`
          }
        </div>
        <div class="json-line json-mark">${last}</div>`
    }
  </div>`;
}

function pathBelow(path: string | undefined, name: string | number): string | undefined {
  if (path === undefined || path.length > MAX_PATH_CHARS) return undefined;
  return path === "" ? String(name) : `${path}.${name}`;
}

function Name({ name }: { name?: string | number | undefined }): View {
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
