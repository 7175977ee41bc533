/** Second step of a sign-in: a passkey, the code of an authenticator app, or a recovery code. */
import { useState } from "preact/hooks";
import { call } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { signWithPasskey } from "./passkey.ts";
import { PasskeyButton } from "./passkey-button.ts";
import { SigninCard } from "./signin-card.ts";
import { SigninForm } from "./signin-form.ts";

type Method = "passkey" | "totp" | "recoveryCode";

/** A sign-in that waits for a second factor, as the service describes it. */
export interface PendingFactor {
  token: string;
  methods: readonly Method[];
}

export interface SigninAnswer {
  owner: { email: string } | null;
  factor?: PendingFactor;
}

const FORMS = {
  totp: {
    title: "Enter your code",
    label: "Code",
    hint: "The six digits that your authenticator app shows.",
    autocomplete: "one-time-code",
  },
  recoveryCode: {
    title: "Enter a recovery code",
    label: "Recovery code",
    hint: "Each recovery code works once.",
    autocomplete: "off",
  },
} as const;

const SWITCH: Readonly<Record<Method, string>> = {
  passkey: "Use a passkey",
  totp: "Use your authenticator app",
  recoveryCode: "Use a recovery code",
};

export function FactorStep({
  pending,
  onDone,
  onBack,
}: {
  pending: PendingFactor;
  onDone: () => Promise<void>;
  onBack: () => void;
}): View {
  const { token, methods } = pending;
  const [method, setMethod] = useState<Method>(methods[0] ?? "recoveryCode");
  const send = async (text: string): Promise<void> => {
    await call("POST", "/api/session/factor", { token, [method]: text });
    await onDone();
  };
  const usePasskey = async (): Promise<void> => {
    const { options } = await call<{ options: string }>("POST", "/api/session/passkey/options", { token });
    await send(await signWithPasskey(options));
  };
  const others = methods.filter((one) => one !== method);
  return html`<${SigninCard} title=${method === "passkey" ? "Use your passkey" : FORMS[method].title}>
    ${
      method === "passkey"
        ? html`<${PasskeyButton} label="Use a passkey" isMain onUse=${usePasskey} />`
        : html`<${SigninForm} key=${method} button="Continue" fields=${[{ name: "code", type: "text", ...FORMS[method] }]}
            onSend=${({ code = "" }: Record<string, string>) => send(code)} />`
    }
    ${others.map((one) => html`<button key=${one} type="button" class="whole" onClick=${() => setMethod(one)}>${SWITCH[one]}</button>`)}
    <button type="button" class="whole" onClick=${onBack}>Back to the password</button>
    <p class="quiet">If you lost your devices and your codes, ask an owner to reset your second factor, or run <code>relay members reset-factor</code> on the server.</p>
  <//>`;
}
