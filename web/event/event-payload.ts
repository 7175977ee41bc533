/** Payload of an event, exactly as stored. A truncated payload says so. The user can expunge it permanently. */

import { useMemo, useState } from "preact/hooks";
import type { Event } from "../base/answer.ts";
import { isObject, type Json, writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Dialog } from "../component/dialog.ts";
import { JsonView } from "../component/json-view.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { mappedOf } from "./event-words.ts";
import { MappedValues } from "./mapped-values.ts";
import { copyPath, PayloadFind } from "./payload-find.ts";

const RAW_CHARS = 20_000;

interface PayloadProps {
  place: Place;
  event: Event;
  /** URL at which its relay receives requests; undefined if it has none. */
  url?: string | undefined;
  onExpunged: (event: Event) => void;
}

export function EventPayload(props: PayloadProps): View {
  const { event } = props;
  if (event.expunged !== null) {
    const why = event.expunged === "person_erased" ? "its person was erased" : "someone expunged it";
    return html`<section class="block" aria-label="Payload"><div class="block-head"><h2>Payload</h2></div>
      <p class="none">The payload was removed because ${why}.</p></section>`;
  }
  return html`<${Shown} ...${props} />`;
}

function Shown({ place, event, url, onExpunged }: PayloadProps): View {
  const [isAsking, setAsking] = useState(false);
  const [isRaw, setRaw] = useState(false);
  const mapped = mappedOf(event);
  const text = (): string => copyOf(event.payload);
  const raw = useMemo(() => (isRaw ? text() : ""), [event.payload, isRaw]);
  return html`${
    mapped !== null &&
    Object.keys(mapped).length > 0 &&
    html`<section class="block" aria-label="Mapped values"><div class="block-head"><h2>Mapped values</h2></div>
      <${MappedValues} mapped=${mapped} /></section>`
  }<section class="block" aria-label="Payload">
    <div class="block-head"><h2>Payload</h2><div class="page-actions">
      <div class="tree-or-raw" role="group" aria-label="Shown as">
        <button type="button" aria-pressed=${String(!isRaw)} onClick=${() => setRaw(false)}>Tree</button>
        <button type="button" aria-pressed=${String(isRaw)} onClick=${() => setRaw(true)}>Raw</button></div>
      <${CopyButton} text=${text} label="Copy the payload as JSON" />
      ${hasCall(event, url) && html`<${CopyButton} text=${() => curlOf(event, url ?? "")} label="Copy the request as curl, without its signature" words="curl" />`}
      <button data-needs="erase" type="button" disabled=${event.state === "running"} onClick=${() => setAsking(true)}>Expunge…</button></div></div>
    ${isAsking && html`<${Expunge} place=${place} event=${event} onExpunged=${onExpunged} onClose=${() => setAsking(false)} />`}
    <p class="quiet hidden-values">Your role does not show the values. Names and types stay. An owner can allow you to see payloads.</p>
    ${event.truncated && html`<${Notice} kind="info">The payload was larger than 32 KB. Relay stored its mapped values (up to 32 KB each, 64 KB together) and the beginning of the rest.<//>`}
    ${event.mappedAgain && html`<${Notice} kind="info">Relay mapped the values again with version ${event.mapVersion} of the relay. It did not check when again, because the event was already accepted.<//>`}
    <${PayloadFind} payload=${event.payload} />
    ${isRaw ? html`<pre class="preview"><${SafeText} text=${raw} limit=${RAW_CHARS} /></pre>` : html`<${JsonView} value=${event.payload} label="Payload" path="" onCopyPath=${(path: string) => void copyPath(path)} />`}
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
      done: "The payload is permanently removed.",
    });
    if (sent === null) return;
    onExpunged(sent.answer.event);
    onClose();
  };
  return html`<${Dialog} title="Expunge this payload?" onClose=${onClose}>
    <p>Relay permanently removes the payload and its quotes in results. The event never runs again${event.state === "queued" && ": its state becomes Failed now"}. The audit log records it. Sent mails and earlier backups do not change.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${expunge}>
        ${isSending ? "Expunging…" : "Expunge permanently"}</button></div>
  <//>`;
}

function copyOf(payload: Json, indent = 2): string {
  try {
    return writeExact(payload, indent);
  } catch {
    // The value is nested too deeply to be written with indents.
    return JSON.stringify(null);
  }
}

/** Reports whether the event has a complete stored request. */
function hasCall({ payload, truncated }: Event, url: string | undefined): boolean {
  return url !== undefined && !truncated && isObject(payload) && payload.event !== undefined;
}

/** Returns a curl command that repeats the request without its signature, which Relay does not store. */
function curlOf({ payload }: Event, url: string): string {
  const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const body = isObject(payload) ? copyOf(payload.event ?? null, 0) : "";
  return `# Unsigned: the sender's signature is not kept. relay send signs a request with the relay's own secret.
curl -X POST ${quote(url)} -H 'content-type: application/json' --data-raw ${quote(body)}`;
}
