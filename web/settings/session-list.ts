/** Account of the signed-in member: the sessions, ending one or all others, the second factors, and a new password. */
import { useState } from "preact/hooks";
import type { SessionItem } from "../../src/platform/account/session.ts";
import { session, signOut } from "../account/session.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";
import { useSend } from "../component/use-send.ts";
import { FactorCard } from "./factor-card.ts";
import { SettingCard } from "./setting-card.ts";

const PATH = "/api/sessions";

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\//, "Firefox"],
  [/\bHeadlessChrome\/|\bChrom(e|ium)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\b(iPhone|iPad)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
];

/** Returns "Firefox on Linux" from the user agent, or all of the user agent for an unknown browser. */
function formatBrowser(agent: string | null): string {
  if (agent === null) return "Not known";
  const find = (names: typeof BROWSERS): string | undefined => names.find(([sign]) => sign.test(agent))?.[1];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  if (browser === undefined) return agent;
  return system === undefined ? browser : `${browser} on ${system}`;
}

export function SessionList(): View {
  const { data, error, reload } = useLoad<{ sessions: SessionItem[]; hasPassword: boolean }>(PATH, 60_000);
  const { send, isSending, error: refused } = useSend();
  const known = useCell(session);
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${3} onRetry=${reload} />`;
  const end = (one: SessionItem): void => {
    if (one.current) void signOut();
    else
      void send({
        method: "DELETE",
        path: `${PATH}/${one.id}`,
        changes: [PATH, "/api/owners"],
        done: "Session ended.",
      });
  };
  const endOthers = () =>
    send<{ ended: number }>({
      method: "DELETE",
      path: `${PATH}?others=true`,
      changes: [PATH, "/api/owners"],
      done: ({ ended }) =>
        `Signed out everywhere else: ${ended === 1 ? "1 session" : `${ended} sessions`} ended.`,
    });
  const others = data.sessions.length - 1;
  return html`<p class="tab-lead">The sessions of <b>${known?.owner?.email ?? "you"}</b>. A session ends 30 days after its last use. If you do not recognize a session, end it and set a new password.</p>
    <div class="tab-actions"><button type="button" disabled=${isSending || others < 1} onClick=${() => void endOthers()}>Sign out everywhere else</button></div>
    ${refused !== null && html`<${Notice} kind="bad"><${Sentence} text=${refused} /><//>`}
    <${Table} label="Your sessions" columns=${columnsOf(end, isSending)} items=${data.sessions} />
    ${known?.mode === "server" && html`<div class="settings setting-after"><${FactorCard} hasPassword=${data.hasPassword} />${known.signin.passwords && html`<${NewPassword} hasPassword=${data.hasPassword} />`}</div>`}`;
}

function columnsOf(end: (one: SessionItem) => void, isSending: boolean): Column<SessionItem>[] {
  return [
    {
      name: "browser",
      title: "Browser",
      priority: 1,
      cell: ({ agent, current }) =>
        html`<span class="clip" title=${agent}><${SafeText} text=${formatBrowser(agent)} limit=${80} />${current && html` <span class="chip">this one</span>`}</span>`,
    },
    {
      name: "from",
      title: "From",
      priority: 2,
      size: "name",
      cell: ({ source }) => html`<span class="clip mono">${source ?? "not known"}</span>`,
    },
    timeColumn("seen", "Last used", 2, ({ seenAt }) => seenAt),
    timeColumn("began", "Began", 3, ({ createdAt }) => createdAt),
    {
      name: "end",
      title: "",
      priority: 1,
      size: "short",
      cell: (one) =>
        html`<button type="button" class="quiet-danger" disabled=${isSending} aria-label="${one.current ? "Sign out" : "End"}: ${formatBrowser(one.agent)}, ${one.source ?? "not known"}" onClick=${() => end(one)}>${one.current ? "Sign out" : "End"}</button>`,
    },
  ];
}

function NewPassword({ hasPassword }: { hasPassword: boolean }): View {
  const { send, isSending, error } = useSend();
  const [round, setRound] = useState(0);
  const change = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const data = new FormData(event.target as HTMLFormElement);
    const body = { current: String(data.get("current") ?? ""), password: String(data.get("password") ?? "") };
    const path = "/api/session/password";
    const done = `Password ${hasPassword ? "changed" : "set"}. All other sessions ended.`;
    if ((await send({ method: "PUT", path, body, changes: [PATH], done })) !== null) setRound(round + 1);
  };
  return html`<${SettingCard} title="New password" error=${error}>
    <form class="setting-line" key=${round} onSubmit=${change}>
      ${hasPassword && html`<label class="field"><span>Current password</span><input name="current" type="password" required autocomplete="current-password" /></label>`}
      <label class="field"><span>New password</span><input name="password" type="password" required minlength="10" maxlength="256" autocomplete="new-password" /></label>
      <button disabled=${isSending}>${isSending ? "Saving…" : "Set password"}</button></form>
    <p class="quiet">At least 10 characters.${!hasPassword && " You have no password so far."} A new password ends all other sessions and the keys that <code>relay login</code> created for you.</p>
  <//>`;
}
