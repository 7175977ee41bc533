/** The payload of an event, exactly as it is stored; a cut one says so and shows what was kept of it. It can be expunged here, for good. */

import { useState } from "preact/hooks";
import type { Event } from "../ground/answer.ts";
import { writeExact } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { CopyButton } from "../part/copy-button.ts";
import { Dialog } from "../part/dialog.ts";
import { JsonView } from "../part/json-view.ts";
import { Notice } from "../part/notice.ts";
import { SafeText } from "../part/safe-text.ts";
import { Sentence } from "../part/sentence.ts";
import { useSend } from "../part/use-send.ts";

interface PayloadProps {
  place: Place;
  event: Event;
  onExpunged: (event: Event) => void;
}

export function EventPayload({ place, event, onExpunged }: PayloadProps): View {
  const [isAsking, setAsking] = useState(false);
  if (event.expunged !== null) {
    const why = event.expunged === "person_erased" ? "its person was erased" : "somebody expunged it";
    return html`<section class="block" aria-label="Payload"><div class="block-head"><h2>Payload</h2></div>
      <p class="none">It is not there any more, because ${why}.</p></section>`;
  }
  return html`<section class="block" aria-label="Payload">
    <div class="block-head"><h2>Payload</h2><div class="page-actions">
      <${CopyButton} text=${copyOf(event)} label="Copy the payload as JSON" />
      <button type="button" disabled=${event.state === "running"} onClick=${() => setAsking(true)}>Expunge…</button></div></div>
    ${isAsking && html`<${Expunge} place=${place} event=${event} onExpunged=${onExpunged} onClose=${() => setAsking(false)} />`}
    ${event.truncated && html`<${Notice} kind="info">It was larger than 32 KB: its mapped values were kept, up to 32 KB each and 64 KB together, and this is how the rest began.<//>`}
    ${event.mappedAgain && html`<${Notice} kind="info">Its mapped values were made again with version ${event.mapVersion} of the relay; when was not judged again, because the event was accepted.<//>`}
    <${JsonView} value=${event.payload} label="Payload" />
    ${
      event.preview !== null &&
      html`<h3>Beginning of the body</h3><pre class="preview">
      <${SafeText} text=${event.preview} limit=${4096} /></pre>`
    }
  </section>`;
}

function Expunge({ place, event, onExpunged, onClose }: PayloadProps & { onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const expunge = async (): Promise<void> => {
    const path = apiPath(place, "events", event.id, "expunge");
    const sent = await send<{ event: Event }>({
      method: "POST",
      path,
      done: "The payload is gone for good.",
    });
    if (sent === null) return;
    onExpunged(sent.answer.event);
    onClose();
  };
  return html`<${Dialog} title="Expunge this payload?" onClose=${onClose}>
    <p>The payload and what results quote of it go for good, and the event never runs again${event.state === "queued" && ": it ends failed now"}. That is audited. Mails it caused, and backups made before, are not touched.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${expunge}>
        ${isSending ? "Expunging…" : "Expunge for good"}</button></div>
  <//>`;
}

function copyOf({ payload }: Event): string {
  try {
    return writeExact(payload, 2);
  } catch {
    // Nested deeper than can be written with its indents.
    return JSON.stringify(null);
  }
}
