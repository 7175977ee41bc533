/** A code as the API has it, which leads to the page that explains it. */
import { html, type View } from "../base/html.ts";

export function Code({ code, docs }: { code: string; docs: string | undefined }): View {
  const shown = html`<code class="code">${code}</code>`;
  if (docs === undefined || !/^https?:/.test(docs)) return shown;
  return html`<a href=${docs} target="_blank" rel="noreferrer">${shown}</a>`;
}
