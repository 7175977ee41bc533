/** Alerts page: open items, alerts, problems and the alert settings. The address names the tab. */
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { pagePath } from "../base/place.ts";
import { AskOwnerLine } from "../component/ask-owner.ts";
import { PageHead } from "../component/page-head.ts";
import { TabLinks } from "../component/tab-links.ts";
import { AlertList, ProblemHistory } from "./alert-list.ts";
import { AlertSwitches } from "./alert-switches.ts";
import { AttentionList } from "./attention-list.ts";
import { ChannelList } from "./channel-list.ts";

const TABS = [
  ["", "Needs attention"],
  ["alerts", "All alerts"],
  ["problems", "All problems"],
  ["channels", "Channels"],
  ["switches", "Alert settings"],
] as const;

export function AlertsPage({ place, query }: PageProps): View {
  const asked = query.get("tab") ?? "";
  const chosen = TABS.find(([name]) => name === asked)?.[0] ?? "";
  const path = pagePath(place, "alerts");
  const tabs = TABS.map(([name, title]) => ({ name, title, href: path + writeQuery({ tab: name }) }));
  return html`<${PageHead} title="Alerts" />
    <${TabLinks} label="Alerts" tabs=${tabs} chosen=${chosen} />
    ${chosen === "" && html`<${AttentionList} place=${place} />`}
    ${chosen === "alerts" && html`<${AlertList} place=${place} query=${query} />`}
    ${chosen === "problems" && html`<${ProblemHistory} place=${place} query=${query} />`}
    ${(chosen === "channels" || chosen === "switches") && html`<${AskOwnerLine} needs="edit_settings" to="change this" />`}
    ${chosen === "channels" && html`<${ChannelList} place=${place} />`}
    ${chosen === "switches" && html`<${AlertSwitches} place=${place} />`}`;
}
