/** Content of the dialog in which the person proves again who they are. The request that the service refused before is then sent again. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, call, sentenceOf } from "../base/api.ts";
import { useCell } from "../base/cell.ts";
import type { Confirmation } from "../base/confirmation.ts";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { canUsePasskeys, signWithPasskey } from "./passkey.ts";
import { PasskeyButton } from "./passkey-button.ts";
import { beginConfirmation, onConfirmed } from "./provider-signin.ts";
import { session, signOut } from "./session.ts";
import { SigninForm } from "./signin-form.ts";

const WHY = "This action is sensitive, so prove again who you are. Nothing was changed yet.";

export function ConfirmForm({ question }: { question: Confirmation }): View {
  const cancel = (): void => question.answer(false);
  const confirmed = (): void => question.answer(true);
  const isOwn = (method: string): boolean => question.methods.some((one) => one === method);
  const passkey = isOwn("passkey") && canUsePasskeys();
  // A code of the app is for an account without a password, because the password is the shorter way.
  const totp = isOwn("totp") && !isOwn("password");
  const oidc = isOwn("oidc");
  // Without a password among the methods, the action needs a factor.
  const recovery = isOwn("recoveryCode") && !isOwn("password");
  const canConfirm = passkey || totp || recovery || oidc;
  const usePasskey = async (): Promise<void> => {
    const { options } = await call<{ options: string }>("POST", "/api/session/confirm/options", {});
    await call("POST", "/api/session/confirm", { passkey: await signWithPasskey(options) });
    confirmed();
  };
  return html`<p>${WHY}</p>
    ${oidc && html`<${AtProvider} isOnly=${!isOwn("password")} onConfirmed=${confirmed} onCancel=${cancel} />`}
    ${isOwn("password") && html`<${PasswordForm} onConfirmed=${confirmed} onCancel=${cancel} />`}
    ${!isOwn("password") && !canConfirm && html`<${SignInAgain} onCancel=${cancel} />`}
    ${passkey && html`<${PasskeyButton} label="Confirm with a passkey" onUse=${usePasskey} />`}
    ${totp && html`<${CodeForm} kind="totp" onConfirmed=${confirmed} />`}
    ${recovery && html`<${CodeForm} kind="recoveryCode" onConfirmed=${confirmed} />`}`;
}

/** A link to the provider in its own tab, so that this page and its input stay. The other tab tells when the person confirmed. */
function AtProvider({
  isOnly,
  onConfirmed: confirm,
  onCancel,
}: {
  isOnly: boolean;
  onConfirmed: () => void;
  onCancel: () => void;
}): View {
  const [url, setUrl] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const name = useCell(session)?.signin.provider ?? "";
  useEffect(() => {
    beginConfirmation()
      .then(setUrl)
      .catch((thrown) => setError(sentenceOf(thrown)));
    return onConfirmed(confirm);
  }, []);
  return html`${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions">${isOnly && html`<button type="button" onClick=${onCancel}>Cancel</button>`}
      ${url !== null && html`<a class="button primary" href=${url} target="_blank" rel="noreferrer">Confirm with ${name}</a>`}</div>
    ${isOnly && html`<p class="quiet">The provider opens in a new tab. This page continues after you sign in there.</p>`}`;
}

function PasswordForm({ onConfirmed, onCancel }: { onConfirmed: () => void; onCancel: () => void }): View {
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const known = useCell(session);
  const password = useRef<HTMLInputElement>(null);
  // The dialog was open before this form was loaded, so it could not set the focus.
  useLayoutEffect(() => password.current?.focus(), []);
  const confirm = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      await call("POST", "/api/session/confirm", { password: password.current?.value ?? "" });
      onConfirmed();
    } catch (thrown) {
      // Without a session there is nothing to confirm. The sign-in page covers the dashboard.
      if (thrown instanceof ApiError && thrown.code === "unauthenticated") return onCancel();
      setError(sentenceOf(thrown));
      setSending(false);
      password.current?.select();
    }
  };
  return html`<form class="stack" onSubmit=${confirm}>
    <input class="off-screen" type="text" name="username" autocomplete="username" value=${known?.owner?.email ?? ""} readonly tabindex="-1" aria-hidden="true" />
    <label class="field"><span>Password</span
      ><input ref=${password} name="password" type="password" autocomplete="current-password" required /></label>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onCancel}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? "One moment…" : "Confirm"}</button></div>
  </form>`;
}

const CODES = {
  totp: {
    label: "Code",
    autocomplete: "one-time-code",
    hint: "The six digits that your authenticator app shows.",
  },
  recoveryCode: { label: "Recovery code", autocomplete: "off", hint: "Each recovery code works once." },
} as const;

/** Confirms with a code of the authenticator app, or with a recovery code. */
function CodeForm({ kind, onConfirmed }: { kind: keyof typeof CODES; onConfirmed: () => void }): View {
  return html`<${SigninForm} button="Confirm with this code" isSecond=${kind === "recoveryCode"} fields=${[{ name: "code", type: "text", ...CODES[kind] }]}
    onSend=${async ({ code = "" }: Record<string, string>) => {
      await call("POST", "/api/session/confirm", { [kind]: code });
      onConfirmed();
    }} />`;
}

/** A person without a password can only sign in again. */
function SignInAgain({ onCancel }: { onCancel: () => void }): View {
  return html`<p>Your account has no password to confirm with. Sign out, sign in again, and repeat the action.</p>
    <div class="dialog-actions"><button type="button" onClick=${onCancel}>Cancel</button>
      <button type="button" onClick=${() => void signOut()}>Sign out</button></div>`;
}
