/**
 * Page on which an owner answers a command that asks to sign in (`relay login`). The owner types the code, so that no
 * link of another person can lead here. The page shows the request before it offers to allow it.
 */
import { useState } from "preact/hooks";
import type { LoginView } from "../../src/platform/account/login.ts";
import { call, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import type { App, Session } from "./session.ts";
import { SigninCard } from "./signin-card.ts";
import { SigninForm } from "./signin-form.ts";

interface Asked {
  code: string;
  login: LoginView;
  /** True if the command uses the same network address as this browser. */
  here: boolean;
}

export function LoginPage({ session }: { session: Session }): View {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [ended, setEnded] = useState<"allowed" | "denied" | null>(null);
  if (ended !== null) return html`<${Ended} how=${ended} />`;
  if (asked !== null)
    return html`<${Answer} key=${asked.code} asked=${asked} session=${session} onBack=${() => setAsked(null)} onEnded=${setEnded} />`;
  return html`<${SigninCard} title="Sign in a command">
    <p>Type the code that <code>relay login</code> shows in your terminal. If another person sends you a code or asks you to type one, close this page: that person wants to act as you.</p>
    <${SigninForm} button="Continue" fields=${[{ name: "code", label: "Code", type: "text", autocomplete: "off", hint: "Eight letters, such as BCDF-GHJK." }]}
      onSend=${async ({ code = "" }: Record<string, string>) => {
        const found = await call<Omit<Asked, "code">>("POST", "/api/login/look", { code });
        setAsked({ ...found, code });
      }} />
    <p class="quiet">You are signed in as ${session.owner?.email}.</p>
  <//>`;
}

function Answer({
  asked,
  session,
  onBack,
  onEnded,
}: {
  asked: Asked;
  session: Session;
  onBack: () => void;
  onEnded: (how: "allowed" | "denied") => void;
}): View {
  const { code, login, here } = asked;
  const places = placesOf(session.apps);
  const [chosen, setChosen] = useState(places.length === 1 ? (places[0]?.value ?? "") : "");
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const answer = async (how: "allowed" | "denied"): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      if (how === "denied") await call("POST", "/api/login/deny", { code });
      else {
        const [app = "", environment = ""] = chosen.split("/");
        await call("POST", "/api/login/approve", { code, app, environment });
      }
      onEnded(how);
    } catch (thrown) {
      setError(sentenceOf(thrown));
      setSending(false);
    }
  };
  const isLive = chosen.endsWith("/production");
  return html`<${SigninCard} title="Did you start this login?">
    <p>A command asks to sign in as <b>${session.owner?.email}</b>. Allow it only if you typed <code>relay login</code> yourself, on the machine shown here.</p>
    <dl class="asked">
      <dt>Code</dt><dd><code>${showCode(code)}</code></dd>
      <dt>Machine</dt><dd>
        <b><${SafeText} text=${login.machine} limit=${80} /></b>${
          login.account !== "" && html`${", as "}<b><${SafeText} text=${login.account} limit=${80} /></b>`
        }<span class="quiet">${" (as the command reports it)"}</span></dd>
      <dt>Address</dt><dd><code>${login.source}</code>${here && html`<span class="quiet"> (same as yours)</span>`}</dd>
      <dt>Started</dt><dd><${Ago} at=${login.createdAt} /></dd>
      <dt>Key expires</dt><dd>${login.days} ${login.days === 1 ? "day" : "days"} after</dd>
    </dl>
    ${!here && html`<${Notice} kind="warn">The command runs at another address than this browser. This is normal for a remote server. If you sit at the machine shown here, deny the login.<//>`}
    <label class="field"><span>App and environment</span>
      <select value=${chosen} onChange=${(event: Event) => setChosen((event.target as HTMLSelectElement).value)}>
        ${places.length !== 1 && html`<option value="">Choose…</option>`}
        ${places.map(({ value, words }) => html`<option key=${value} value=${value}>${words}</option>`)}
      </select></label>
    ${isLive && html`<${Notice} kind="bad"><b>This is production.</b> The command can read and change real events and people.<//>`}
    <p class="quiet">The command gets a key. The key can read and change everything in this environment, like a secret key, but it cannot create other keys. You can revoke it under Settings › Keys.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions">
      <button type="button" disabled=${isSending} onClick=${() => answer("denied")}>Deny login</button>
      <button type="button" class=${isLive ? "danger" : "primary"} disabled=${isSending || chosen === ""} onClick=${() => answer("allowed")}>
        ${isSending ? "One moment…" : "Allow login"}</button></div>
    <p class="quiet"><a href="/login" onClick=${(event: Event) => {
      event.preventDefault();
      onBack();
    }}>Type another code</a></p>
  <//>`;
}

function Ended({ how }: { how: "allowed" | "denied" }): View {
  return how === "allowed"
    ? html`<${SigninCard} title="The command is signed in">
        <p>Go back to your terminal: the command continues. You can revoke its key under Settings › Keys.</p>
        <p><a href="/">Open the dashboard</a></p>
      <//>`
    : html`<${SigninCard} title="The login is denied">
        <p>No key was created. If another person asked you to type that code, that person tried to sign in as you.</p>
        <p><a href="/">Open the dashboard</a></p>
      <//>`;
}

function placesOf(apps: readonly App[]): { value: string; words: string }[] {
  return apps.flatMap(({ id, name, environments }) =>
    environments.map((environment) => ({
      value: `${id}/${environment}`,
      words: `${name}: ${environment === "production" ? "PRODUCTION" : environment}`,
    })),
  );
}

/** Formats the code as the terminal shows it. */
function showCode(code: string): string {
  const letters = code.toUpperCase().replace(/[^A-Z]/g, "");
  return `${letters.slice(0, 4)}-${letters.slice(4)}`;
}
