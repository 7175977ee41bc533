/** Root of the page: a sign-in page or the shell, by address and session. If the session ends, the sign-in page covers the shell. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { loadSession, type Session, session, signOut } from "../account/session.ts";
import { accessChanged, sentenceOf } from "../base/api.ts";
import { useCell } from "../base/cell.ts";
import { confirmation } from "../base/confirmation.ts";
import { html, type View } from "../base/html.ts";
import { useRoute } from "../base/route.ts";
import { Dialog } from "../component/dialog.ts";
import { ErrorState } from "../component/notice.ts";
import { notifyFailed, Toasts } from "../component/toast.ts";
import { laterPage } from "./later-page.ts";
import { Shell } from "./shell.ts";

const SigninLinkPage = laterPage(
  "Sign in",
  async () => (await import("../account/link-page.ts")).SigninLinkPage,
  true,
);
const SetupPage = laterPage("Set up", async () => (await import("../account/link-page.ts")).SetupPage, true);
const ResetPage = laterPage(
  "New password",
  async () => (await import("../account/link-page.ts")).ResetPage,
  true,
);
const ApprovalPage = laterPage(
  "Approval",
  async () => (await import("../approval/approval-page.ts")).ApprovalPage,
  true,
);
const NewAppPage = laterPage(
  "New app",
  async () => (await import("../account/new-app-page.ts")).NewAppPage,
  true,
);
const EnrollPage = laterPage(
  "Second factor",
  async () => (await import("../account/enroll-page.ts")).EnrollPage,
);
const ProviderPage = laterPage(
  "Sign in",
  async () => (await import("../account/provider-page.ts")).ProviderPage,
  true,
);
const SigninPage = laterPage("", async () => (await import("../account/signin-page.ts")).SigninPage);
const LoginPage = laterPage("Log in", async () => (await import("../account/login-page.ts")).LoginPage);

const ConfirmForm = laterPage("", async () => (await import("../account/confirm-form.ts")).ConfirmForm);

const STARTING_MS = 1_000;

export function Dashboard(): View {
  return html`<${Content} /><${Toasts} /><${Confirm} />`;
}

/** Shows the open question who is signed in, above every page. */
function Confirm(): View {
  const asked = useCell(confirmation);
  if (asked === null) return null;
  return html`<${Dialog} title="Confirm that it is you" onClose=${() => asked.answer(false)}><${ConfirmForm} question=${asked} /><//>`;
}

function Content(): View {
  const { path } = useRoute();
  const known = useCell(session);
  const changes = useCell(accessChanged);
  const [error, setError] = useState<string | null>(null);
  const load = (): void => {
    setError(null);
    loadSession().catch((thrown) => setError(sentenceOf(thrown)));
  };
  // Loads the session after each call without one, and after each sign of another role. The answer decides what is shown.
  useEffect(load, [changes]);
  if (path === "/signin") return html`<${SigninLinkPage} />`;
  if (path === "/signin/oidc") return html`<${ProviderPage} />`;
  if (path === "/setup") return html`<${SetupPage} error=${error} onRetry=${load} />`;
  if (path === "/reset") return html`<${ResetPage} error=${error} onRetry=${load} />`;
  if (known === undefined)
    return error === null ? html`<${Starting} />` : html`<${ErrorState} error=${error} onRetry=${load} />`;
  return html`<${Signed} path=${path} />`;
}

/** Shows nothing at first, then a message that the service has not answered. A page that stays empty would explain nothing. */
function Starting(): View {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), STARTING_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!isLong) return null;
  return html`<main class="empty" role="status"><h1>Waiting for the service</h1><p>The service has not answered yet.</p></main>`;
}

/** Keeps the shell below the sign-in page of an expired session, so that unsaved input survives. */
function Signed({ path }: { path: string }): View {
  const now = useCell(session);
  const [last, setLast] = useState(now);
  useEffect(() => {
    if (now?.owner) setLast(now);
  }, [now]);
  if (now === undefined) return null;
  const shown = now.owner === null ? last : now;
  if (shown === undefined || shown.owner === null) return html`<${SigninPage} session=${now} />`;
  if (now.owner !== null && now.needsFactor) return html`<${EnrollPage} session=${now} />`;
  if (path === "/login" && (now.owner === null || now.apps.length > 0))
    return now.owner === null
      ? html`<${SigninPage} session=${now} />`
      : html`<${LoginPage} session=${now} />`;
  const approval = /^\/approvals\/([^/]+)$/.exec(path)?.[1];
  if (approval !== undefined)
    return now.owner === null
      ? html`<${SigninPage} session=${now} />`
      : html`<${ApprovalPage} key=${approval} id=${approval} />`;
  const manages = now.may.includes("manage_server");
  if (now.owner !== null && now.apps.length === 0 && !manages) {
    return html`<main class="empty"><h1>You are a member of no app</h1><p>Ask an owner of this server for a role.</p>
      <button type="button" onClick=${() => signOut().catch((error) => notifyFailed(sentenceOf(error)))}>Sign out</button></main>`;
  }
  if (now.owner !== null && manages && (now.apps.length === 0 || path === "/new-app")) {
    return html`<${NewAppPage} isFirst=${now.apps.length === 0} />`;
  }
  // The key removes the input of the previous owner if another one signs in.
  return html`<${Shell} key=${shown.owner.email} session=${shown} isLocked=${now.owner === null} />
    ${now.owner === null && html`<${Lock} session=${now} />`}`;
}

/** Covers the shell with a modal dialog. It must be above an open dialog of the shell, which would otherwise block all input. */
function Lock({ session: now }: { session: Session }): View {
  const lock = useRef<HTMLDialogElement>(null);
  const show = (): unknown => lock.current?.isConnected && lock.current.showModal();
  useLayoutEffect(() => {
    show();
  }, []);
  return html`<dialog ref=${lock} class="locked" aria-label="Sign in"
    onCancel=${(event: Event) => event.preventDefault()} onClose=${show}><${SigninPage} session=${now} /></dialog>`;
}
