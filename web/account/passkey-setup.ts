/** Steps that add a passkey: its name, the question of the browser, and the recovery codes of a first factor. */
import { useState } from "preact/hooks";
import { call, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { createPasskey } from "./passkey.ts";
import { RecoveryCodes } from "./totp-setup.ts";

const PATH = "/api/session/factors";

export function PasskeySetup({ onDone, onCancel }: { onDone: () => void; onCancel: () => void }): View {
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  if (codes !== null)
    return html`<${RecoveryCodes} codes=${codes} button="I stored the codes" onClose=${onDone} />`;
  const add = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const name = String(new FormData(event.target as HTMLFormElement).get("name") ?? "");
    setBusy(true);
    setError(null);
    try {
      const { options } = await call<{ options: string }>("POST", `${PATH}/passkey/options`, {});
      const passkey = await createPasskey(options);
      const made = await call<{ recoveryCodes: string[] }>("POST", `${PATH}/passkey`, { name, passkey });
      for (const changed of [PATH, "/api/sessions", "/api/owners"]) invalidate(changed);
      if (made.recoveryCodes.length > 0) setCodes(made.recoveryCodes);
      else onDone();
    } catch (thrown) {
      setError(sentenceOf(thrown));
    }
    setBusy(false);
  };
  return html`<form class="stack" onSubmit=${add}>
    <p>The browser asks you to unlock this device, a phone or a security key. It then keeps the passkey.</p>
    <label class="field"><span>Name of the device</span><input name="name" required maxlength="60" autofocus autocomplete="off" value="My device" />
      <small>You recognize the passkey by this name later.</small></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isBusy} onClick=${onCancel}>Cancel</button>
      <button class="primary" disabled=${isBusy}>${isBusy ? "One moment…" : "Create the passkey"}</button></div>
  </form>`;
}
