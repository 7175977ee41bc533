/** Finds names and values in a payload, however large or deep: a bounded number of places, each with its path, to be copied. */
import { useMemo, useState } from "preact/hooks";
import { copyText } from "../ground/clipboard.ts";
import { sayNumber } from "../ground/count-words.ts";
import { ExactNumber, isObject, type Json } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import { Icon } from "../part/icon.ts";
import { SafeText } from "../part/safe-text.ts";
import { tellDone, tellFailed } from "../part/toast.ts";

const MAX_FOUND = 50;
/** Values that are looked at. */
const MAX_LOOKED_AT = 200_000;
const VALUE_CHARS = 160;
const PATH_CHARS = 200;

export function PayloadFind({ payload }: { payload: Json }): View {
  const [text, setText] = useState("");
  const found = useMemo(() => (text === "" ? null : find(payload, text.toLowerCase())), [payload, text]);
  return html`<div class="payload-find">
    <label class="search"><${Icon} name="search" size=${14} /><input type="search" aria-label="Find in the payload" placeholder="Find in the payload" value=${text} autocomplete="off" spellcheck=${false}
      onInput=${(event: InputEvent) => setText((event.target as HTMLInputElement).value)} /></label>
    ${
      found !== null &&
      html`<p class="quiet" role="status">${found.places.length === 0 ? "Nothing found." : `${sayNumber(found.places.length)}${found.isMore ? " and more" : ""} found; a click copies the path.`}</p>
      <ul class="found-list">${found.places.map(
        ({
          path,
          value,
        }) => html`<li key=${path}><button type="button" class="link" onClick=${() => void copyPath(path)}><code><${SafeText} text=${path.slice(0, PATH_CHARS)} /></code></button>
          <${SafeText} text=${value} limit=${VALUE_CHARS + 1} /></li>`,
      )}</ul>`
    }
  </div>`;
}

/** Tells whether it worked. */
export async function copyPath(path: string): Promise<void> {
  if (await copyText(path)) tellDone("Copied the path.");
  else tellFailed("The browser refused to copy it: select it and press Ctrl+C.");
}

interface Place {
  path: string;
  value: string;
}

/** Without recursion, in the order of the text. */
function find(payload: Json, text: string): { places: Place[]; isMore: boolean } {
  const places: Place[] = [];
  const left: { value: Json; path: string; name: string }[] = [{ value: payload, path: "", name: "" }];
  for (let looked = 0; left.length > 0; looked++) {
    if (places.length === MAX_FOUND || looked === MAX_LOOKED_AT) return { places, isMore: true };
    const at = left.pop();
    if (at === undefined) break;
    const { value, path, name } = at;
    const isHolder = Array.isArray(value) || isObject(value);
    const said = isHolder ? "" : sayValue(value);
    if (path !== "" && (name.toLowerCase().includes(text) || said.toLowerCase().includes(text)))
      places.push({ path, value: cutAround(said, text) });
    if (!isHolder) continue;
    const inside = Array.isArray(value)
      ? value.map((item, index) => ({ value: item, path: `${path}.${index}`, name: "" }))
      : Object.entries(value).map(([key, item]) => ({ value: item, path: `${path}.${key}`, name: key }));
    for (let last = inside.length - 1; last >= 0; last--) {
      const one = inside[last];
      if (one !== undefined) left.push({ ...one, path: one.path.replace(/^\./, "") });
    }
  }
  return { places, isMore: false };
}

export function sayValue(value: Json): string {
  if (value instanceof ExactNumber) return value.text;
  return typeof value === "string" ? value : String(value);
}

function cutAround(value: string, text: string): string {
  if (value.length <= VALUE_CHARS) return value;
  const from = Math.max(0, value.toLowerCase().indexOf(text) - 40);
  return `${from > 0 ? "…" : ""}${value.slice(from, from + VALUE_CHARS)}…`;
}
