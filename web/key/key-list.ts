/** API keys: what there is, making one (shown once), revoking one. */

import { useState } from "preact/hooks";
import type { KeyView as Key } from "../../src/account/api-key.ts";
import type { Page } from "../ground/answer.ts";
import { call, sentenceOf } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { Dialog } from "../part/dialog.ts";
import { Icon } from "../part/icon.ts";
import { EmptyState, ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { SafeText } from "../part/safe-text.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";
import { tellDone } from "../part/toast.ts";
import { ConnectorSetting } from "./connector-setting.ts";
import { NewKeyDialog } from "./new-key.ts";
import { SigninSetting } from "./signin-setting.ts";

export function KeyListPage({ place }: PageProps): View {
  const { data, error, reload } = useLoad<Page<Key>>(`${apiPath(place, "keys")}?limit=200`);
  const [isMaking, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  return html`<${PageHead} title="Keys"><button type="button" class="primary" onClick=${() => setMaking(true)}>
    <${Icon} name="plus" size=${14} />New key</button><//>
    ${
      data === undefined
        ? error === null
          ? html`<${Skeleton} rows=${4} />`
          : html`<${ErrorState} error=${error} onRetry=${reload} />`
        : data.items.length === 0
          ? html`<${EmptyState} icon="keys" title="No keys yet">
            <p>A secret key lets your server and the command line use this environment’s API; an app key is for browsers. <code>relay login</code> makes one that is yours.</p>
            <//>`
          : html`<table class="list keys-list"><thead><tr><th scope="col">Key</th><th scope="col">Kind</th>
            <th scope="col">State</th><th scope="col">Last used</th><th scope="col">Made</th><th scope="col">Ends</th><th scope="col">
            <span class="off-screen">Revoke</span></th></tr></thead>
            <tbody>${data.items.map(
              (key) => html`<tr key=${key.id} class=${key.revokedAt === null && !hasEnded(key) ? "" : "gone"}>
                <td class="cell-main"><b><${SafeText} text=${key.name} limit=${100} /></b><code class="quiet">
                  ${key.hint}</code>${key.owner !== null && html`<span class="quiet clip">${key.owner}</span>`}</td>
                <td>
                  ${key.kind === "secret" ? "Secret" : "App"}${
                    key.origins.length > 0 &&
                    html`<span class="quiet clip"> ${key.origins.join(", ")}
                  </span>`
                  }</td>
                <td>
                  ${
                    key.revokedAt !== null
                      ? html`<${StateMark} state="skipped" word="Revoked" />`
                      : hasEnded(key)
                        ? html`<${StateMark} state="skipped" word="Ended" />`
                        : html`<${StateMark} state="active" />`
                  }
                  </td>
                <td class="cell-time"><${Ago} at=${key.lastUsedAt} /></td><td class="cell-time">
                  <${Ago} at=${key.createdAt} /></td>
                <td class="cell-time">${key.expiresAt === null ? "" : html`<${Ago} at=${key.expiresAt} />`}</td>
                <td>
                  ${key.revokedAt === null && html`<button type="button" class="quiet-danger" aria-label="Revoke ${key.name}" onClick=${() => setRevoking(key)}>Revoke</button>`}
                  </td></tr>`,
            )}</tbody></table>`
    }
    <${SigninSetting} place=${place} />
    <${ConnectorSetting} place=${place} />
    ${isMaking && html`<${NewKeyDialog} place=${place} onClose=${() => setMaking(false)} onMade=${reload} />`}
    ${revoking !== null && html`<${RevokeDialog} place=${place} shown=${revoking} onClose=${() => setRevoking(null)} onRevoked=${reload} />`}`;
}

/** By this machine's clock, as the times beside it. */
function hasEnded({ expiresAt }: Key): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now();
}

function RevokeDialog({
  place,
  shown,
  onClose,
  onRevoked,
}: {
  place: Place;
  shown: Key;
  onClose: () => void;
  onRevoked: () => void;
}): View {
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const revoke = async (): Promise<void> => {
    setSending(true);
    try {
      await call("DELETE", apiPath(place, "keys", shown.id));
      tellDone(`Revoked ${shown.name}.`);
      onRevoked();
      onClose();
    } catch (thrown) {
      setError(sentenceOf(thrown));
      setSending(false);
    }
  };
  return html`<${Dialog} title="Revoke ${shown.name}?" onClose=${onClose}>
    <p>Whatever uses <code>${shown.hint}
      </code> is refused at once and for good.${shown.lastUsedAt !== null && html` It was last used <${Ago} at=${shown.lastUsedAt} />.`}
      </p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${revoke}>
      ${isSending ? "Revoking…" : "Revoke key"}</button></div>
  <//>`;
}
