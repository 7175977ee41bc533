/** The secrets of a relay: what is known of each, and the buttons that change them. */

import type { Relay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { serviceNow } from "../base/service-clock.ts";
import { formatFullTime, formatMoment } from "../base/time-words.ts";
import { CopyButton } from "../component/copy-button.ts";
import { DOCS, DocsLink } from "../component/docs-link.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { ReceiverSecretDialog, SigningSecretDialog } from "./secret-dialog.ts";
import { KnownSender } from "./sender-hint.ts";

const KIND_WORDS = {
  minted: "Created by Relay",
  pasted: "Pasted from the sender",
  public_key: "The sender’s public key",
  processor: "The environment’s processor secret",
  none: "None yet: Relay rejects every request",
} as const;

/** The last times at which requests verified with each of the two secrets. */
export interface SecretUse {
  presentAt: string | null;
  previousAt: string | null;
}

interface SecretsProps {
  place: Place;
  relay: Relay;
  /** Its field `change` names the open dialog. */
  query: URLSearchParams;
  use: SecretUse | null;
  onChanged: () => void;
}

export function RelaySecrets(props: SecretsProps): View {
  const { place, relay, query, onChanged } = props;
  const isReceiver = relay.receiverUrl !== undefined;
  if (!isReceiver && relay.signingSecret === undefined) return null;
  const change = query.get("change") ?? "";
  const open = (dialog: "" | "paste" | "rotate" | "signing"): void => setQuery({ change: dialog });
  const dialog = { place, relay, onChanged, onClose: () => open("") };
  const hasOwnSecret = isReceiver && relay.secret.kind !== "processor";
  return html`<section class="card secrets" aria-label="Secrets"><h2>Secrets</h2>
    ${isReceiver && html`<${ReceiverSecret} ...${props} onChange=${() => open("rotate")} />`}
    ${isReceiver && html`<${KnownSender} place=${place} relay=${relay.name} />`}
    <${HandshakeFact} handshake=${relay.handshake} />
    ${
      relay.signingSecret !== undefined &&
      html`<div class="fact"><h3>Signing</h3>
        <p class="quiet">Signs the requests of call_url · set <${Ago} at=${relay.signingSecret.setAt} /></p>
        ${relay.signingSecret.previousUntil !== undefined && html`<${SigningOverlap} ...${props} until=${relay.signingSecret.previousUntil} />`}
        <button data-needs="edit_settings" type="button" onClick=${() => open("signing")}>Rotate…</button></div>`
    }
    <p class="quiet"><${DocsLink} to=${DOCS.rotate}>Rotate a secret without losing requests<//></p>
    ${hasOwnSecret && (change === "paste" || change === "rotate") && html`<${ReceiverSecretDialog} ...${dialog} isPaste=${change === "paste"} />`}
    ${relay.signingSecret !== undefined && change === "signing" && html`<${SigningSecretDialog} ...${dialog} />`}
  </section>`;
}

function ReceiverSecret(props: SecretsProps & { onChange: () => void }): View {
  const { place, relay, onChange } = props;
  const { kind, fingerprint, setAt, previousUntil, issuedBy } = relay.secret;
  return html`<div class="fact"><h3>Receiver</h3><p>${KIND_WORDS[kind]}</p>
    ${fingerprint !== undefined && html`<p class="quiet"><code title="Fingerprint">${fingerprint}</code></p>`}
    ${setAt !== null && html`<p class="quiet">set <${Ago} at=${setAt} /></p>`}
    ${
      kind === "processor"
        ? html`<p class="quiet">All relays of the processor in this environment share it.</p><a data-needs="edit_settings" class="button" href=${pagePath(place, "settings")}>${setAt === null ? "Set it in Settings" : "Replace it in Settings"}</a>`
        : html`${previousUntil !== undefined && html`<${OverlapNotice} ...${props} until=${previousUntil} />`}
          <button data-needs="edit_settings" type="button" onClick=${onChange}>${kind === "none" || kind === "public_key" || issuedBy !== undefined ? "Paste…" : "Rotate or paste…"}</button>`
    }</div>`;
}

function HandshakeFact({ handshake }: Pick<Relay, "handshake">): View {
  if (handshake === undefined) return null;
  return html`<div class="fact"><h3>Handshake</h3><p>Answers <code>${handshake.name}</code></p>
    <p class="quiet"><${Sentence} text=${handshake.message} /></p>
    ${
      handshake.verifyToken !== undefined &&
      html`<p>Verify token <code>${handshake.verifyToken}</code> <${CopyButton} text=${handshake.verifyToken} label="Copy the verify token" /></p>`
    }</div>`;
}

/** Notice while two secrets are valid. It shows which one the sender uses, and a button ends the old one. */
function OverlapNotice({
  place,
  relay: { name },
  until,
  use,
  onChanged,
}: SecretsProps & { until: string }): View {
  const { send, isSending } = useSend();
  const { presentAt = null, previousAt = null } = use ?? {};
  const isNew = presentAt !== null && (previousAt === null || presentAt >= previousAt);
  const end = async (): Promise<void> => {
    await send({
      method: "DELETE",
      path: apiPath(place, "relays", name, "previous-secret"),
      done: `Now only the current secret of ${name} verifies.`,
      tellsRefusal: true,
    });
    onChanged();
  };
  return html`<${Notice} kind=${isNew ? "good" : "warn"}><p>The earlier secret also verifies until <${FutureTime} at=${until} />.</p>
    <p>${
      presentAt === null && previousAt === null
        ? "No request arrived since then, so Relay does not know which secret the sender uses."
        : isNew
          ? html`<b>The last request used the new secret</b>, <${Ago} at=${presentAt} />: you can end the overlap.`
          : html`<b>The last request still used the earlier secret</b>, <${Ago} at=${previousAt ?? until} />: give the sender the new secret first.`
    }</p>
    <button data-needs="edit_settings" type="button" disabled=${isSending} onClick=${() => void end()}>End the overlap now</button><//>`;
}

/** Notice while two secrets sign calls. A button ends the old one. */
function SigningOverlap({
  place,
  relay: { name },
  until,
  onChanged,
}: SecretsProps & { until: string }): View {
  const { send, isSending } = useSend();
  const end = async (): Promise<void> => {
    await send({
      method: "DELETE",
      path: `${apiPath(place, "relays", name, "previous-secret")}?kind=signing`,
      done: `Now only the current signing secret of ${name} signs.`,
      tellsRefusal: true,
    });
    onChanged();
  };
  return html`<${Notice} kind="info"><p>The earlier secret also signs until <${FutureTime} at=${until} />. End the overlap when your server has the new secret.</p>
    <button data-needs="edit_settings" type="button" disabled=${isSending} onClick=${() => void end()}>End the overlap now</button><//>`;
}

/** Shows a future time, both exact and relative. */
function FutureTime({ at }: { at: string }): View {
  return html`<time datetime=${at} title=${formatFullTime(at)}>${formatMoment(at, serviceNow())}</time> (<${Ago} at=${at} />)`;
}
