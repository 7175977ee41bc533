/** Card that asks for the secret of a provider that makes its own. A page shows it right after the relay was created. */
import { useState } from "preact/hooks";
import type { SenderView } from "../../src/rules/senders/sender-view.ts";
import type { Relay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";

/** Algorithms of a recipe and senders of a named scheme that verify with the sender's public key. */
const PUBLIC_KEY_METHODS: readonly unknown[] = ["ed25519", "ecdsa-p256-sha256", "telnyx"];

/** Reports whether the trigger verifies with a public key, which only the sender can create. */
export function usesPublicKey(trigger: Relay["definition"]["trigger"]): boolean {
  const verify = "verify" in trigger ? trigger.verify : null;
  return (
    typeof verify === "object" &&
    Object.values(verify ?? {}).some((value) => PUBLIC_KEY_METHODS.includes(value))
  );
}

/** Reports whether the relay waits for a secret that only its provider can make. */
export function needsIssuedSecret({ secret }: Pick<Relay, "secret">): boolean {
  return secret.issuedBy !== undefined && secret.kind === "none";
}

/** Returns the provider that makes the secret of the relay itself. null: none does, or it is not known yet. A null name asks nothing. */
export function useIssuer(place: Place, relay: string | null): string | null {
  const path = relay === null ? null : apiPath(place, "relays", relay, "sender");
  const sender = useLoad<{ sender: SenderView | null }>(path).data?.sender;
  return sender?.secret.from === "sender" ? sender.title : null;
}

export function PasteSecret({ place, relay }: { place: Place; relay: Relay }): View {
  const issuer = relay.secret.issuedBy ?? "";
  const what = usesPublicKey(relay.definition.trigger) ? "public key" : "secret";
  const path = apiPath(place, "relays", relay.name);
  const where = useLoad<{ sender: SenderView | null }>(`${path}/sender`).data?.sender?.secret.where;
  const [value, setValue] = useState("");
  const [isStored, setStored] = useState(false);
  const { send, error, isSending } = useSend();
  const store = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const sent = await send({
      method: "PUT",
      path: `${path}/secret`,
      body: { value },
      changes: [apiPath(place, "relays")],
    });
    if (sent !== null) setStored(true);
  };
  return html`<section class="card" aria-label="Secret"><h2>Paste the ${what} of ${issuer}</h2>
    ${
      isStored
        ? html`<${Notice} kind="good">Relay stored the ${what}. The first request from ${issuer} shows whether the ${what} is correct.<//>`
        : html`<form class="stack" onSubmit=${store}>
      <p class="quiet">${issuer} makes the ${what} itself. ${where !== undefined && html`<${Sentence} text=${where} />`}</p>
      <label class="field"><span>The ${what} that ${issuer} shows</span>
        <textarea class="mono" rows="2" spellcheck=${false} autocomplete="off" value=${value}
          onInput=${(event: InputEvent) => setValue((event.target as HTMLTextAreaElement).value)}></textarea></label>
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <div class="form-actions"><button class="primary" disabled=${isSending || value.trim() === ""}>
        ${isSending ? "Storing…" : `Store ${what}`}</button></div></form>`
    }</section>`;
}
