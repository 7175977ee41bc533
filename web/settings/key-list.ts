/** API keys: a list, a form that makes a key (shown once), and revoking. */

import { useState } from "preact/hooks";
import type { KeyView as Key } from "../../src/platform/account/api-key.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { serviceNow } from "../base/service-clock.ts";
import { useList } from "../base/use-list.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { EmptyState, LoadingState, Notice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { type Column, Table } from "../component/table.ts";
import { Ago } from "../component/time.ts";
import { timeColumn } from "../component/time-column.ts";
import { useSend } from "../component/use-send.ts";
import { NewKeyDialog } from "./new-key.ts";

const REFRESH_MS = 30_000;

export function KeyList({ place }: { place: Place }): View {
  const list = useList<Key>(apiPath(place, "keys"), REFRESH_MS);
  const [isMaking, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const { items, error, reload } = list;
  return html`<p class="tab-lead">A secret key gives your server and the command line access to the API of this environment. An app key is for your app in browsers. <code>relay login</code> creates a personal key.</p>
    <div class="tab-actions"><button data-needs="manage_keys" type="button" class="primary" onClick=${() => setMaking(true)}>
      <${Icon} name="plus" size=${14} />New key</button></div>
    ${
      items === undefined
        ? html`<${LoadingState} error=${error} rows=${4} onRetry=${reload} />`
        : items.length === 0
          ? html`<${EmptyState} icon="keys" title="No keys yet"><p>Without a key, only the dashboard can use this environment.</p><//>`
          : html`<${Table} label="Keys" columns=${columnsOf(setRevoking)} items=${items} />
            ${list.next !== null && html`<${OlderButton} list=${list} none="" />`}`
    }
    ${isMaking && html`<${NewKeyDialog} place=${place} onClose=${() => setMaking(false)} onMade=${reload} />`}
    ${revoking !== null && html`<${RevokeDialog} place=${place} shown=${revoking} onClose=${() => setRevoking(null)} />`}`;
}

function columnsOf(onRevoke: (key: Key) => void): Column<Key>[] {
  return [
    {
      name: "key",
      title: "Key",
      priority: 1,
      cell: ({ name, hint, owner }) =>
        html`<div class="two-lines clip"><b><${SafeText} text=${name} limit=${100} /></b>
          <span class="quiet clip"><code>${hint}</code>${owner !== null && html` · ${owner}`}</span></div>`,
    },
    {
      name: "kind",
      title: "Kind",
      priority: 2,
      size: "name",
      cell: ({ kind, origins, scopes }) => {
        const bounds = (scopes ?? origins).join(", ");
        return html`<span class="clip" title=${bounds}>${kind === "secret" ? "Secret" : "App"}${bounds !== "" && html` <span class="quiet">${bounds}</span>`}</span>`;
      },
    },
    {
      name: "state",
      title: "State",
      priority: 2,
      size: "short",
      cell: (key) => html`<${KeyState} of=${key} />`,
    },
    timeColumn("used", "Last used", 2, ({ lastUsedAt }) => lastUsedAt),
    timeColumn("created", "Created", 4, ({ createdAt }) => createdAt),
    {
      name: "ends",
      title: "Ends",
      priority: 4,
      size: "short",
      cell: ({ expiresAt }) => (expiresAt === null ? "" : html`<${Ago} at=${expiresAt} />`),
    },
    {
      name: "revoke",
      title: "",
      priority: 1,
      size: "short",
      cell: (key) =>
        key.revokedAt === null &&
        html`<button data-needs="manage_keys" type="button" class="quiet-danger" aria-label="Revoke… ${key.name}" onClick=${() => onRevoke(key)}>Revoke…</button>`,
    },
  ];
}

function KeyState({ of: { revokedAt, expiresAt } }: { of: Key }): View {
  if (revokedAt !== null) return html`<${StateMark} state="skipped" word="Revoked" />`;
  // Uses the service's clock, as the times next to it do.
  const hasEnded = expiresAt !== null && Date.parse(expiresAt) <= serviceNow();
  return hasEnded
    ? html`<${StateMark} state="skipped" word="Ended" />`
    : html`<${StateMark} state="active" />`;
}

function RevokeDialog({ place, shown, onClose }: { place: Place; shown: Key; onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const revoke = async (): Promise<void> => {
    const path = apiPath(place, "keys", shown.id);
    const changes = [apiPath(place, "keys")];
    if ((await send({ method: "DELETE", path, changes, done: `Revoked ${shown.name}.` })) !== null) onClose();
  };
  return html`<${Dialog} title="Revoke ${shown.name}?" onClose=${onClose}>
    <p>Programs that use <code>${shown.hint}</code> lose access at once. You cannot undo this.${
      shown.lastUsedAt !== null && html` Last used <${Ago} at=${shown.lastUsedAt} />.`
    }</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${() => void revoke()}>
      ${isSending ? "Revoking…" : "Revoke key"}</button></div>
  <//>`;
}
