/** The pages that one-time links open. The token stands after the `#`, which no server and no log sees, and leaves the address at once. */

import { useEffect, useState } from "preact/hooks";
import { call, sentenceOf } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { navigate } from "../ground/route.ts";
import { Notice } from "../part/notice.ts";
import { Sentence } from "../part/sentence.ts";
import { enterSession } from "./session.ts";
import { SigninCard } from "./signin-card.ts";
import { type FormField, SigninForm } from "./signin-form.ts";

const MIN_PASSWORD_CHARS = 10;
/** The token of each link page, kept while the page stands, so that a refused form can be sent again. */
const tokens = new Map<string, string>();

function takeToken(path: string): string {
  const token = location.hash.slice(1);
  if (token !== "") {
    tokens.set(path, token);
    history.replaceState(null, "", path);
  }
  return tokens.get(path) ?? "";
}

async function enter(path: string): Promise<void> {
  tokens.delete(path);
  await enterSession();
  navigate("/", { replace: true });
}

const newPassword: FormField = {
  name: "password",
  label: "Password",
  type: "password",
  autocomplete: "new-password",
  hint: `At least ${MIN_PASSWORD_CHARS} characters.`,
  minLength: MIN_PASSWORD_CHARS,
};

function Missing({ title, command }: { title: string; command: string }): View {
  return html`<${SigninCard} title=${title}>
    <p>This address holds no token. Open the whole link as it was printed, or run <code>${command}</code> for a new one.</p>
  <//>`;
}

export function SigninLinkPage(): View {
  const [token] = useState(() => takeToken("/signin"));
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    if (token === "") return;
    call("POST", "/api/session/link", { token })
      .then(() => enter("/signin"))
      .catch((thrown) => setError(sentenceOf(thrown)));
  }, [token]);
  if (token === "") return html`<${Missing} title="Sign in" command="relay dev --open" />`;
  return html`<${SigninCard} title=${error === null ? "Signing you in…" : "The link did not sign you in"}>
    ${
      error !== null &&
      html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>
      <p>Run <code>relay dev --open</code> for a fresh link.</p>`
    }
  <//>`;
}

export function SetupPage(): View {
  const [token] = useState(() => takeToken("/setup"));
  if (token === "") return html`<${Missing} title="Set up this server" command="relay admin create" />`;
  return html`<${SigninCard} title="Set up this server">
    <p>You are the first here. Choose how you will sign in.</p>
    <${SigninForm} button="Create the owner and sign in" fields=${[
      { name: "email", label: "E-mail", type: "email", autocomplete: "username" },
      newPassword,
    ]} onSend=${async ({ email, password }: Record<string, string>) => {
      await call("POST", "/api/setup", { token, email, password });
      await enter("/setup");
    }} />
  <//>`;
}

export function ResetPage(): View {
  const [token] = useState(() => takeToken("/reset"));
  if (token === "") return html`<${Missing} title="Reset your password" command="relay admin reset" />`;
  return html`<${SigninCard} title="Choose a new password">
    <p>Every device that is signed in will be signed out.</p>
    <${SigninForm} button="Set the password and sign in" fields=${[newPassword]} onSend=${async ({
      password,
    }: Record<string, string>) => {
      await call("POST", "/api/session/reset", { token, password });
      await enter("/reset");
    }} />
  <//>`;
}
