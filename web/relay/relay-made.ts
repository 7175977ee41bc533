/** What a new relay's answer says: where to send, with which secret, and what to mind. */

import type { SavedRelay } from "../ground/answer.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { CopyButton } from "../part/copy-button.ts";
import { Notice } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { type OnceSecret, SecretOnce } from "../part/secret-once.ts";
import { WarningList } from "../part/warning-list.ts";

/** The secrets that a save's answer holds, as they are shown. */
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

export function RelayMade({ place, saved }: { place: Place; saved: SavedRelay }): View {
  const secrets = secretsOf(saved);
  return html`<${PageHead} title="${saved.relay.name} is ready" back="Relays" backTo=${pagePath(place, "relays")} />
    <div class="stack narrow-page">
      <${WarningList} warnings=${saved.warnings} />
      ${saved.file !== undefined && html`<${Notice} kind="good">Written to <code>${saved.file}</code>, which is in force.<//>`}
      ${
        saved.receiverUrl !== undefined &&
        html`<section class="card"><h2>Receiver URL</h2>
          <p class="quiet">The address the provider sends its webhooks to, exactly as it stands.</p>
          <div class="copy-row"><code>${saved.receiverUrl}</code>
            <${CopyButton} text=${saved.receiverUrl} label="Copy receiver URL" /></div></section>`
      }
      ${secrets.length > 0 && html`<section class="card"><${SecretOnce} secrets=${secrets} /></section>`}
      <div class="form-actions"><a class="button primary" href=${pagePath(place, "relays", saved.relay.name)}>
        ${secrets.length > 0 ? "I have stored it: go to the relay" : "Go to the relay"}</a></div>
    </div>`;
}
