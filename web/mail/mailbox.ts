/**
 * Mail that was sent, or in local development kept here instead of being sent; sending again what may not have left, and a test mail. It is
 * shown as text, never as markup.
 */
import { useState } from "preact/hooks";

import type { EmailView as Email } from "../../src/mail/email.ts";
import type { MailStopView } from "../../src/mail/mail-stop.ts";
import type { Page } from "../ground/answer.ts";
import { writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { setQuery } from "../ground/route.ts";
import { useList } from "../ground/use-list.ts";
import { useLoad } from "../ground/use-load.ts";
import { Dialog } from "../part/dialog.ts";
import { EmptyState, ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { OlderButton } from "../part/older-button.ts";
import { PageHead } from "../part/page-head.ts";
import { SafeText } from "../part/safe-text.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";
import { tellDone, tellFailed } from "../part/toast.ts";
import { useSend } from "../part/use-send.ts";

const STATES: Readonly<Record<Email["state"], readonly [look: string, word: string]>> = {
  intended: ["queued", "Being sent"],
  sent: ["done", "Sent"],
  failed: ["failed", "Not sent"],
  mailbox: ["done", "Kept here"],
  unknown: ["failed", "Unknown"],
};

export function MailboxPage({ place, query }: PageProps): View {
  const chosen = query.get("state") ?? "";
  const path = apiPath(place, "emails") + writeQuery({ state: chosen });
  const mails = useList<Email>(path, 5_000);
  return html`<${PageHead} title="Mail"><${TestMail} place=${place} /><//>
    <div class="filters" role="search" aria-label="Filter mail"><select aria-label="State" value=${chosen}
      onChange=${(event: Event) => setQuery({ state: (event.target as HTMLSelectElement).value })}>
      <option value="">Every state</option>
      ${Object.entries(STATES).map(
        ([state, [, word]]) =>
          html`<option key=${state} value=${state} selected=${state === chosen}>${word}</option>`,
      )}</select></div>
    ${
      mails.items === undefined
        ? mails.error === null
          ? html`<${Skeleton} />`
          : html`<${ErrorState} error=${mails.error} onRetry=${mails.reload} />`
        : mails.items.length === 0 && chosen !== ""
          ? html`<${EmptyState} icon="mail" title="No such mail"><p>No mail here is in this state.</p><//>`
          : mails.items.length === 0
            ? html`<${EmptyState} icon="mail" title="No mail yet">
            <p>What a relay mails with <code>email_person</code> appears here${place.environment === "local" && " instead of being sent"}.</p>
            <//>`
            : html`<ul class="mails">
            ${mails.items.map((email) => html`<${Mail} key=${email.id} place=${place} email=${email} />`)}</ul>
            <${OlderButton} list=${mails} none="These are all." />`
    }<${MailStops} place=${place} />`;
}

function Mail({ place, email }: { place: Place; email: Email }): View {
  const [look, word] = STATES[email.state];
  return html`<li><details><summary data-row>
      <span class="mail-subject"><${SafeText} text=${email.subject} limit=${200} /></span>
        <span class="mail-to clip">to <${SafeText} text=${email.to} limit=${80} /></span>
        <${StateMark} state=${look} word=${word} /><${Ago} at=${email.createdAt} />
    </summary>
    <div class="mail-body">
      ${email.message !== null && html`<${Notice} kind="warn"><${SafeText} text=${email.message} /><//>`}
      <p class="quiet">from <${SafeText} text=${email.from} limit=${80} />
        ${
          email.relay !== null &&
          html` · by relay <a href=${pagePath(place, "relays", email.relay)}>${email.relay}
        </a>`
        }${email.eventId !== null && html` · <a href=${pagePath(place, "events", email.eventId)}>its event</a>`}
        </p>
      ${email.state === "unknown" && email.relay !== null && html`<${SendAgain} place=${place} email=${email} />`}
      <pre class="mail-text"><${SafeText} text=${email.text} limit=${10_000} /></pre>
    </div></details></li>`;
}

/** What became of a mail that was just sent by hand, in one sentence. */
function tellEnd({ state, to, message }: Email): void {
  if (state === "sent" || state === "mailbox")
    tellDone(`The mail to ${to} was ${state === "sent" ? "taken by the mail server" : "kept here"}.`);
  else tellFailed(message ?? "It is not known what became of the mail.");
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

function TestMail({ place }: { place: Place }): View {
  const { send, isSending } = useSend();
  const sendTest = async (): Promise<void> => {
    const path = apiPath(place, "mail", "test");
    const sent = await send<{ email: Email }>({
      method: "POST",
      path,
      changes: [apiPath(place, "emails")],
      tellsRefusal: true,
    });
    if (sent !== null) tellEnd(sent.answer.email);
  };
  return html`<button type="button" disabled=${isSending} onClick=${sendTest}>
    ${isSending ? "Sending…" : "Send me a test mail"}</button>`;
}

/** People who want no event mail; nothing where there are none. */
function MailStops({ place }: { place: Place }): View {
  const stops = useLoad<Page<MailStopView>>(`${apiPath(place, "mail", "stops")}?limit=200`);
  const items = stops.data?.items ?? [];
  const { send, isSending } = useSend();
  const allow = (person: string, email: string) =>
    send({
      method: "PUT",
      path: apiPath(place, "persons", person, "mail-stop"),
      body: { stopped: false },
      changes: [apiPath(place, "mail", "stops")],
      done: `${email} gets event mail again.`,
      tellsRefusal: true,
    });
  if (items.length === 0) return null;
  return html`<section class="block" aria-label="No event mail"><div class="block-head"><h2>No event mail</h2>
    <span class="quiet">They stopped it with the link that such mail carries.</span></div>
    <ul class="watch">${items.map(
      ({ person, email, stoppedAt }) =>
        html`<li key=${person}><div class="watch-head"><b><${SafeText} text=${email} limit=${80} /></b>
          <span class="quiet">since <${Ago} at=${stoppedAt} /></span>
          <button type="button" disabled=${isSending} onClick=${() => allow(person, email)}>Allow again</button></div></li>`,
    )}</ul></section>`;
}
