/** General settings of an environment: the app's name, the hold, the processor's secret, receipts as records, sign-in and the connector. */
import { useState } from "preact/hooks";
import { loadSession } from "../account/session.ts";
import type { Page } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Dialog } from "../component/dialog.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago, Moment } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { AppEnd } from "./app-end.ts";
import { ApprovalSetting } from "./approval-setting.ts";
import { ConnectorSetting } from "./connector-setting.ts";
import { ProcessorSetting } from "./processor-setting.ts";
import { SettingCard } from "./setting-card.ts";
import { SigninSetting } from "./signin-setting.ts";
import { useSettings } from "./use-settings.ts";

export function GeneralTab({ place }: { place: Place }): View {
  return html`<div class="settings">
    <${AppName} place=${place} /><${Hold} place=${place} /><${ProcessorSetting} place=${place} />
    <${ApprovalSetting} place=${place} /><${SigninSetting} place=${place} /><${ConnectorSetting} place=${place} /><${Receipts} place=${place} /><${AppEnd} place=${place} />
  </div>`;
}

function AppName({ place }: { place: Place }): View {
  const { settings } = useSettings(place);
  const { send, isSending, error } = useSend();
  if (settings === undefined) return null;
  const { app, mode } = settings;
  const rename = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const name = String(new FormData(event.target as HTMLFormElement).get("name") ?? "");
    const path = `/api/apps/${encodeURIComponent(place.app)}`;
    const changes = [apiPath(place, "settings")];
    const wanted = { method: "PATCH", path, body: { name }, changes } as const;
    if ((await send({ ...wanted, done: "App renamed." })) !== null) await loadSession();
  };
  return html`<${SettingCard} title="App" error=${error}>
    <form data-needs="manage_server" class="setting-line" key=${app.name} onSubmit=${rename}>
      <label class="field"><span>Name</span><input name="name" required maxlength="100" autocomplete="off" defaultValue=${app.name} /></label>
      <button disabled=${isSending}>${isSending ? "Saving…" : "Rename"}</button></form>
    <p class="quiet">Its id <code>${app.id}</code> <${CopyButton} text=${app.id} label="Copy the app’s id" words=${null} /> is part of every receiver URL and never changes.
      ${mode === "server" && html` <a data-needs="manage_server" href="/new-app">Create another app</a>`}</p>
  <//>`;
}

function Hold({ place }: { place: Place }): View {
  const { settings, isSending, error, change } = useSettings(place);
  const [isAsking, setAsking] = useState(false);
  if (settings === undefined) return null;
  const { heldAt } = settings;
  const changes = [apiPath(place, "overview"), apiPath(place, "problems"), "/api/overview"];
  const hold = async (): Promise<void> => {
    if (await change({ held: true }, "Hold started.", changes)) setAsking(false);
  };
  return html`<${SettingCard} title="Hold" error=${isAsking ? null : error}>
    <p>${heldAt === null ? "Not on hold. Events run when they arrive." : html`<b>On hold since <${Moment} at=${heldAt} /> (<${Ago} at=${heldAt} />).</b> Relay stores new events but runs none.`}</p>
    ${
      heldAt === null
        ? html`<button data-needs="edit_settings" type="button" onClick=${() => setAsking(true)}>Hold environment…</button>`
        : html`<button data-needs="edit_settings" type="button" class="primary" disabled=${isSending}
          onClick=${() => void change({ held: false }, "Hold released. The waiting events run now, in the order of arrival.", changes)}>Release the hold</button>`
    }
    <p class="quiet">Use a hold for an incident that affects every relay. Senders still get 200, and Relay keeps the events for 30 days. During a hold, schedules create no events.</p>
    ${
      isAsking &&
      html`<${Dialog} title="Hold ${place.environment}?" onClose=${() => setAsking(false)}>
        <p>All relays of this environment stop until someone releases the hold. Relay still receives requests, and their events wait in order. Schedule ticks in that time are lost.</p>
        ${error !== null && html`<p role="alert"><${Sentence} text=${error} /></p>`}
        <div class="dialog-actions"><button type="button" onClick=${() => setAsking(false)}>Cancel</button>
          <button type="button" class="danger" disabled=${isSending} onClick=${() => void hold()}>Hold environment</button></div><//>`
    }
  <//>`;
}

/** Largest number of collections in the choice. */
const MAX_COLLECTIONS = 200;

function Receipts({ place }: { place: Place }): View {
  const { settings, isSending, error, change } = useSettings(place);
  const path = `${apiPath(place, "collections")}?limit=${MAX_COLLECTIONS}`;
  const { data } = useLoad<Page<{ name: string }>>(path);
  if (settings === undefined || data === undefined) return null;
  const chosen = settings.receipts.collection ?? "";
  const names = data.items.map(({ name }) => name);
  const listed = chosen === "" || names.includes(chosen) ? names : [...names, chosen];
  const set = (event: Event): void => {
    const collection = (event.target as HTMLSelectElement).value;
    const done =
      collection === ""
        ? "Receipts are not written as records now."
        : `Receipts are written as records of ${collection} now.`;
    void change({ receipts: { collection: collection === "" ? null : collection } }, done);
  };
  return html`<${SettingCard} title="Receipts as records" needs="edit_settings" error=${error}>
    <label class="field setting-narrow"><span>Collection</span><select value=${chosen} disabled=${isSending} onChange=${set}>
      <option value="" selected=${chosen === ""}>None</option>
      ${listed.map((name) => html`<option key=${name} value=${name} selected=${name === chosen}>${name}</option>`)}</select></label>
    <p class="quiet">Relay also writes each payment that your server reports as a record of this collection. A relay with the trigger <code>data_change</code> can react to it.</p>
  <//>`;
}
