/** Page after creating a relay: the receiver URL, the new secrets, and the next steps. */

import type { SavedRelay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Notice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { type OnceSecret, SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { WarningList } from "../component/warning-list.ts";

/** Returns the secrets in the response to a save. */
export function secretsOf({
  receiverSecret,
  signingSecret,
}: {
  receiverSecret?: string;
  signingSecret?: string;
}): OnceSecret[] {
  const secrets: OnceSecret[] = [];
  if (receiverSecret !== undefined) {
    secrets.push({
      label: "Receiver secret",
      hint: "Paste it at the provider: it signs its calls with it, and this relay checks them.",
      value: receiverSecret,
    });
  }
  if (signingSecret !== undefined) {
    secrets.push({
      label: "Signing secret",
      hint: "Give it to the server that call_url calls: it verifies X-Service-Signature with it.",
      value: signingSecret,
    });
  }
  return secrets;
}

export function RelayMade({
  place,
  saved,
  steps,
}: {
  place: Place;
  saved: SavedRelay;
  /** Steps of the template that the user must do. */
  steps: readonly string[];
}): View {
  const secrets = secretsOf(saved);
  const { relay, receiverUrl, file } = saved;
  const path = pagePath(place, "relays", relay.name);
  return html`<${PageHead} title="${relay.name} is ready" back="Relays" backTo=${pagePath(place, "relays")} />
    <div class="stack narrow-page">
      <${WarningList} warnings=${saved.warnings} />
      ${file !== undefined && html`<${Notice} kind="good">Written to <code>${file}</code>, which is in force.<//>`}
      ${
        receiverUrl !== undefined &&
        html`<section class="card"><h2>Receiver URL</h2>
          <p class="quiet">The address the provider sends its webhooks to, exactly as it stands.</p>
          <div class="copy-row"><code>${receiverUrl}</code>
            <${CopyButton} text=${receiverUrl} label="Copy receiver URL" /></div></section>`
      }
      ${secrets.length > 0 && html`<section class="card"><${SecretOnce} secrets=${secrets} /></section>`}
      <section class="card"><h2>What to do next</h2><ol class="steps quiet">
        ${nextSteps(saved, place).map((step) => html`<li key=${step}><span>${step}</span></li>`)}
        ${steps.map((step) => html`<li key=${step}><span><${Sentence} text=${step} /></span></li>`)}</ol></section>
      <div class="form-actions"><a class="button primary" href=${path}>
        ${secrets.length > 0 ? "I have stored it: go to the relay" : "Go to the relay"}</a></div>
    </div>`;
}

function nextSteps({ relay, receiverSecret }: SavedRelay, { environment }: Place): string[] {
  const { trigger, nextTick } = relay;
  if (trigger === "schedule") return nextTick === undefined ? [] : [nextTick.message];
  if (trigger === "data_change")
    return ["Write a record that it waits for: its event appears on the relay’s page."];
  return [
    `At the provider, add a webhook with the receiver URL${receiverSecret === undefined ? "" : " and store the secret there"}.`,
    environment === "production"
      ? "Let the provider send a first call: its event appears on the relay’s page, and what is refused says why."
      : "Send a test event from the relay’s page, and see what each action does.",
  ];
}
