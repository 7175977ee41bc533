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
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { AppEnd } from "./app-end.ts";
import { ConnectorSetting } from "./connector-setting.ts";
import { ProcessorSetting } from "./processor-setting.ts";
import { SettingCard } from "./setting-card.ts";
import { SigninSetting } from "./signin-setting.ts";
import { useSettings } from "./use-settings.ts";

export function GeneralTab({ place }: { place: Place }): View {
  return html`<div class="settings">
    <${AppName} place=${place} /><${Hold} place=${place} /><${ProcessorSetting} place=${place} />
    <${SigninSetting} place=${place} /><${ConnectorSetting} place=${place} /><${Receipts} place=${place} /><${AppEnd} place=${place} />
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
    if ((await send({ ...wanted, done: "The app has its new name." })) !== null) await loadSession();
  };
  return html`<${SettingCard} title="App" error=${error}>
    <form class="setting-line" key=${app.name} onSubmit=${rename}>
      <label class="field"><span>Name</span><input name="name" required maxlength="100" autocomplete="off" defaultValue=${app.name} /></label>
      <button disabled=${isSending}>${isSending ? "Saving…" : "Rename"}</button></form>
    <p class="quiet">Its id <code>${app.id}</code> <${CopyButton} text=${app.id} label="Copy the app’s id" words=${null} /> stands in every receiver URL and never changes.
      ${mode === "server" && html` <a href="/new-app">Make another app</a>`}</p>
  <//>`;
}

function Hold({ place }: { place: Place }): View {
  const { settings, isSending, error, change } = useSettings(place);
  const [isAsking, setAsking] = useState(false);
  if (settings === undefined) return null;
  const { heldAt } = settings;
  const changes = [apiPath(place, "overview"), apiPath(place, "problems"), "/api/overview"];
  const hold = async (): Promise<void> => {
    if (await change({ held: true }, "The environment is on hold.", changes)) setAsking(false);
  };
  return html`<${SettingCard} title="Hold" error=${isAsking ? null : error}>
    <p>${heldAt === null ? "Events run as they arrive." : html`<b>On hold since <${Ago} at=${heldAt} />.</b> What arrives is recorded and waits; nothing runs.`}</p>
    ${
      heldAt === null
        ? html`<button type="button" onClick=${() => setAsking(true)}>Hold everything…</button>`
        : html`<button type="button" class="primary" disabled=${isSending}
          onClick=${() => void change({ held: false }, "The hold is released: what waited runs now, in the order in which it arrived.", changes)}>Release the hold</button>`
    }
    <p class="quiet">For an incident that affects every relay. Senders still get 200, and Relay keeps the events for 30 days. Ticks of schedules during a hold are not recorded.</p>
    ${
      isAsking &&
      html`<${Dialog} title="Hold everything in ${place.environment}?" onClose=${() => setAsking(false)}>
        <p>Every relay of this environment stops acting until somebody releases the hold. Calls are received and wait in order; schedule ticks in that time are lost.</p>
        ${error !== null && html`<p role="alert"><${Sentence} text=${error} /></p>`}
        <div class="dialog-actions"><button type="button" onClick=${() => setAsking(false)}>Cancel</button>
          <button type="button" class="danger" disabled=${isSending} onClick=${() => void hold()}>Hold everything</button></div><//>`
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
      collection === "" ? "Receipts are no records now." : `Receipts are records of ${collection} now.`;
    void change({ receipts: { collection: collection === "" ? null : collection } }, done);
  };
  return html`<${SettingCard} title="Receipts as records" error=${error}>
    <label class="field setting-narrow"><span>Collection</span><select value=${chosen} disabled=${isSending} onChange=${set}>
      <option value="" selected=${chosen === ""}>None</option>
      ${listed.map((name) => html`<option key=${name} value=${name} selected=${name === chosen}>${name}</option>`)}</select></label>
    <p class="quiet">Relay also writes each payment that your server reports as a record there, so that a relay with the trigger <code>data_change</code> can follow it.</p>
  <//>`;
}
