/**
 * Mail that was sent, or in local development kept here instead of being sent; sending again what may not have left, and a test mail. It is
 * shown as text, never as markup.
 */
import { useState } from "preact/hooks";

import type { EmailView as Email } from "../../src/mail/email.ts";
import type { MailStopView } from "../../src/mail/mail-stop.ts";
import type { Page } from "../ground/answer.ts";
import { call, sentenceOf, writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, type Place, pagePath } from "../ground/place.ts";
import { setQuery } from "../ground/route.ts";
import { useLoad } from "../ground/use-load.ts";
import { useOlder } from "../ground/use-older.ts";
import { Dialog } from "../part/dialog.ts";
import { EmptyState, ErrorState, Notice, Skeleton } from "../part/notice.ts";
import { OlderButton } from "../part/older-button.ts";
import { PageHead } from "../part/page-head.ts";
import { SafeText } from "../part/safe-text.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { Ago } from "../part/time.ts";
import { tellDone, tellFailed } from "../part/toast.ts";

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
  const first = useLoad<Page<Email>>(path, 5_000);
  const older = useOlder<Email>(path, first.data);
  return html`<${PageHead} title="Mail"><${TestMail} place=${place} onSent=${first.reload} /><//>
    <div class="filters" role="search" aria-label="Filter mail"><select aria-label="State" value=${chosen}
      onChange=${(event: Event) => setQuery({ state: (event.target as HTMLSelectElement).value })}>
      <option value="">Every state</option>
      ${Object.entries(STATES).map(
        ([state, [, word]]) =>
          html`<option key=${state} value=${state} selected=${state === chosen}>${word}</option>`,
      )}</select></div>
    ${
      first.data === undefined
        ? first.error === null
          ? html`<${Skeleton} />`
          : html`<${ErrorState} error=${first.error} onRetry=${first.reload} />`
        : older.items.length === 0 && chosen !== ""
          ? html`<${EmptyState} icon="mail" title="No such mail"><p>No mail here is in this state.</p><//>`
          : older.items.length === 0
            ? html`<${EmptyState} icon="mail" title="No mail yet">
            <p>What a relay mails with <code>email_person</code> appears here${place.environment === "local" && " instead of being sent"}.</p>
            <//>`
            : html`<ul class="mails">
            ${older.items.map((email) => html`<${Mail} key=${email.id} place=${place} email=${email} onSent=${first.reload} />`)}</ul>
            <${OlderButton} older=${older} none="These are all." />`
    }<${MailStops} place=${place} />`;
}

function Mail({ place, email, onSent }: { place: Place; email: Email; onSent: () => void }): View {
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
      ${email.state === "unknown" && email.relay !== null && html`<${SendAgain} place=${place} email=${email} onSent=${onSent} />`}
      <pre class="mail-text"><${SafeText} text=${email.text} limit=${10_000} /></pre>
    </div></details></li>`;
}

/** What became of a mail that was just sent by hand, in one sentence. */
function tellEnd({ state, to, message }: Email): void {
  if (state === "sent" || state === "mailbox")
    tellDone(`The mail to ${to} was ${state === "sent" ? "taken by the mail server" : "kept here"}.`);
  else tellFailed(message ?? "It is not known what became of the mail.");
}

function SendAgain({ place, email, onSent }: { place: Place; email: Email; onSent: () => void }): View {
  const [isAsking, setAsking] = useState(false);
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const send = async (): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      const path = apiPath(place, "emails", email.id, "send-again");
      tellEnd((await call<{ email: Email }>("POST", path, {})).email);
      setAsking(false);
      onSent();
    } catch (thrown) {
      setError(sentenceOf(thrown));
    }
    setSending(false);
  };
  return html`<p><button type="button" onClick=${() => setAsking(true)}>Send again…</button></p>
    ${
      isAsking &&
      html`<${Dialog} title="Send this mail again?" onClose=${() => setAsking(false)}>
        <p>It is not known whether it arrived. If it did, ${email.to} gets it twice.</p>
        ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
        <div class="dialog-actions"><button type="button" onClick=${() => setAsking(false)}>Cancel</button>
          <button type="button" class="primary" disabled=${isSending} onClick=${send}>
            ${isSending ? "Sending…" : "Send again"}</button></div><//>`
    }`;
}

function TestMail({ place, onSent }: { place: Place; onSent: () => void }): View {
  const [isSending, setSending] = useState(false);
  const send = async (): Promise<void> => {
    setSending(true);
    try {
      tellEnd((await call<{ email: Email }>("POST", apiPath(place, "mail", "test"), {})).email);
      onSent();
    } catch (thrown) {
      tellFailed(sentenceOf(thrown));
    }
    setSending(false);
  };
  return html`<button type="button" disabled=${isSending} onClick=${send}>
    ${isSending ? "Sending…" : "Send me a test mail"}</button>`;
}

/** People who want no event mail; nothing where there are none. */
function MailStops({ place }: { place: Place }): View {
  const stops = useLoad<Page<MailStopView>>(`${apiPath(place, "mail", "stops")}?limit=200`);
  const items = stops.data?.items ?? [];
  const allow = async (person: string, email: string): Promise<void> => {
    try {
      await call("PUT", apiPath(place, "persons", person, "mail-stop"), { stopped: false });
      tellDone(`${email} gets event mail again.`);
      stops.reload();
    } catch (thrown) {
      tellFailed(sentenceOf(thrown));
    }
  };
  if (items.length === 0) return null;
  return html`<section class="block" aria-label="No event mail"><div class="block-head"><h2>No event mail</h2>
    <span class="quiet">They stopped it with the link that such mail carries.</span></div>
    <ul class="watch">${items.map(
      ({ person, email, stoppedAt }) =>
        html`<li key=${person}><div class="watch-head"><b><${SafeText} text=${email} limit=${80} /></b>
          <span class="quiet">since <${Ago} at=${stoppedAt} /></span>
          <button type="button" onClick=${() => allow(person, email)}>Allow again</button></div></li>`,
    )}</ul></section>`;
}
