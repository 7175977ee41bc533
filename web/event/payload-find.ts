/** Search in a payload of any size and depth. It shows a bounded number of places, each with a path to copy. */
import { useMemo, useState } from "preact/hooks";
import { copyText } from "../base/clipboard.ts";
import { formatNumber } from "../base/count-words.ts";
import { formatValue, isObject, type Json } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { Icon } from "../component/icon.ts";
import { SafeText } from "../component/safe-text.ts";
import { notifyDone, notifyFailed } from "../component/toast.ts";

const MAX_FOUND = 50;
/** Largest number of values that a search reads. */
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
      html`<p class="quiet" role="status">${found.places.length === 0 ? "Nothing found." : `${formatNumber(found.places.length)}${found.isMore ? " and more" : ""} found; click one to copy its path.`}</p>
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

/** Copies a path and reports whether that worked. */
export async function copyPath(path: string): Promise<void> {
  if (await copyText(path)) notifyDone("Copied the path.");
  else notifyFailed("The browser did not allow the copy. Select the text and press Ctrl+C.");
}

interface Found {
  path: string;
  value: string;
}

/** Value with its parents. Its path is built only when it is shown, because it may be very deep. */
interface Spot {
  value: Json;
  key: string | null;
  above: Spot | null;
}

/** Searches in the order of the text, without recursion. */
function find(payload: Json, text: string): { places: Found[]; isMore: boolean } {
  const places: Found[] = [];
  const left: Spot[] = [{ value: payload, key: null, above: null }];
  for (let looked = 0; ; looked++) {
    const spot = left.pop();
    if (spot === undefined) return { places, isMore: false };
    if (places.length === MAX_FOUND || looked === MAX_LOOKED_AT) return { places, isMore: true };
    const { value, key } = spot;
    const isList = Array.isArray(value);
    const shownValue = isList || isObject(value) ? "" : formatValue(value);
    const isNamed =
      key !== null &&
      spot.above !== null &&
      !Array.isArray(spot.above.value) &&
      key.toLowerCase().includes(text);
    if (isNamed || shownValue.toLowerCase().includes(text))
      places.push({ path: pathOf(spot), value: cutAround(shownValue, text) });
    const inside = isList || isObject(value) ? Object.entries(value) : [];
    for (const [name, item] of inside.reverse()) left.push({ value: item, key: name, above: spot });
  }
}

function pathOf(spot: Spot): string {
  const keys: string[] = [];
  for (let at: Spot | null = spot; at !== null; at = at.above) if (at.key !== null) keys.push(at.key);
  return keys.reverse().join(".");
}

function cutAround(value: string, text: string): string {
  if (value.length <= VALUE_CHARS) return value;
  const from = Math.max(0, value.toLowerCase().indexOf(text) - 40);
  return `${from > 0 ? "…" : ""}${value.slice(from, from + VALUE_CHARS)}…`;
}
