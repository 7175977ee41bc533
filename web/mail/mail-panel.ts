/** Open mail, next to the list on a wide screen, otherwise above it. The mail is shown as text, never as markup. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { EmailView as Email } from "../../src/platform/mail/email.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { CommandLine, Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { MailState } from "./mail-state.ts";
import { notifyEnd } from "./test-mail.ts";

export function MailPanel({ place, id, onClose }: { place: Place; id: string; onClose: () => void }): View {
  const { data, error, isGone, reload } = useLoad<{ email: Email }>(apiPath(place, "emails", id));
  const panel = useRef<HTMLElement>(null);
  useLayoutEffect(() => panel.current?.scrollIntoView({ block: "nearest" }), [id, data === undefined]);
  const email = data?.email;
  return html`<aside class="event-panel mail-panel" ref=${panel} aria-label="Open mail">
    <header class="event-panel-head"><h2>${email === undefined ? "Mail" : html`<${SafeText} text=${email.subject} limit=${200} />`}</h2>
      ${email !== undefined && html`<${MailState} state=${email.state} />`}
      <div class="page-actions"><button type="button" class="bare" aria-label="Close" title="Close (Esc)" onClick=${onClose}><${Icon} name="cross" size=${14} /></button></div></header>
    ${
      email === undefined
        ? html`<${LoadingState} error=${error} isGone=${isGone} rows=${4} onRetry=${reload} />`
        : html`<${Opened} place=${place} email=${email} />`
    }</aside>`;
}

function Opened({ place, email }: { place: Place; email: Email }): View {
  const { message, from, to, relay, person, eventId, state, createdAt } = email;
  return html`<div class="mail-body">
    ${message !== null && html`<${Notice} kind="warn"><${Sentence} text=${message} /> <${CommandLine} texts=${[message]} /><//>`}
    <dl class="mail-facts">
      <dt>To</dt><dd>${person === null ? html`<${SafeText} text=${to} limit=${300} />` : html`<a href=${pagePath(place, "people", person)}><${SafeText} text=${to} limit=${300} /></a>`}</dd>
      <dt>From</dt><dd><${SafeText} text=${from} limit=${300} /></dd>
      ${relay !== null && html`<dt>Relay</dt><dd><a href=${pagePath(place, "relays", relay)}>${relay}</a>${eventId !== null && html` · <a href=${pagePath(place, "events", eventId)}>event</a>`}</dd>`}
      <dt>When</dt><dd><${Ago} at=${createdAt} /></dd></dl>
    ${state === "unknown" && relay !== null && html`<${SendAgain} place=${place} email=${email} />`}
    <pre class="mail-text"><${SafeText} text=${email.text} limit=${10_000} /></pre></div>`;
}

function SendAgain({ place, email }: { place: Place; email: Email }): View {
  const [isAsking, setAsking] = useState(false);
  const { send, isSending, error } = useSend();
  const sendAgain = async (): Promise<void> => {
    const path = apiPath(place, "emails", email.id, "send-again");
    const sent = await send<{ email: Email }>({ method: "POST", path, changes: [apiPath(place, "emails")] });
    if (sent === null) return;
    notifyEnd(sent.answer.email);
    setAsking(false);
  };
  return html`<p><button data-needs="replay" type="button" onClick=${() => setAsking(true)}>Send again…</button></p>
    ${
      isAsking &&
      html`<${Dialog} title="Send this mail again?" onClose=${() => setAsking(false)}>
        <p>Relay does not know if the mail arrived. If it did, ${email.to} gets it twice.</p>
        ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
        <div class="dialog-actions"><button type="button" onClick=${() => setAsking(false)}>Cancel</button>
          <button type="button" class="primary" disabled=${isSending} onClick=${sendAgain}>
            ${isSending ? "Sending…" : "Send again"}</button></div><//>`
    }`;
}
