/**
 * Sends the server's own mail, such as invitations of members, over the mail server of `--mail-url`. The mail server of an environment would not do,
 * because a person or key that may change its settings could read a link that makes another member. No row holds such a mail.
 */
import { formatServerMailFailure } from "../../base/code/mail-code.ts";
import { newId } from "../../base/id.ts";
import type { MailUrl } from "../../base/mail-url.ts";
import type { MailOutcome } from "./mailer.ts";
import { SmtpSender, type SmtpSenderDeps } from "./smtp-sender.ts";

/** A person waits for the answer, and an idle connection ends after 30 seconds. */
const WITHIN_MS = 20_000;

interface ServerLetter {
  to: string;
  subject: string;
  text: string;
}

export class ServerMail {
  readonly #url: MailUrl;
  readonly #sender: SmtpSender;
  readonly #deps: SmtpSenderDeps;

  /** Throws for a malformed range in `allowPrivate`. */
  constructor(url: MailUrl, deps: SmtpSenderDeps) {
    this.#url = url;
    this.#deps = deps;
    this.#sender = new SmtpSender(deps);
  }

  /** Sends one mail within 20 seconds. Never throws. */
  async send({ to, subject, text }: ServerLetter): Promise<MailOutcome> {
    const { host, port, security, username, from, password } = this.#url;
    const emailId = newId("eml", this.#deps.clock.now());
    const outcome = await this.#sender.send(emailId, async () => ({
      server: { host, port, security, username, clearPassword: password },
      mail: { environmentId: null, emailId, from, to, subject, text },
      envelope: { fromName: null, replyTo: null, stopUrl: null },
      withinMs: WITHIN_MS,
      markTextLeft: async () => true,
    }));
    if (!("reason" in outcome)) return outcome;
    return { ...outcome, message: formatServerMailFailure(outcome.reason) };
  }

  /** Ends unsent mails at once. */
  stop(): void {
    this.#sender.stop();
  }
}
