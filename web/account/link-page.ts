/**
 * Pages that one-time links open. The token follows the `#`, so that no server or log sees it, and the page removes it
 * from the address at once. An ended link or a wrong address is reported before the user types anything.
 */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { call, sentenceOf } from "../base/api.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { navigate } from "../base/route.ts";
import { ErrorState, Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { FactorStep, type PendingFactor, type SigninAnswer } from "./factor-step.ts";
import { ProviderButton } from "./provider-button.ts";
import { enterSession, session } from "./session.ts";
import { SigninCard } from "./signin-card.ts";
import { type FormField, SigninForm } from "./signin-form.ts";
import { renderWrongAddress } from "./wrong-address.ts";

const MIN_PASSWORD_CHARS = 10;
/** Holds the token of each link page until the page unloads, so that the user can submit a rejected form again. */
const tokens = new Map<string, string>();

function takeToken(path: string): string {
  const token = location.hash.slice(1);
  if (token !== "") {
    tokens.set(path, token);
    history.replaceState(null, "", path);
  }
  return tokens.get(path) ?? "";
}

/** Returns the page's token. The token changes when the user opens a fresh link in this tab, because that does not reload the page. */
function useToken(path: string): string {
  const [token, setToken] = useState(() => takeToken(path));
  useLayoutEffect(() => {
    const take = (): void => setToken(takeToken(path));
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, [path]);
  return token;
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

function Missing({ title, newLink }: { title: string; newLink: View }): View {
  return html`<${SigninCard} title=${title}>
    <p>This address has no token. Open the complete link from the terminal, or ${newLink} for a new one.</p>
  <//>`;
}

export function SigninLinkPage(): View {
  const token = useToken("/signin");
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    if (token === "") return;
    setError(null);
    call("POST", "/api/session/link", { token })
      .then(() => enter("/signin"))
      .catch((thrown) => setError(sentenceOf(thrown)));
  }, [token]);
  // A server has no such links, so it shows the sign-in form instead.
  const isServer = useCell(session)?.mode === "server";
  useEffect(() => {
    if (token === "" && isServer) navigate("/", { replace: true });
  }, [token, isServer]);
  if (token === "") {
    // A second `relay dev` cannot make a link, because the first one holds the data directory.
    const newLink = html`stop <code>relay dev</code> and start it again`;
    return html`<${Missing} title="Sign in" newLink=${newLink} />`;
  }
  return html`<${SigninCard} title=${error === null ? "Signing you in…" : "The link did not work"}>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
  <//>`;
}

/** `error` says why the session did not load. */
interface LinkPageProps {
  error: string | null;
  onRetry: () => void;
}

export function SetupPage({ error, onRetry }: LinkPageProps): View {
  return html`<${LinkForm} error=${error} onRetry=${onRetry} kind="setup" title="Set up this server" command="relay admin create"
    intro="You are the first here. Choose how you will sign in." button="Create the owner and sign in"
    fields=${[{ name: "email", label: "E-mail", type: "email", autocomplete: "username" }, newPassword]} />`;
}

export function ResetPage({ error, onRetry }: LinkPageProps): View {
  return html`<${LinkForm} error=${error} onRetry=${onRetry} kind="reset" title="Choose a password" command="relay admin reset"
    intro="If you had a password before, the new one replaces it. It signs out every device, and every command that relay login signed in." button="Set the password and sign in"
    fields=${[newPassword]} />`;
}

const PLACES = {
  setup: { page: "/setup", send: "/api/setup" },
  reset: { page: "/reset", send: "/api/session/reset" },
} as const;

interface LinkFormProps extends LinkPageProps {
  kind: keyof typeof PLACES;
  title: string;
  /** Command that makes a new link. */
  command: string;
  intro: string;
  button: string;
  fields: readonly FormField[];
}

/** Renders the form behind a link after the server confirms that the link still works. */
function LinkForm({ kind, title, command, intro, button, fields, error, onRetry }: LinkFormProps): View {
  const { page, send } = PLACES[kind];
  const token = useToken(page);
  const known = useCell(session);
  const [pending, setPending] = useState<PendingFactor | null>(null);
  const elsewhere = known === undefined ? null : renderWrongAddress(known, `${page}#${token}`);
  const link = useLink(kind, token, known !== undefined && elsewhere === null);
  // The link is used up. Without the factor, the new password is the way in.
  if (pending !== null)
    return html`<${FactorStep} pending=${pending} onDone=${() => enter(page)} onBack=${() => {
      tokens.delete(page);
      navigate("/", { replace: true });
    }} />`;
  if (token === "") return html`<${Missing} title=${title} newLink=${html`run <code>${command}</code>`} />`;
  if (elsewhere !== null) return html`<${SigninCard} title=${title}>${elsewhere}<//>`;
  const failed = known === undefined ? error : link.error;
  if (failed !== null) {
    const retry = known === undefined ? onRetry : link.retry;
    return html`<${SigninCard} title=${title}><${ErrorState} error=${failed} onRetry=${retry} /><//>`;
  }
  if (link.isLive === null) return html`<${SigninCard} title=${title}><p class="quiet">One moment…</p><//>`;
  if (!link.isLive) {
    const isOwned = kind === "setup" && known?.setupNeeded === false;
    return html`<${SigninCard} title="This link does not work any more">
      ${
        isOwned
          ? html`<p>This server already has an owner, and a set-up link works only for the first owner. <a href="/">Sign in</a>, or run <code>${command}</code> on the server to add another owner.</p>`
          : html`<p>The link was used, was replaced by a newer one, or has expired. ${kind === "reset" && "Ask an owner for a new link in Settings › Members, or run"}${kind === "setup" && "Run"} <code>${command}</code> on the server for a new one.</p>`
      }
    <//>`;
  }
  const provider = known?.signin.passwords === false ? known.signin.provider : null;
  if (kind === "reset" && provider !== null)
    return html`<${SigninCard} title="Sign in with ${provider}">
      <p>This server takes no password. Use your account at ${provider} with the address that was invited.</p>
      <${ProviderButton} name=${provider} returnTo="/" />
    <//>`;
  return html`<${SigninCard} key=${token} title=${title}>
    <p>${intro}</p>
    <${SigninForm} button=${button} fields=${fields} onSend=${async (values: Record<string, string>) => {
      const { factor } = await call<SigninAnswer>("POST", send, { ...values, token });
      if (factor === undefined) await enter(page);
      else setPending(factor);
    }} />
  <//>`;
}

interface Link {
  /** null until the server answers. */
  isLive: boolean | null;
  error: string | null;
  retry(): void;
}

/** Asks the server whether the link still works. The check does not use up the link. */
function useLink(kind: string, token: string, isAsked: boolean): Link {
  const [answer, setAnswer] = useState<{ token: string; isLive: boolean | null; error: string | null }>({
    token: "",
    isLive: null,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (token === "" || !isAsked) return;
    let isWanted = true;
    const take = (isLive: boolean | null, error: string | null): void => {
      if (isWanted) setAnswer({ token, isLive, error });
    };
    take(null, null);
    call<{ live: boolean }>("POST", "/api/link", { kind, token })
      .then(({ live }) => take(live, null))
      .catch((thrown) => take(null, sentenceOf(thrown)));
    // Drops the answer to an earlier token, which says nothing about the next one.
    return () => {
      isWanted = false;
    };
  }, [kind, token, isAsked, turn]);
  const retry = (): void => setTurn(turn + 1);
  return answer.token === token ? { ...answer, retry } : { isLive: null, error: null, retry };
}
