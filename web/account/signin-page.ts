/** Page for signing in at the OpenID provider, with email and password, or with a passkey. It appears at the requested address, which then opens. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { FactorStep, type PendingFactor, type SigninAnswer } from "./factor-step.ts";
import { canUsePasskeys, signWithPasskey } from "./passkey.ts";
import { PasskeyButton } from "./passkey-button.ts";
import { ProviderButton } from "./provider-button.ts";
import { enterSession, resumeSession, type Session } from "./session.ts";
import { SigninCard } from "./signin-card.ts";
import { SigninForm } from "./signin-form.ts";
import { renderWrongAddress } from "./wrong-address.ts";

async function usePasskey(): Promise<void> {
  const { options } = await call<{ options: string }>("POST", "/api/session/passkey/options", {});
  const passkey = await signWithPasskey(options);
  await call("POST", "/api/session/passkey", { passkey });
  await enterSession();
}

export function SigninPage({ session }: { session: Session }): View {
  const [pending, setPending] = useState<PendingFactor | null>(null);
  useEffect(() => {
    // An unreachable service changes nothing: the form stays.
    const update = (): unknown =>
      document.visibilityState === "visible" && resumeSession().catch(() => undefined);
    addEventListener("focus", update);
    document.addEventListener("visibilitychange", update);
    return () => {
      removeEventListener("focus", update);
      document.removeEventListener("visibilitychange", update);
    };
  }, []);
  if (session.mode === "local") {
    return html`<${SigninCard} title="Open the dashboard from your terminal">
      <p>Local development has no password. Open the link that <code>relay dev</code> printed; it works once. To get a new link, stop the command and start it again (with <code>--open</code> it also opens the browser).</p>
    <//>`;
  }
  if (session.setupNeeded) {
    return html`<${SigninCard} title="Set up this server">
      <p>This server has no owner yet. Open the set-up link that <code>relay serve</code> printed when it started, or run <code>relay admin create</code>.</p>
    <//>`;
  }
  const elsewhere = renderWrongAddress(session, location.pathname + location.search);
  if (elsewhere !== null) return html`<${SigninCard} title="Sign in">${elsewhere}<//>`;
  if (pending !== null)
    return html`<${FactorStep} pending=${pending} onDone=${enterSession} onBack=${() => setPending(null)} />`;
  const { provider, passwords } = session.signin;
  return html`<${SigninCard} title="Sign in">
    ${provider !== null && html`<${ProviderButton} name=${provider} />`}
    ${passwords && html`<${PasswordSignin} isSecond=${provider !== null} onFactor=${setPending} />`}
  <//>`;
}

/** The form for email and password. It has no primary button if another way to sign in comes first. */
function PasswordSignin({
  isSecond,
  onFactor,
}: {
  isSecond: boolean;
  onFactor: (pending: PendingFactor) => void;
}): View {
  return html`${isSecond && html`<p class="quiet">Or with a password:</p>`}
    <${SigninForm} button="Sign in" isSecond=${isSecond} fields=${[
      { name: "email", label: "E-mail", type: "email", autocomplete: "username" },
      { name: "password", label: "Password", type: "password", autocomplete: "current-password" },
    ]} onSend=${async ({ email, password }: Record<string, string>) => {
      const { factor } = await call<SigninAnswer>("POST", "/api/session", { email, password });
      if (factor === undefined) await enterSession();
      else onFactor(factor);
    }} />
    ${canUsePasskeys() && html`<${PasskeyButton} label="Sign in with a passkey" onUse=${usePasskey} />`}
    <p class="quiet">Forgot your password? Run <code>relay admin reset</code> on the server for a one-time link.</p>`;
}
