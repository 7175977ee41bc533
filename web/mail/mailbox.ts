/** Mail that was sent, or in local development kept here instead of being sent; sending again what may not have left. It is shown as text, never as markup. */
import { useState } from "preact/hooks";

import type { EmailView as Email } from "../../src/mail/email.ts";
import { writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { setQuery } from "../ground/route.ts";
import { useList } from "../ground/use-list.ts";
import { Choice } from "../part/choice.ts";
import { Dialog } from "../part/dialog.ts";
import { EmptyState, ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { OlderButton } from "../part/older-button.ts";
import { SafeText } from "../part/safe-text.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";
import { useSend } from "../part/use-send.ts";
import { useSettings } from "../setting/use-settings.ts";
import { tellEnd } from "./test-mail.ts";

const STATES: Readonly<Record<Email["state"], readonly [look: string, word: string]>> = {
  intended: ["queued", "Being sent"],
  sent: ["done", "Sent"],
  failed: ["failed", "Not sent"],
  mailbox: ["done", "Kept here"],
  unknown: ["failed", "Unknown"],
};

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
  return html`<${NotLeaving} place=${place} />
    <div class="filters" role="search" aria-label="Filter mail">
      <${Choice} name="state" label="State" none="Every state" query=${query} options=${Object.entries(STATES).map(([state, [, word]]) => [state, word])} />
      <${Choice} name="kind" label="Kind" none="Every kind" query=${query} options=${Object.entries(KINDS)} />
      ${filter.person !== null && html`<button type="button" class="chip" onClick=${() => setQuery({ person: "" })}>to one person ×</button>`}</div>
    ${
      mails.items === undefined
        ? mails.error === null
          ? html`<${Skeleton} />`
          : html`<${ErrorState} error=${mails.error} onRetry=${mails.reload} />`
        : mails.items.length === 0 && isFiltered
          ? html`<${EmptyState} icon="mail" title="No such mail"><p>No mail here is as the filter says.</p><//>`
          : mails.items.length === 0
            ? html`<${EmptyState} icon="mail" title="No mail yet">
            <p>What a relay mails with <code>email_person</code> appears here${place.environment === "local" && " instead of being sent"}.</p>
            <//>`
            : html`<ul class="mails">
            ${mails.items.map((email) => html`<${Mail} key=${email.id} place=${place} email=${email} />`)}</ul>
            <${OlderButton} list=${mails} none="These are all." />`
    }`;
}

/** Why no mail leaves, where something is still to be set up. */
function NotLeaving({ place }: { place: Place }): View {
  const { settings } = useSettings(place);
  if (settings === undefined || place.environment === "local") return null;
  const to = (tab: string): string => pagePath(place, "mail") + writeQuery({ tab });
  const { mail, senderDomain } = settings;
  if (!mail.sends)
    return html`<${Notice} kind="warn">Relays send no mail: the <a href=${to("server")}>switch</a> is off.<//>`;
  if (mail.smtp === null)
    return html`<${Notice} kind="warn">No mail leaves yet: set a <a href=${to("server")}>mail server</a>${senderDomain?.verified !== true && html` and a <a href=${to("domain")}>sender domain</a>`}.<//>`;
  if (senderDomain?.verified !== true)
    return html`<${Notice} kind="warn">No mail leaves yet: the <a href=${to("domain")}>sender domain</a> is ${senderDomain === null ? "not set" : "not verified"}.<//>`;
  return null;
}

function Mail({ place, email }: { place: Place; email: Email }): View {
  const [look, word] = STATES[email.state];
  return html`<li><details><summary data-row>
      <span class="mail-subject"><${SafeText} text=${email.subject} limit=${200} /></span>
        <span class="mail-to clip">to <${SafeText} text=${email.to} limit=${80} /></span>
        <${StateMark} state=${look} word=${word} /><${Ago} at=${email.createdAt} />
    </summary>
    <div class="mail-body">
      ${email.message !== null && html`<${Notice} kind="warn"><${Sentence} text=${email.message} /><//>`}
      <p class="quiet">from <${SafeText} text=${email.from} limit=${80} />
        ${
          email.relay !== null &&
          html` · by relay <a href=${pagePath(place, "relays", email.relay)}>${email.relay}
        </a>`
        }${email.person !== null && html` · to <a href=${pagePath(place, "people", email.person)}>its person</a>`}${email.eventId !== null && html` · <a href=${pagePath(place, "events", email.eventId)}>its event</a>`}
        </p>
      ${email.state === "unknown" && email.relay !== null && html`<${SendAgain} place=${place} email=${email} />`}
      <pre class="mail-text"><${SafeText} text=${email.text} limit=${10_000} /></pre>
    </div></details></li>`;
}

function SendAgain({ place, email }: { place: Place; email: Email }): View {
  const [isAsking, setAsking] = useState(false);
  const { send, isSending, error } = useSend();
  const sendAgain = async (): Promise<void> => {
    const path = apiPath(place, "emails", email.id, "send-again");
    const sent = await send<{ email: Email }>({ method: "POST", path, changes: [apiPath(place, "emails")] });
    if (sent === null) return;
    tellEnd(sent.answer.email);
    setAsking(false);
  };
  return html`<p><button type="button" onClick=${() => setAsking(true)}>Send again…</button></p>
    ${
      isAsking &&
      html`<${Dialog} title="Send this mail again?" onClose=${() => setAsking(false)}>
        <p>It is not known whether it arrived. If it did, ${email.to} gets it twice.</p>
        ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
        <div class="dialog-actions"><button type="button" onClick=${() => setAsking(false)}>Cancel</button>
          <button type="button" class="primary" disabled=${isSending} onClick=${sendAgain}>
            ${isSending ? "Sending…" : "Send again"}</button></div><//>`
    }`;
}
