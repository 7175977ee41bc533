/** Second step of a sign-in: the code of an authenticator app, or a recovery code. */
import { useState } from "preact/hooks";
import { call } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { SigninCard } from "./signin-card.ts";
import { SigninForm } from "./signin-form.ts";

/** A sign-in that waits for a second factor, as the service describes it. */
export interface PendingFactor {
  token: string;
  methods: readonly ("totp" | "recoveryCode")[];
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
    other: "Use a recovery code",
  },
  recoveryCode: {
    title: "Enter a recovery code",
    label: "Recovery code",
    hint: "Each recovery code works once.",
    autocomplete: "off",
    other: "Use your authenticator app",
  },
} as const;

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
  const [method, setMethod] = useState(methods[0] ?? "totp");
  const { title, label, hint, autocomplete } = FORMS[method];
  const others = methods.filter((one) => one !== method);
  return html`<${SigninCard} title=${title}>
    <${SigninForm} key=${method} button="Continue" fields=${[{ name: "code", label, type: "text", autocomplete, hint }]}
      onSend=${async ({ code = "" }: Record<string, string>) => {
        await call("POST", "/api/session/factor", { token, [method]: code });
        await onDone();
      }} />
    ${others.map(
      (one) =>
        html`<button key=${one} type="button" class="whole" onClick=${() => setMethod(one)}>${FORMS[method].other}</button>`,
    )}
    <button type="button" class="whole" onClick=${onBack}>Back to the password</button>
    <p class="quiet">If you lost your app and your codes, ask an owner to reset your second factor, or run <code>relay members reset-factor</code> on the server.</p>
  <//>`;
}
