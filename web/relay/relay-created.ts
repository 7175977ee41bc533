/** Page after creating a relay: the receiver URL, the new secrets, and the next steps. */

import { useLayoutEffect } from "preact/hooks";
import type { SavedRelay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Notice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { type OnceSecret, SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { WarningList } from "../component/warning-list.ts";
import { needsIssuedSecret, PasteSecret, useIssuer } from "./paste-secret.ts";

/** Returns the secrets in the response to a save. `issuedBy`: the provider that makes its own secret, while Relay still made one for test requests. */
export function secretsOf(
  { receiverSecret, signingSecret }: { receiverSecret?: string; signingSecret?: string },
  issuedBy: string | null = null,
): OnceSecret[] {
  const secrets: OnceSecret[] = [];
  if (receiverSecret !== undefined) {
    secrets.push({
      label: "Receiver secret",
      hint:
        issuedBy === null
          ? "Paste it at the provider. The provider signs its requests with it, and this relay verifies them."
          : `${issuedBy} makes its own secret, so Relay signs only test requests with this one. Paste the one of ${issuedBy} on the tab Secrets when ${issuedBy} sends here.`,
      value: receiverSecret,
    });
  }
  if (signingSecret !== undefined) {
    secrets.push({
      label: "Signing secret",
      hint: "Give it to the server that call_url calls. The server verifies X-Service-Signature with it.",
      value: signingSecret,
    });
  }
  return secrets;
}

/** Says that a sender needs a tunnel to a receiver URL of local development. */
export function TunnelHint({ place: { environment } }: { place: Place }): View {
  if (environment !== "local") return null;
  return html`<p>A sender on the internet cannot reach this machine. Open a tunnel and set its address with <code>--base-url</code>, or test without the sender first.</p>`;
}

export function RelayCreated({
  place,
  saved,
  steps,
  isKnownSender = false,
}: {
  place: Place;
  saved: SavedRelay;
  /** Steps of the template or of the sender that the user must do. */
  steps: readonly string[];
  /** True if the steps say where to register the receiver URL. */
  isKnownSender?: boolean;
}): View {
  // The page replaces a long form that the user scrolled down.
  useLayoutEffect(() => scrollTo(0, 0), []);
  const { relay, receiverUrl, receiverSecret, file } = saved;
  const issuer = useIssuer(place, receiverSecret === undefined ? null : relay.name);
  const secrets = secretsOf(saved, issuer);
  const path = pagePath(place, "relays", relay.name);
  const asksSecret = needsIssuedSecret(relay);
  const warnings = saved.warnings.filter(({ code }) => !asksSecret || code !== "secret_missing");
  return html`<${PageHead} title=${asksSecret ? `${relay.name} was created` : `${relay.name} is ready`} back="Relays" backTo=${pagePath(place, "relays")} />
    <div class="stack narrow-page">
      <${WarningList} warnings=${warnings} />
      ${file !== undefined && html`<${Notice} kind="good">Written to <code>${file}</code>, which is active now.<//>`}
      ${
        receiverUrl !== undefined &&
        html`<section class="card"><h2>Receiver URL</h2>
          <p class="quiet">The provider must send its webhooks to exactly this URL.</p>
          <div class="copy-row"><code>${receiverUrl}</code>
            <${CopyButton} text=${receiverUrl} label="Copy receiver URL" /></div>
          <${TunnelHint} place=${place} /></section>`
      }
      ${asksSecret && html`<${PasteSecret} place=${place} relay=${relay} />`}
      ${secrets.length > 0 && html`<section class="card"><${SecretOnce} secrets=${secrets} /></section>`}
      <section class="card"><h2>What to do next</h2><ol class="steps quiet">
        ${[...nextSteps(saved, isKnownSender), ...steps, ...lastSteps(saved, place)].map((step) => html`<li key=${step}><span><${Sentence} text=${step} /></span></li>`)}</ol></section>
      <div class="form-actions"><a class="button primary" href=${path} data-confirmed>
        ${secrets.length > 0 ? "I stored the secret: open relay" : "Open relay"}</a></div>
    </div>`;
}

function nextSteps({ relay, receiverSecret }: SavedRelay, isKnownSender: boolean): string[] {
  const { trigger, nextTick } = relay;
  if (trigger === "schedule") return nextTick === undefined ? [] : [nextTick.message];
  if (trigger === "data_change")
    return ["Write a record that matches. The event appears on the page of the relay."];
  if (isKnownSender) return [];
  if (relay.follows !== undefined)
    return [
      `At the provider, also choose the event types of this relay for the webhook of ${relay.follows}.`,
    ];
  const secret = receiverSecret === undefined ? "" : " and store the secret there";
  return [`At the provider, add a webhook with the receiver URL${secret}.`];
}

function lastSteps({ relay }: SavedRelay, { environment }: Place): string[] {
  if (relay.trigger !== "receiver") return [];
  return environment === "production"
    ? [
        "Send a first request from the provider. Its event appears on the page of the relay, or the cause of a rejection.",
      ]
    : ["Send a test event from the page of the relay to see the result of each action."];
}
