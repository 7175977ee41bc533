/** Deletion of the app. The dialog first counts what is deleted, and the user types the app's id. */
import { useState } from "preact/hooks";
import type { AppContents } from "../../src/engine/maintenance/app-removal.ts";
import { loadSession } from "../account/session.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { SettingCard } from "./setting-card.ts";
import { useSettings } from "./use-settings.ts";

export function AppEnd({ place }: { place: Place }): View {
  const { settings } = useSettings(place);
  const [isAsking, setAsking] = useState(false);
  if (settings === undefined || settings.mode !== "server") return null;
  const { id } = settings.app;
  return html`<${SettingCard} title="Delete this app" needs="manage_server">
    <p>Relay deletes both environments with their relays, events, people and records. Receiver URLs and keys stop working at once.</p>
    <button type="button" class="danger" onClick=${() => setAsking(true)}>Delete ${id}…</button>
    ${isAsking && html`<${DeleteApp} id=${id} onClose=${() => setAsking(false)} />`}
  <//>`;
}

function DeleteApp({ id, onClose }: { id: string; onClose: () => void }): View {
  const path = `/api/apps/${encodeURIComponent(id)}`;
  const { data, error: unread, reload } = useLoad<{ contents: AppContents }>(`${path}/contents`);
  const { send, isSending, error } = useSend();
  const [typed, setTyped] = useState("");
  const [isForced, setForced] = useState(false);
  if (data === undefined)
    return html`<${Dialog} title="Delete ${id}?" onClose=${onClose}><${LoadingState} error=${unread} rows=${3} onRetry=${reload} /><//>`;
  const { environments, standsAgainst } = data.contents;
  const isHeld = standsAgainst !== null;
  const end = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const body = { confirm: typed.trim(), force: isForced };
    if (
      (await send({
        method: "DELETE",
        path,
        body,
        changes: ["/api/overview"],
        done: `The app ${id} is deleted.`,
      })) === null
    )
      return;
    onClose();
    // "/" opens the last app that still exists.
    await loadSession();
    navigate("/");
  };
  return html`<${Dialog} title="Delete ${id}?" onClose=${onClose}><form class="settings" onSubmit=${end}>
    <ul>${environments.map(({ name, words }) => html`<li key=${name}><b>${name}</b>: ${words}</li>`)}</ul>
    <p>Relay permanently deletes everything. Only earlier backups of the server still have it.</p>
    ${
      isHeld &&
      html`<label class="switch"><input type="checkbox" checked=${isForced} onChange=${() => setForced(!isForced)} /><span>Production has events. Delete the app anyway.</span></label>`
    }
    <label class="field"><span>Type <b>${id}</b> to confirm</span><input name="confirm" required autocomplete="off" autocapitalize="off" spellcheck=${false} value=${typed} onInput=${(event: Event) => setTyped((event.target as HTMLInputElement).value)} /></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="danger" disabled=${isSending || typed.trim() !== id || (isHeld && !isForced)}>${isSending ? "Deleting…" : "Delete the app"}</button></div></form><//>`;
}
