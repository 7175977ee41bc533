/** Mark that shows the state of a mail. */
import type { EmailView as Email } from "../../src/platform/mail/email.ts";
import { html, type View } from "../base/html.ts";
import { StateMark } from "../component/state-mark.ts";

export const MAIL_STATES: Readonly<Record<Email["state"], readonly [look: string, word: string]>> = {
  intended: ["queued", "Sending"],
  sent: ["done", "Sent"],
  failed: ["failed", "Failed"],
  mailbox: ["done", "In mailbox"],
  unknown: ["interrupted", "Unknown"],
};

export function MailState({ state }: { state: Email["state"] }): View {
  const [look, word] = MAIL_STATES[state];
  return html`<${StateMark} state=${look} word=${word} />`;
}
