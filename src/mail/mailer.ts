/**
 * The door through which e-mail leaves: SMTP on a server, nothing at all in local development, where mail stays in the mailbox. What can go
 * wrong has a class and a sentence of ours; what a mail server says in its own words goes to the server's log alone.
 */

export interface OutgoingMail {
  environmentId: number;
  /** The row's id, also the Message-ID's local part. */
  emailId: string;
  from: string;
  to: string;
  subject: string;
  text: string;
  /** The person whose event mail this is one of: it says how to stop them. */
  stopFor?: string;
}

/** Every class of what keeps a mail from being sent, each with its sentence. */
export const MAIL_TROUBLES = {
  no_server: "No SMTP server is set in this environment: set one in the mail settings.",
  name_not_found:
    "The mail server's name was not found: check the host in the mail settings and its DNS records.",
  address_refused:
    "The mail server's address is not a public one, so it is not connected to: name a public server, or ask the operator to allow this one (--allow-private, RELAY_ALLOW_PRIVATE).",
  connection_refused:
    "The mail server refused the connection: check host and port in the mail settings, and that the server runs.",
  not_connected:
    "The mail server cannot be reached: check host and port in the mail settings, and that the server runs.",
  timed_out: "The mail server did not answer in time.",
  tls_failed:
    "No trusted encrypted connection to the mail server: check the security in the mail settings, and the server's certificate and its name.",
  auth_refused: "The mail server refused the sign-in: check username and password in the mail settings.",
  sender_refused: "The mail server refused the sender's address.",
  recipient_refused: "The mail server refused the recipient's address.",
  text_refused: "The mail server refused the mail itself.",
  server_trouble: "The mail server answered something that is no part of sending a mail.",
  connection_lost: "The mail server closed the connection before it had taken the mail.",
  stopped: "The service was stopped before the mail server had taken the mail.",
  not_composed: "The mail could not be made or handed over here: the server's log says why.",
} as const satisfies Record<string, string>;

export type MailTrouble = keyof typeof MAIL_TROUBLES;

export type MailOutcome =
  | { kind: "sent" }
  /** Kept in the local mailbox, sent nowhere. */
  | { kind: "mailbox" }
  /** It certainly did not leave. `retry`: the server may take it later (4xx, no connection); else it never will. */
  | { kind: "failed"; reason: MailTrouble; message: string; retry: boolean }
  /** The connection ended after the text was handed over and before the server said anything: it may have left. */
  | { kind: "unknown"; reason: MailTrouble; message: string };

export interface Mailer {
  /**
   * Hands one mail over, its row written as intended before; within a minute, or `withinMs` where somebody waits for the answer. Marks the
   * row durably before the text leaves. Never throws.
   */
  send(mail: OutgoingMail, options?: { withinMs?: number }): Promise<MailOutcome>;
}

/** A mailer that the end of the process can hurry: what did not leave ends at once, what may have is given some seconds. */
export interface StoppableMailer extends Mailer {
  stop(): void;
}
