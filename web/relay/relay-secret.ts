/** Secrets of a relay: their facts and how to change them. A value appears only in the response that made it. */

import { useState } from "preact/hooks";
import type { Relay } from "../base/answer.ts";
import { call, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { serviceNow } from "../base/service-clock.ts";
import { sayExactly, sayMoment } from "../base/time-words.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Dialog } from "../component/dialog.ts";
import { DOCS, DocsLink } from "../component/docs-link.ts";
import { Notice } from "../component/notice.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { tellDone } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";
import { secretsOf } from "./relay-created.ts";
import { KnownSender } from "./sender-hint.ts";

const KIND_WORDS = {
  minted: "Made by this service",
  pasted: "Pasted from the sender",
  public_key: "The sender’s public key",
  processor: "The environment’s processor secret",
  none: "None yet: every call is refused",
} as const;

/** Algorithms of a recipe and senders of a named scheme that verify with the sender's public key. */
const PUBLIC_KEY_METHODS: readonly unknown[] = ["ed25519", "ecdsa-p256-sha256", "telnyx"];

/** The last times at which requests verified with each of the two secrets. */
export interface SecretUse {
  presentAt: string | null;
  previousAt: string | null;
}

export function RelaySecrets({
  place,
  relay,
  use,
  onChanged,
}: {
  place: Place;
  relay: Relay;
  use: SecretUse | null;
  onChanged: () => void;
}): View {
  const [open, setOpen] = useState<"receiver" | "signing" | null>(null);
  const { secret, signingSecret, handshake } = relay;
  if (relay.trigger !== "receiver" && signingSecret === undefined) return null;
  return html`<section class="card secrets" aria-label="Secrets"><h2>Secrets</h2>
    ${
      relay.trigger === "receiver" &&
      html`<div class="fact"><h3>Receiver</h3><p>${KIND_WORDS[secret.kind]}</p>
        ${secret.fingerprint !== undefined && html`<p class="quiet"><code title="Fingerprint">${secret.fingerprint}</code></p>`}
        ${secret.setAt !== null && html`<p class="quiet">set <${Ago} at=${secret.setAt} /></p>`}
        ${
          secret.kind === "processor"
            ? html`<p class="quiet">One for every relay of the processor in this environment.</p><a class="button" href=${pagePath(place, "settings")}>${secret.setAt === null ? "Set it in the settings" : "Replace it in the settings"}</a>`
            : html`${secret.previousUntil !== undefined && html`<${Overlap} place=${place} relay=${relay} until=${secret.previousUntil} use=${use} onChanged=${onChanged} />`}
            <button type="button" onClick=${() => setOpen("receiver")}>
              ${secret.kind === "none" || secret.kind === "public_key" ? "Paste…" : "Rotate or paste…"}</button>`
        }</div>`
    }
    ${relay.trigger === "receiver" && html`<${KnownSender} place=${place} relay=${relay.name} />`}
    ${
      handshake !== undefined &&
      html`<div class="fact"><h3>Handshake</h3><p>Answers <code>${handshake.name}</code></p>
        <p class="quiet"><${Sentence} text=${handshake.message} /></p>
        ${
          handshake.verifyToken !== undefined &&
          html`<p>Verify token <code>${handshake.verifyToken}</code> <${CopyButton} text=${handshake.verifyToken} label="Copy the verify token" /></p>`
        }</div>`
    }
    ${
      signingSecret !== undefined &&
      html`<div class="fact"><h3>Signing</h3>
        <p class="quiet">Signs what call_url sends · set <${Ago} at=${signingSecret.setAt} /></p>
        <button type="button" onClick=${() => setOpen("signing")}>Rotate…</button></div>`
    }
    <p class="quiet"><${DocsLink} to=${DOCS.rotate}>Rotate a secret without losing a call<//></p>
    ${open === "receiver" && html`<${ReceiverDialog} place=${place} relay=${relay} onClose=${() => setOpen(null)} onChanged=${onChanged} />`}
    ${open === "signing" && html`<${SigningDialog} place=${place} relay=${relay} onClose=${() => setOpen(null)} onChanged=${onChanged} />`}
  </section>`;
}

/** Notice while two secrets are valid. It shows which one the sender uses, and a button ends the old one. */
function Overlap({
  place,
  relay: { name },
  until,
  use,
  onChanged,
}: {
  place: Place;
  relay: Relay;
  until: string;
  use: SecretUse | null;
  onChanged: () => void;
}): View {
  const { send, isSending } = useSend();
  const { presentAt = null, previousAt = null } = use ?? {};
  const isNew = presentAt !== null && (previousAt === null || presentAt >= previousAt);
  const end = async (): Promise<void> => {
    await send({
      method: "DELETE",
      path: apiPath(place, "relays", name, "previous-secret"),
      done: `From now on only the present secret of ${name} verifies.`,
      tellsRefusal: true,
    });
    onChanged();
  };
  return html`<${Notice} kind=${isNew ? "good" : "warn"}><p>The secret before it verifies too, until <${At} at=${until} />.</p>
    <p>${
      presentAt === null && previousAt === null
        ? "No call has come since, so it is not known which one the sender uses."
        : isNew
          ? html`<b>The last call used the new one</b>, <${Ago} at=${presentAt} />: the old one can go.`
          : html`<b>The last call still used the old one</b>, <${Ago} at=${previousAt ?? until} />: give the sender the new one first.`
    }</p>
    <button type="button" disabled=${isSending} onClick=${() => void end()}>End the old one now</button><//>`;
}

/** Shows a future time, both exact and relative. */
function At({ at }: { at: string }): View {
  return html`<time datetime=${at} title=${sayExactly(at)}>${sayMoment(at, serviceNow())}</time> (<${Ago} at=${at} />)`;
}

const OVERLAPS = [
  [0, "no overlap: at once"],
  [3_600, "1 hour"],
  [86_400, "24 hours"],
  [259_200, "3 days"],
  [604_800, "7 days"],
] as const;

/** Properties of a dialog that changes a secret. It cannot be closed during the change, because the new secret is shown only once. */
interface ChangeProps {
  place: Place;
  relay: Relay;
  onClose: () => void;
  onChanged: () => void;
}

/** Reports whether the trigger verifies with a public key, which only the sender can create. */
function usesPublicKey(trigger: Relay["definition"]["trigger"]): boolean {
  const verify = "verify" in trigger ? trigger.verify : null;
  return (
    typeof verify === "object" &&
    Object.values(verify ?? {}).some((value) => PUBLIC_KEY_METHODS.includes(value))
  );
}

function ReceiverDialog({ place, relay, onClose, onChanged }: ChangeProps): View {
  const onlyPaste = relay.secret.kind === "public_key" || usesPublicKey(relay.definition.trigger);
  const wasPasted = relay.secret.kind === "pasted" || relay.secret.kind === "none";
  const [way, setWay] = useState<"mint" | "paste">(onlyPaste || wasPasted ? "paste" : "mint");
  const [value, setValue] = useState("");
  const hasOne = relay.secret.setAt !== null;
  const [overlap, setOverlap] = useState(hasOne && place.environment === "production" ? 86_400 : 0);
  const { send, sent, error, isSending } = useChange(onChanged, () => {
    const body = { overlapSeconds: overlap, ...(way === "paste" ? { value } : {}) };
    return call<{ receiverSecret?: string }>("PUT", apiPath(place, "relays", relay.name, "secret"), body);
  });
  if (sent !== null && sent.receiverSecret !== undefined)
    return html`<${Shown} title="The new receiver secret" answer=${sent} onClose=${onClose} />`;
  const save = async (): Promise<void> => {
    if ((await send()) && way === "paste") {
      tellDone(`Stored the new ${onlyPaste ? "public key" : "secret"} of ${relay.name}.`);
      onClose();
    }
  };
  return html`<${Dialog} title="Change the receiver secret" onClose=${onClose} mustAnswer=${isSending}>
    ${
      !onlyPaste &&
      html`<fieldset class="radios"><legend class="off-screen">How</legend>
        <label>
          <input type="radio" name="way" checked=${way === "mint"} onChange=${() => setWay("mint")} />Make a new secret</label>
        <label>
          <input type="radio" name="way" checked=${way === "paste"} onChange=${() => setWay("paste")} />Paste the sender’s</label>
      </fieldset>`
    }
    ${
      way === "paste" &&
      html`<label class="field"><span>
        ${onlyPaste ? "The sender’s public key, as hex, base64 or PEM" : "The secret the sender shows"}</span>
        <textarea class="mono" rows=${onlyPaste ? 4 : 2} spellcheck=${false} autocomplete="off" value=${value} onInput=${(event: InputEvent) => setValue((event.target as HTMLTextAreaElement).value)}>
          </textarea></label>`
    }
    ${
      hasOne &&
      html`<label class="field"><span>The present one goes on verifying for</span>
        <select value=${String(overlap)} onChange=${(event: Event) => setOverlap(Number((event.target as HTMLSelectElement).value))}>
          ${OVERLAPS.map(([seconds, words]) => html`<option key=${seconds} value=${seconds} selected=${seconds === overlap}>${words}</option>`)}</select></label>`
    }
    ${
      hasOne && overlap === 0
        ? html`<${Notice} kind="warn">Calls signed with the present secret are refused from that moment on.<//>`
        : hasOne &&
          html`<${Notice} kind="info">Until then calls signed with either are taken; here it says which one the last call used.<//>`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" disabled=${isSending || (way === "paste" && value.trim() === "")} onClick=${save}>
        ${isSending ? "Changing…" : way === "mint" ? "Make a new secret" : "Store it"}</button></div>
  <//>`;
}

function SigningDialog({ place, relay, onClose, onChanged }: ChangeProps): View {
  const { send, sent, error, isSending } = useChange(onChanged, () =>
    call<{ signingSecret?: string }>("PUT", apiPath(place, "relays", relay.name, "signing-secret"), {}),
  );
  if (sent !== null)
    return html`<${Shown} title="The new signing secret" answer=${sent} onClose=${onClose} />`;
  return html`<${Dialog} title="Rotate the signing secret" onClose=${onClose} mustAnswer=${isSending}>
    <${Notice} kind="warn">The next notice is signed with the new secret: the server that call_url calls must know it first, or refuse until it does.<//>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" disabled=${isSending} onClick=${send}>
        ${isSending ? "Rotating…" : "Rotate"}</button></div>
  <//>`;
}

function Shown({
  title,
  answer,
  onClose,
}: {
  title: string;
  answer: { receiverSecret?: string; signingSecret?: string };
  onClose: () => void;
}): View {
  return html`<${Dialog} title=${title} onClose=${onClose} mustAnswer>
    <${SecretOnce} secrets=${secretsOf(answer)} />
    <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>I have stored it</button></div>
  <//>`;
}

/** Runs one change at a time. It keeps the answer and reports an error. */
function useChange<Answer>(onChanged: () => void, change: () => Promise<Answer>) {
  const [sent, setSent] = useState<Answer | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const send = async (): Promise<boolean> => {
    setSending(true);
    setError(null);
    try {
      setSent(await change());
      onChanged();
      return true;
    } catch (thrown) {
      setError(sentenceOf(thrown));
      return false;
    } finally {
      setSending(false);
    }
  };
  return { send, sent, error, isSending };
}
