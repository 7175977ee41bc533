/** Attention page: open items, alerts, problems and the switches of alerts. The address names the tab. */
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { pagePath } from "../base/place.ts";
import { PageHead } from "../component/page-head.ts";
import { TabLinks } from "../component/tab-links.ts";
import { AlertList, ProblemHistory } from "./alert-list.ts";
import { AlertSwitches } from "./alert-switches.ts";
import { OpenNeeds } from "./attention-list.ts";

const TABS = [
  ["", "Needs you"],
  ["alerts", "Alerts"],
  ["problems", "Problems"],
  ["switches", "Switches"],
] as const;

export function AttentionPage({ place, query }: PageProps): View {
  const asked = query.get("tab") ?? "";
  const chosen = TABS.find(([name]) => name === asked)?.[0] ?? "";
  const path = pagePath(place, "attention");
  const tabs = TABS.map(([name, title]) => ({ name, title, href: path + writeQuery({ tab: name }) }));
  return html`<${PageHead} title="Attention" />
    <${TabLinks} label="Attention" tabs=${tabs} chosen=${chosen} />
    ${chosen === "" && html`<${OpenNeeds} place=${place} />`}
    ${chosen === "alerts" && html`<${AlertList} place=${place} query=${query} />`}
    ${chosen === "problems" && html`<${ProblemHistory} place=${place} query=${query} />`}
    ${chosen === "switches" && html`<${AlertSwitches} place=${place} />`}`;
}
