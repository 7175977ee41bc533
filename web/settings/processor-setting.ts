/**
 * Secret of the app's payment processor, which verifies every relay with the scheme `processor`. It can be set,
 * replaced and removed, but never shown.
 */
import { useState } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { SettingCard } from "./setting-card.ts";
import { useSettings } from "./use-settings.ts";

export function ProcessorSetting({ place }: { place: Place }): View {
  const { settings, isSending, error, change } = useSettings(place);
  const [isRemoving, setRemoving] = useState(false);
  if (settings === undefined) return null;
  const kept = settings.processorSecret;
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const processorSecret = String(new FormData(form).get("secret") ?? "");
    if (await change({ processorSecret }, "Processor secret saved. Relays verify with it now.")) form.reset();
  };
  const remove = async (): Promise<void> => {
    if (await change({ processorSecret: null }, "Processor secret removed.")) setRemoving(false);
  };
  return html`<${SettingCard} title="The processor secret" error=${isRemoving ? null : error}>
    <p>${
      kept === null
        ? html`<b>No secret is set.</b> Relays whose scheme is <code>processor</code> reject every request until then.`
        : html`Set <${Ago} at=${kept.setAt} />, fingerprint <code>${kept.fingerprint}</code>. It is never shown again.`
    }</p>
    <form data-needs="edit_settings" class="setting-line" onSubmit=${save}>
      <label class="field"><span>${kept === null ? "Signing secret" : "New signing secret"}</span>
        <input name="secret" type="password" required autocomplete="off" spellcheck=${false} /></label>
      <button class=${kept === null ? "primary" : ""} disabled=${isSending}>${isSending ? "Saving…" : kept === null ? "Set secret" : "Replace secret"}</button>
      ${kept !== null && html`<button type="button" class="quiet-danger" onClick=${() => setRemoving(true)}>Remove…</button>`}
    </form>
    <p class="quiet">Your payment processor shows the secret in the settings of its webhook endpoint. It often begins with <code>whsec_</code>. Each environment needs its own endpoint and secret. When you replace the secret, the earlier one stops working at once.</p>
    ${
      isRemoving &&
      html`<${Dialog} title="Remove the processor secret?" onClose=${() => setRemoving(false)}>
        <p>Every relay whose scheme is <code>processor</code> then rejects its requests, and the processor sends them again later.</p>
        ${error !== null && html`<p role="alert"><${Sentence} text=${error} /></p>`}
        <div class="dialog-actions"><button type="button" onClick=${() => setRemoving(false)}>Cancel</button>
          <button type="button" class="danger" disabled=${isSending} onClick=${() => void remove()}>Remove secret</button></div><//>`
    }
  <//>`;
}
