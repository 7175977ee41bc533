/** Dialog that makes a key. Its token is shown once. */

import { useState } from "preact/hooks";
import type { Warning } from "../../src/base/refusal.ts";
import type { Permission } from "../../src/platform/account/permission.ts";
import { mayIn, session } from "../account/session.ts";
import { call, sentenceOf } from "../base/api.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { WarningList } from "../component/warning-list.ts";
import { KEY_WORDS } from "./permission-words.ts";

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
  const [isNarrow, setNarrow] = useState(false);
  const [scopes, setScopes] = useState<readonly Permission[]>(["read"]);
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
      const body = {
        kind,
        name: String(data.get("name") ?? ""),
        ...(kind === "app" ? { origins } : {}),
        ...(kind === "secret" && isNarrow ? { scopes } : {}),
      };
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
      kind === "secret" &&
      html`<label class="switch"><input type="checkbox" checked=${isNarrow} onChange=${() => setNarrow(!isNarrow)} />Limit what the key may do</label>
      ${isNarrow && html`<${ScopeFields} place=${place} scopes=${scopes} onChange=${setScopes} />`}`
    }
    ${
      kind === "app" &&
      html`<label class="field"><span>Allowed web origins</span>
      <input name="origins" autocomplete="off" placeholder="https://shop.example.com" />
      <small>Separate several origins with spaces.</small></label>`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending || (kind === "secret" && isNarrow && scopes.length === 0)}>${isSending ? "Creating…" : "Create key"}</button></div>
  </form><//>`;
}

/** A checkbox for each permission that a key can have and that the member has here. */
function ScopeFields({
  place,
  scopes,
  onChange,
}: {
  place: Place;
  scopes: readonly Permission[];
  onChange: (scopes: readonly Permission[]) => void;
}): View {
  const known = useCell(session);
  const own = known === undefined ? [] : mayIn(known, place);
  const offered = Object.entries(KEY_WORDS).filter(([name]) => own.includes(name as Permission));
  const turn = (name: Permission): void =>
    onChange(scopes.includes(name) ? scopes.filter((one) => one !== name) : [...scopes, name]);
  return html`<fieldset class="stack"><legend class="off-screen">What the key may do</legend>
    ${offered.map(
      ([
        name,
        words,
      ]) => html`<label class="switch" key=${name}><input type="checkbox" checked=${scopes.includes(name as Permission)} onChange=${() => turn(name as Permission)} />
        <span><code>${name}</code><small class="quiet"> ${words}</small></span></label>`,
    )}
  </fieldset>`;
}
