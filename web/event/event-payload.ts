/** The payload of an event, exactly as it is stored; a cut one says so and shows what was kept of it. */
import type { Event } from "../ground/answer.ts";
import { writeExact } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import { CopyButton } from "../part/copy-button.ts";
import { JsonView } from "../part/json-view.ts";
import { Notice } from "../part/notice.ts";
import { SafeText } from "../part/safe-text.ts";

export function EventPayload({ event }: { event: Event }): View {
  return html`<section class="block" aria-label="Payload">
    <div class="block-head"><h2>Payload</h2><div class="page-actions">
      <${CopyButton} text=${copyOf(event)} label="Copy the payload as JSON" /></div></div>
    ${event.truncated && html`<${Notice} kind="info">It was larger than 32 KB: the mapped values were kept whole or cut at 2 KB each, and this is how the rest began.<//>`}
    <${JsonView} value=${event.payload} label="Payload" />
    ${
      event.preview !== null &&
      html`<h3>Beginning of the body</h3><pre class="preview">
      <${SafeText} text=${event.preview} limit=${4096} /></pre>`
    }
  </section>`;
}

function copyOf({ payload }: Event): string {
  try {
    return writeExact(payload, 2);
  } catch {
    // Nested deeper than can be written with its indents.
    return JSON.stringify(null);
  }
}
