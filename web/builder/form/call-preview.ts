/** The call of a call_url action: what Relay sends, and code that verifies its signature. */
import { useState } from "preact/hooks";
import { isObject, type Json, parseExact, writeExact } from "../../base/exact-json.ts";
import { html, type View } from "../../base/html.ts";
import { useLoad } from "../../base/use-load.ts";
import { CopyButton } from "../../component/copy-button.ts";
import { SafeText } from "../../component/safe-text.ts";
import { actionDetail, useForm } from "./form-scope.ts";

interface Verifier {
  language: string;
  title: string;
  file: string;
  code: string;
}

const SHOWN_CHARS = 8_000;

export function CallPreview({ index }: { index: number }): View {
  const sends = actionDetail(useForm().outcome, index)?.sends;
  const [isOpen, setOpen] = useState(false);
  const open = (event: Event): void => setOpen((event.target as HTMLDetailsElement).open);
  return html`<details class="form-more" onToggle=${open}><summary>Exactly what Relay sends</summary>
      ${sends !== undefined && isObject(sends) ? html`<${Sent} sends=${sends} />` : html`<p class="quiet">Choose a request that runs this action to see the call.</p>`}</details>
    <details class="form-more" onToggle=${open}><summary>Code that verifies the signature</summary>${isOpen && html`<${Verifiers} />`}</details>`;
}

function Sent({ sends }: { sends: { [name: string]: Json } }): View {
  const { method, url, headers, body, exampleSecret } = sends;
  const text = typeof body === "string" ? body : writeExact(body ?? null);
  const lines = isObject(headers ?? null)
    ? Object.entries(headers as { [name: string]: Json }).map(
        ([name, value]) => `${name}: ${typeof value === "string" ? value : writeExact(value)}`,
      )
    : [];
  const head = `${typeof method === "string" ? method : "POST"} ${typeof url === "string" ? url : ""}\n${lines.join("\n")}`;
  return html`<pre class="form-call" tabindex="0" aria-label="Request line and headers"><${SafeText} text=${head} limit=${SHOWN_CHARS} /></pre>
    <pre class="form-call" tabindex="0" aria-label="Body"><${SafeText} text=${pretty(text)} limit=${SHOWN_CHARS} /></pre>
    <div class="form-call-foot"><${CopyButton} text=${text} label="Copy body exactly as Relay sends it" words="Copy body" />
      <span class="quiet">Relay sends the body on one line.${typeof exampleSecret === "string" && html` Here the example secret <code>${exampleSecret}</code> signs it.`}</span></div>`;
}

function pretty(text: string): string {
  try {
    return writeExact(parseExact(text), 2);
  } catch {
    return text;
  }
}

function Verifiers(): View {
  const { data, error } = useLoad<{ items: readonly Verifier[] }>("/api/verifiers");
  const [chosen, setChosen] = useState("");
  const items = data?.items ?? [];
  const shown = items.find(({ language }) => language === chosen) ?? items[0];
  if (shown === undefined)
    return html`<p class="quiet">${error === null ? "Loading the code…" : "The code could not load. Open this part again."}</p>`;
  return html`<div class="choices form-languages" role="group" aria-label="Language">${items.map(
    ({ language, title }) =>
      html`<button key=${language} type="button" aria-pressed=${String(language === shown.language)} onClick=${() => setChosen(language)}>${title}</button>`,
  )}</div>
    <pre class="form-call" tabindex="0" aria-label="${shown.title}, ${shown.file}"><code>${shown.code}</code></pre>
    <${CopyButton} text=${shown.code} label="Copy code of ${shown.file}" words="Copy code" />`;
}
