/** Steps that add an authenticator app: its name, its QR code with the first code, and the recovery codes, which show once. */
import { useState } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";

const PATH = "/api/session/factors";
/** Quiet squares around a QR code, which readers need. */
const QR_MARGIN = 4;

interface Begun {
  id: string;
  secret: string;
  qr: { size: number; path: string };
}

export function RecoveryCodes({
  codes,
  button,
  onClose,
}: {
  codes: readonly string[];
  button: string;
  onClose: () => void;
}): View {
  const hint =
    "Store these codes where you can find them without your device. Each one replaces your app once.";
  return html`<${SecretOnce} secrets=${[{ label: "Recovery codes", hint, value: codes.join("\n") }]} />
    <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>${button}</button></div>`;
}

/** `onDone` follows the last step. `onCancel` is absent where the person must add an app. */
export function TotpSetup({ onDone, onCancel }: { onDone: () => void; onCancel?: () => void }): View {
  const { send, isSending, error } = useSend();
  const [begun, setBegun] = useState<Begun | null>(null);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  if (codes !== null)
    return html`<${RecoveryCodes} codes=${codes} button="I stored the codes" onClose=${onDone} />`;
  const begin = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const name = String(new FormData(event.target as HTMLFormElement).get("name") ?? "");
    const sent = await send<Begun>({ method: "POST", path: `${PATH}/totp`, body: { name } });
    if (sent !== null) setBegun(sent.answer);
  };
  const confirm = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const totp = String(new FormData(event.target as HTMLFormElement).get("code") ?? "");
    const path = `${PATH}/${begun?.id}/confirm`;
    const wanted = {
      method: "POST",
      path,
      body: { totp },
      changes: [PATH, "/api/sessions", "/api/owners"],
    } as const;
    const sent = await send<{ recoveryCodes: string[] }>(wanted);
    if (sent === null) return;
    if (sent.answer.recoveryCodes.length > 0) setCodes(sent.answer.recoveryCodes);
    else onDone();
  };
  const refused = error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`;
  const cancel =
    onCancel !== undefined &&
    html`<button type="button" disabled=${isSending} onClick=${onCancel}>Cancel</button>`;
  if (begun === null)
    return html`<form key="name" class="stack" onSubmit=${begin}>
      <label class="field"><span>Name of the device</span><input name="name" required maxlength="60" autofocus autocomplete="off" value="Phone" />
        <small>You recognize the app by this name later.</small></label>
      ${refused}
      <div class="dialog-actions">${cancel}<button class="primary" disabled=${isSending}>${isSending ? "One moment…" : "Continue"}</button></div>
    </form>`;
  const { size, path } = begun.qr;
  const side = size + 2 * QR_MARGIN;
  return html`<form key="code" class="stack" onSubmit=${confirm}>
    <p>Scan this code with an authenticator app, or type the secret into it.</p>
    <svg class="qr" role="img" aria-label="QR code of the secret" viewBox="${-QR_MARGIN} ${-QR_MARGIN} ${side} ${side}" shape-rendering="crispEdges"><path d=${path} /></svg>
    <p class="totp-secret"><code data-secret="Authenticator secret">${begun.secret.replace(/(.{4})(?=.)/g, "$1 ")}</code></p>
    <label class="field"><span>Code</span><input name="code" required autofocus autocomplete="one-time-code" inputmode="numeric" maxlength="20" />
      <small>The six digits that the app shows now.</small></label>
    ${refused}
    <div class="dialog-actions">${cancel}<button class="primary" disabled=${isSending}>${isSending ? "Checking…" : "Add the app"}</button></div>
  </form>`;
}
