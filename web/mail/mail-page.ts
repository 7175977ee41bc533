/** Mail page: the sent mails, the sender domain, the mail server and the people who stopped mail. The address names the tab. */
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { pagePath } from "../base/place.ts";
import { AskOwnerLine } from "../component/ask-owner.ts";
import { PageHead } from "../component/page-head.ts";
import { TabLinks } from "../component/tab-links.ts";
import { MailServer } from "./mail-server.ts";
import { MailStopList } from "./mail-stop-list.ts";
import { Mailbox } from "./mailbox.ts";
import { SenderDomain } from "./sender-domain.ts";
import { TestMail } from "./test-mail.ts";

export function MailPage({ place, query }: PageProps): View {
  const titles = [
    ["", place.environment === "local" ? "Mailbox" : "Sent"],
    ["domain", "Sender domain"],
    ["server", "Mail server"],
    ["stops", "Unsubscribed"],
  ] as const;
  const asked = query.get("tab") ?? "";
  const chosen = titles.find(([name]) => name === asked)?.[0] ?? "";
  const path = pagePath(place, "mail");
  const tabs = titles.map(([name, title]) => ({ name, title, href: path + writeQuery({ tab: name }) }));
  return html`<${PageHead} title="Mail">${chosen === "" && html`<${TestMail} place=${place} />`}<//>
    <${TabLinks} label="Mail" tabs=${tabs} chosen=${chosen} />
    ${chosen === "" && html`<${Mailbox} place=${place} query=${query} />`}
    ${(chosen === "domain" || chosen === "server") && html`<${AskOwnerLine} needs="edit_settings" to="change this" />`}
    ${chosen === "domain" && html`<${SenderDomain} place=${place} />`}
    ${chosen === "server" && html`<${MailServer} place=${place} />`}
    ${chosen === "stops" && html`<${MailStopList} place=${place} />`}`;
}
