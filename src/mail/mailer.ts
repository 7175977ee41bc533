/** The door through which e-mail leaves: SMTP on a server, nothing at all in local development, where mail stays in the mailbox. */

export interface OutgoingMail {
  environmentId: number;
  /** The row's id, also the Message-ID's local part. */
  emailId: string;
  from: string;
  to: string;
  subject: string;
  text: string;
}

export type MailOutcome =
  | { kind: "sent" }
  /** Kept in the local mailbox, sent nowhere. */
  | { kind: "mailbox" }
  /** It certainly did not leave. `retry`: the server may take it later (4xx, no connection); else it never will. */
  | { kind: "failed"; message: string; retry: boolean }
  /** The connection ended after the text was handed over and before the server said anything: it may have left. */
  | { kind: "unknown"; message: string };

export interface Mailer {
  /** Hands one mail over. Never throws. */
  send(mail: OutgoingMail): Promise<MailOutcome>;
}
