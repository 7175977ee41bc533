/** Values that the relay's map read from a request. Each can be copied as its path for templates. */
import { useState } from "preact/hooks";
import { formatNumber } from "../base/count-words.ts";
import { ExactNumber, formatValue, type Json } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { JsonView } from "../component/json-view.ts";
import { SafeText } from "../component/safe-text.ts";
import { copyPath } from "./payload-find.ts";

const SHOWN = 30;
const VALUE_CHARS = 300;

export function MappedValues({ mapped }: { mapped: Readonly<Record<string, Json>> }): View {
  const [isAll, setAll] = useState(false);
  const entries = Object.entries(mapped);
  const shown = isAll ? entries : entries.slice(0, SHOWN);
  return html`<dl class="mapped">${shown.map(([name, value]) => {
    const path = `mapped.${name}`;
    return html`<div key=${name}><dt><button type="button" class="link" title="Copy ${path}" onClick=${() => void copyPath(path)}><${SafeText} text=${name} limit=${80} /></button></dt>
      <dd>${isPlain(value) ? html`<${SafeText} text=${formatValue(value)} limit=${VALUE_CHARS} breaks />` : html`<${JsonView} value=${value} label=${path} path=${path} onCopyPath=${(copied: string) => void copyPath(copied)} />`}</dd></div>`;
  })}</dl>
  ${entries.length > shown.length && html`<button type="button" class="link" onClick=${() => setAll(true)}>Show all ${formatNumber(entries.length)}</button>`}`;
}

function isPlain(value: Json): boolean {
  return typeof value !== "object" || value === null || value instanceof ExactNumber;
}
