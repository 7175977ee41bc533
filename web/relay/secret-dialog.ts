/** Dialogs that change a secret of a relay. A new secret is shown once, so a dialog cannot be closed while it changes one. */

import { useState } from "preact/hooks";
import type { Relay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { notifyDone } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";
import { usesPublicKey } from "./paste-secret.ts";
import { secretsOf } from "./relay-created.ts";

interface ChangeProps {
  place: Place;
  relay: Relay;
  onClose: () => void;
  onChanged: () => void;
}

type NewSecret = Parameters<typeof secretsOf>[0];

const OVERLAPS = [
  [0, "No overlap"],
  [3_600, "1 hour"],
  [86_400, "24 hours"],
  [259_200, "3 days"],
  [604_800, "7 days"],
] as const;

export function ReceiverSecretDialog({
  place,
  relay,
  isPaste,
  onClose,
  onChanged,
}: ChangeProps & {
  /** True if the user came to paste a secret. */
  isPaste: boolean;
}): View {
  const isPublicKey = relay.secret.kind === "public_key" || usesPublicKey(relay.definition.trigger);
  // A secret that Relay creates verifies nothing of a provider that makes its own.
  const onlyPaste = isPublicKey || relay.secret.issuedBy !== undefined;
  const wasPasted = relay.secret.kind === "pasted" || relay.secret.kind === "none";
  const [way, setWay] = useState<"mint" | "paste">(onlyPaste || wasPasted || isPaste ? "paste" : "mint");
  const [value, setValue] = useState("");
  const hasOne = relay.secret.setAt !== null;
  const [overlap, setOverlap] = useState(hasOne && place.environment === "production" ? 86_400 : 0);
  const [made, setMade] = useState<NewSecret | null>(null);
  const { send, error, isSending } = useSend();
  const save = async (): Promise<void> => {
    const path = apiPath(place, "relays", relay.name, "secret");
    const body = { overlapSeconds: overlap, ...(way === "paste" ? { value } : {}) };
    const sent = await send<NewSecret>({ method: "PUT", path, body });
    if (sent === null) return;
    onChanged();
    if (sent.answer.receiverSecret !== undefined) setMade(sent.answer);
    else {
      notifyDone(`Stored the new ${isPublicKey ? "public key" : "secret"} of ${relay.name}.`);
      onClose();
    }
  };
  if (made !== null)
    return html`<${NewSecretDialog} title="The new receiver secret" secret=${made} onClose=${onClose} />`;
  return html`<${Dialog} title="Change the receiver secret" onClose=${onClose} mustAnswer=${isSending}>
    ${
      !onlyPaste &&
      html`<fieldset class="radios"><legend class="off-screen">How</legend>
        <label>
          <input type="radio" name="way" checked=${way === "mint"} onChange=${() => setWay("mint")} />Create a new secret</label>
        <label>
          <input type="radio" name="way" checked=${way === "paste"} onChange=${() => setWay("paste")} />Paste the secret of the sender</label>
      </fieldset>`
    }
    ${
      way === "paste" &&
      html`<label class="field"><span>
        ${isPublicKey ? "The sender’s public key, as hex, base64 or PEM" : "The secret the sender shows"}</span>
        <textarea class="mono" rows=${isPublicKey ? 4 : 2} spellcheck=${false} autocomplete="off" value=${value} onInput=${(event: InputEvent) => setValue((event.target as HTMLTextAreaElement).value)}>
          </textarea></label>`
    }
    ${
      hasOne &&
      html`<label class="field"><span>The current secret also verifies for</span>
        <select value=${String(overlap)} onChange=${(event: Event) => setOverlap(Number((event.target as HTMLSelectElement).value))}>
          ${OVERLAPS.map(([seconds, words]) => html`<option key=${seconds} value=${seconds} selected=${seconds === overlap}>${words}</option>`)}</select></label>`
    }
    ${
      hasOne && overlap === 0
        ? html`<${Notice} kind="warn">Relay rejects requests with the current secret from that moment on.<//>`
        : hasOne &&
          html`<${Notice} kind="info">Until then Relay accepts both secrets. This page shows which secret the last request used.<//>`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" disabled=${isSending || (way === "paste" && value.trim() === "")} onClick=${save}>
        ${isSending ? "Changing…" : way === "mint" ? "Create a new secret" : "Store secret"}</button></div>
  <//>`;
}

export function SigningSecretDialog({ place, relay, onClose, onChanged }: ChangeProps): View {
  const [made, setMade] = useState<NewSecret | null>(null);
  const [overlap, setOverlap] = useState(place.environment === "production" ? 86_400 : 0);
  const { send, error, isSending } = useSend();
  const rotate = async (): Promise<void> => {
    const path = apiPath(place, "relays", relay.name, "signing-secret");
    const sent = await send<NewSecret>({ method: "PUT", path, body: { overlapSeconds: overlap } });
    if (sent === null) return;
    onChanged();
    setMade(sent.answer);
  };
  if (made !== null)
    return html`<${NewSecretDialog} title="The new signing secret" secret=${made} onClose=${onClose} />`;
  return html`<${Dialog} title="Rotate the signing secret" onClose=${onClose} mustAnswer=${isSending}>
    <label class="field"><span>The current secret also signs for</span>
      <select value=${String(overlap)} onChange=${(event: Event) => setOverlap(Number((event.target as HTMLSelectElement).value))}>
        ${OVERLAPS.map(([seconds, words]) => html`<option key=${seconds} value=${seconds} selected=${seconds === overlap}>${words}</option>`)}</select></label>
    ${
      overlap === 0
        ? html`<${Notice} kind="warn">Relay signs the next request of call_url only with the new secret. Your server rejects it until it has the new secret.<//>`
        : html`<${Notice} kind="info">Until then each request of call_url has a signature of both secrets. Code that reads only one signature must be replaced first.<//>`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" disabled=${isSending} onClick=${rotate}>
        ${isSending ? "Rotating…" : "Rotate"}</button></div>
  <//>`;
}

function NewSecretDialog({
  title,
  secret,
  onClose,
}: {
  title: string;
  secret: NewSecret;
  onClose: () => void;
}): View {
  return html`<${Dialog} title=${title} onClose=${onClose} mustAnswer>
    <${SecretOnce} secrets=${secretsOf(secret)} />
    <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>I stored the secret</button></div>
  <//>`;
}
