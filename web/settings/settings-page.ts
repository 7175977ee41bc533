/** Settings page of the environment and of the server. The address names the tab. */
import { session } from "../account/session.ts";
import { writeQuery } from "../base/api.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { pagePath } from "../base/place.ts";
import { AskOwnerLine } from "../component/ask-owner.ts";
import { ErrorState, Skeleton } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { TabLinks } from "../component/tab-links.ts";
import { BackupList } from "./backup-list.ts";
import { GeneralTab } from "./general-tab.ts";
import { KeyList } from "./key-list.ts";
import { LimitList } from "./limit-list.ts";
import { MemberList } from "./member-list.ts";
import { ProviderSetting } from "./provider-setting.ts";
import { ServerFacts } from "./server-facts.ts";
import { SessionList } from "./session-list.ts";
import { useSettings } from "./use-settings.ts";

const TABS = [
  ["", "General"],
  ["keys", "Keys"],
  ["limits", "Limits"],
  ["server", "Server"],
  ["backups", "Backups"],
  ["members", "Members"],
  ["sessions", "Sessions"],
] as const;

/** Tabs that only a person sees who manages the server. */
const OF_SERVER: ReadonlySet<string> = new Set(["server", "backups", "members"]);

export function SettingsPage({ place, query }: PageProps): View {
  const asked = query.get("tab") ?? "";
  const may = useCell(session)?.may ?? [];
  const open = TABS.filter(([name]) => may.includes("manage_server") || !OF_SERVER.has(name));
  const chosen = open.find(([name]) => name === asked)?.[0] ?? "";
  const path = pagePath(place, "settings");
  const tabs = open.map(([name, title]) => ({ name, title, href: path + writeQuery({ tab: name }) }));
  return html`<${PageHead} title="Settings" />
    <${TabLinks} label="Settings" tabs=${tabs} chosen=${chosen} />
    ${chosen === "" && html`<${AskOwnerLine} needs="edit_settings" to="change settings" /><${General} place=${place} />`}
    ${chosen === "keys" && html`<${AskOwnerLine} needs="manage_keys" to="make or revoke keys" /><${KeyList} place=${place} />`}
    ${chosen === "limits" && html`<${LimitList} place=${place} />`}
    ${chosen === "server" && html`<${ServerFacts} />`}
    ${chosen === "backups" && html`<${BackupList} />`}
    ${chosen === "members" && html`<${MemberList} /><${ProviderSetting} />`}
    ${chosen === "sessions" && html`<${SessionList} />`}`;
}

function General({ place }: Pick<PageProps, "place">): View {
  const { settings, loadError, reload } = useSettings(place);
  if (settings !== undefined) return html`<${GeneralTab} place=${place} />`;
  return loadError === null
    ? html`<${Skeleton} />`
    : html`<${ErrorState} error=${loadError} onRetry=${reload} />`;
}
