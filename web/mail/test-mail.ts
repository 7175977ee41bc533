/** Button that sends a test mail to the owner. It shows the result as a toast and, in the settings, next to the button. */
import { useState } from "preact/hooks";
import type { EmailView as Email } from "../../src/platform/mail/email.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { notifyDone, notifyFailed } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";

/** Describes the result of a test mail in one sentence. null: it is not known to be successful. */
function formatEnd({ state, to }: Email): string | null {
  if (state !== "sent" && state !== "mailbox") return null;
  return `The mail to ${to} was ${state === "sent" ? "accepted by the mail server" : "stored in the mailbox"}.`;
}

const UNKNOWN = "The result of the mail is unknown.";

export function notifyEnd(email: Email): void {
  const well = formatEnd(email);
  if (well === null) notifyFailed(email.message ?? UNKNOWN);
  else notifyDone(well);
}

export function TestMail({ place, tellsHere = false }: { place: Place; tellsHere?: boolean }): View {
  const { send, isSending, error } = useSend();
  const [ended, setEnded] = useState<Email | null>(null);
  const sendTest = async (): Promise<void> => {
    setEnded(null);
    const path = apiPath(place, "mail", "test");
    const changes = [apiPath(place, "emails")];
    const sent = await send<{ email: Email }>({ method: "POST", path, changes, tellsRefusal: !tellsHere });
    if (sent === null) return;
    if (tellsHere) setEnded(sent.answer.email);
    else notifyEnd(sent.answer.email);
  };
  const button = html`<button data-needs="edit_settings" type="button" disabled=${isSending} onClick=${() => void sendTest()}>
    ${isSending ? "Sending…" : "Send a test mail"}</button>`;
  if (!tellsHere) return button;
  const well = ended === null ? null : formatEnd(ended);
  return html`${button}<div role="status">
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    ${ended !== null && html`<${Notice} kind=${well === null ? "bad" : "good"}><${Sentence} text=${well ?? ended.message ?? UNKNOWN} /><//>`}
  </div>`;
}
