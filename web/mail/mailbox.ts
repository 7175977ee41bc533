/** List of sent mails, or in local development of mails that are stored instead of sent. The address holds the open mail. */
import type { EmailView as Email } from "../../src/platform/mail/email.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { useList } from "../base/use-list.ts";
import { Choice } from "../component/choice.ts";
import { EmptyState, LoadingState, Notice, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { type Column, Table } from "../component/table.ts";
import { timeColumn } from "../component/time-column.ts";
import { useKeys } from "../component/use-keys.ts";
import { useSettings } from "../settings/use-settings.ts";
import { MailPanel } from "./mail-panel.ts";
import { MAIL_STATES, MailState } from "./mail-state.ts";

const KINDS: Readonly<Record<Email["kind"], string>> = {
  event: "About events",
  account: "About accounts",
  signin: "Sign-in codes",
  alert: "Alerts to owners",
};

export function Mailbox({ place, query }: { place: Place; query: URLSearchParams }): View {
  const filter = { state: query.get("state"), kind: query.get("kind"), person: query.get("person") };
  const isFiltered = Object.values(filter).some((value) => value !== null);
  const mails = useList<Email>(apiPath(place, "emails") + writeQuery(filter), 5_000);
  const openId = query.get("open") ?? "";
  const close = (): void => {
    document.querySelector<HTMLElement>("main tr[aria-current] a[data-row]")?.focus({ preventScroll: true });
    setQuery({ open: "" });
  };
  useKeys({ Escape: () => (openId === "" ? false : close()) });
  return html`<${NotLeaving} place=${place} />
    <div class="filters" role="search" aria-label="Filter mail">
      <${Choice} name="state" label="State" none="Every state" query=${query} options=${Object.entries(MAIL_STATES).map(([state, [, word]]) => [state, word])} />
      <${Choice} name="kind" label="Kind" none="Every kind" query=${query} options=${Object.entries(KINDS)} />
      ${filter.person !== null && html`<button type="button" class="chip" onClick=${() => setQuery({ person: "" })}>to one person ×</button>`}</div>
    ${mails.error !== null && mails.items !== undefined && html`<${StaleNotice} error=${mails.error} />`}
    <div class=${openId === "" ? "" : "mail-split"}><div>
    ${
      mails.items === undefined
        ? html`<${LoadingState} error=${mails.error} onRetry=${mails.reload} />`
        : mails.items.length === 0
          ? html`<${None} place=${place} isFiltered=${isFiltered} />`
          : html`<${Table} label="Mail" columns=${columnsOf(place, query)} items=${mails.items} openId=${openId}
              onOpen=${({ id }: Email) => setQuery({ open: id })} />
            <${OlderButton} list=${mails} none="No more entries." />`
    }</div>
    ${openId !== "" && html`<${MailPanel} key=${openId} place=${place} id=${openId} onClose=${close} />`}</div>`;
}

function None({ place, isFiltered }: { place: Place; isFiltered: boolean }): View {
  if (isFiltered)
    return html`<${EmptyState} icon="mail" title="No mail matches"><p>Change or clear the filter.</p>
      <button type="button" onClick=${() => setQuery({ state: "", kind: "", person: "" })}>Show all</button><//>`;
  return html`<${EmptyState} icon="mail" title="No mail yet">
    <p>Mail that a relay sends with <code>email_person</code> appears here${place.environment === "local" && " instead of being sent"}.</p><//>`;
}

/** Says what setup is missing before mail can be sent. */
function NotLeaving({ place }: { place: Place }): View {
  const { settings } = useSettings(place);
  if (settings === undefined || place.environment === "local") return null;
  const to = (tab: string): string => pagePath(place, "mail") + writeQuery({ tab });
  const { mail, senderDomain } = settings;
  if (!mail.sends)
    return html`<${Notice} kind="warn">Relays send no mail: the <a href=${to("server")}>switch</a> is off.<//>`;
  if (mail.smtp === null)
    return html`<${Notice} kind="warn">Relay sends no mail yet: set a <a href=${to("server")}>mail server</a>${senderDomain?.verified !== true && html` and a <a href=${to("domain")}>sender domain</a>`}.<//>`;
  if (senderDomain?.verified !== true)
    return html`<${Notice} kind="warn">Relay sends no mail yet: the <a href=${to("domain")}>sender domain</a> is ${senderDomain === null ? "not set" : "not verified"}.<//>`;
  return null;
}

function columnsOf(place: Place, query: URLSearchParams): Column<Email>[] {
  const path = pagePath(place, "mail");
  const open = (id: string): string => path + writeQuery({ ...Object.fromEntries(query), open: id });
  return [
    {
      name: "subject",
      title: "Subject",
      priority: 1,
      cell: ({ id, subject, state, message }) => html`<div class="two-lines">
        <a class="clip" data-row href=${open(id)}><${SafeText} text=${subject} limit=${200} /></a>
        ${(state === "failed" || state === "unknown") && message !== null && html`<span class="mail-why"><${Sentence} text=${message} /></span>`}</div>`,
    },
    {
      name: "state",
      title: "State",
      priority: 1,
      size: "short",
      cell: ({ state }) => html`<${MailState} state=${state} />`,
    },
    {
      name: "person",
      title: "To",
      priority: 2,
      size: "address",
      cell: ({ to, person }) =>
        person === null
          ? html`<span class="clip"><${SafeText} text=${to} limit=${80} /></span>`
          : html`<a class="clip" href=${pagePath(place, "people", person)}><${SafeText} text=${to} limit=${80} /></a>`,
    },
    {
      name: "relay",
      title: "Relay",
      priority: 3,
      size: "name",
      cell: ({ relay }) =>
        relay !== null && html`<a class="clip" href=${pagePath(place, "relays", relay)}>${relay}</a>`,
    },
    timeColumn("time", "When", 2, ({ createdAt }) => createdAt),
  ];
}
