/** Dialog that makes a key. Its token is shown once. */

import { useState } from "preact/hooks";
import type { Warning } from "../../src/base/refusal.ts";
import { call, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { WarningList } from "../component/warning-list.ts";

interface Minted {
  token: string;
  warnings: Warning[];
}

const HINTS = {
  secret: "For servers and the command line: send the key as Authorization: Bearer.",
  app: "For your app in browsers.",
} as const;

export function NewKeyDialog({
  place,
  onClose,
  onMade,
}: {
  place: Place;
  onClose: () => void;
  onMade: () => void;
}): View {
  const [kind, setKind] = useState<"secret" | "app">("secret");
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const [made, setMade] = useState<Minted | null>(null);
  const make = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const origins = String(data.get("origins") ?? "")
      .split(/[\s,]+/)
      .filter((origin) => origin !== "");
    setSending(true);
    setError(null);
    try {
      const body = { kind, name: String(data.get("name") ?? ""), ...(kind === "app" ? { origins } : {}) };
      setMade(await call<Minted>("POST", apiPath(place, "keys"), body));
      onMade();
    } catch (thrown) {
      setError(sentenceOf(thrown));
      setSending(false);
    }
  };
  if (made !== null) {
    return html`<${Dialog} title="The new key" onClose=${onClose} mustAnswer>
      <${SecretOnce} secrets=${[{ label: "Key", hint: HINTS[kind], value: made.token }]} />
      <${WarningList} warnings=${made.warnings} />
      <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>I stored the secret</button></div>
    <//>`;
  }
  // The dialog cannot be closed while the key is being made, because its token is shown only once.
  return html`<${Dialog} title="New key" onClose=${onClose} mustAnswer=${isSending}><form class="stack" onSubmit=${make}>
    <label class="field"><span>Name</span>
      <input name="name" required autofocus autocomplete="off" maxlength="100" />
      <small>What uses the key, for example “deploy script”.</small></label>
    <fieldset class="radios"><legend class="off-screen">Kind</legend>
      <label>
        <input type="radio" name="kind" checked=${kind === "secret"} onChange=${() => setKind("secret")} />Secret key, for servers</label>
      <label>
        <input type="radio" name="kind" checked=${kind === "app"} onChange=${() => setKind("app")} />App key, for browsers</label>
        </fieldset>
    ${
      kind === "app" &&
      html`<label class="field"><span>Allowed web origins</span>
      <input name="origins" autocomplete="off" placeholder="https://shop.example.com" />
      <small>Separate several origins with spaces.</small></label>`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? "Creating…" : "Create key"}</button></div>
  </form><//>`;
}
