/** Code of the API with a link to its documentation. */
import { html, type View } from "../base/html.ts";

export function Code({ code, docs }: { code: string; docs: string | undefined }): View {
  const shown = html`<code class="code">${code}</code>`;
  if (docs === undefined || !/^https?:/.test(docs)) return shown;
  return html`<a href=${docs} target="_blank" rel="noreferrer">${shown}</a>`;
}
