/** The registry of reasons why a mail was not sent. */
import type { CodeEntry } from "./code-entry.ts";

export const MAIL_FAILURES = {
  no_server: {
    what: "The environment has no SMTP server.",
    todo: "Set one with `relay settings set mail.smtp`.",
  },
  name_not_found: {
    what: "The host name of the mail server does not exist.",
    todo: "Check the host (`relay settings get mail.smtp`) and its DNS records.",
  },
  address_refused: {
    what: "Relay does not connect to the mail server, because its address is not public.",
    todo: "Name a public server, or have the operator allow this one (`--allow-private`, RELAY_ALLOW_PRIVATE).",
  },
  connection_refused: {
    what: "The mail server refused the connection.",
    todo: "Check the host and port (`relay settings get mail.smtp`), and that the server runs.",
  },
  not_connected: {
    what: "Relay cannot reach the mail server, or no name server answered for its name.",
    todo: "Check the host and port (`relay settings get mail.smtp`), that the server runs, and this machine's network and name servers.",
  },
  timed_out: {
    what: "The mail server did not answer in time.",
    todo: "Check that the mail server is not overloaded.",
  },
  tls_failed: {
    what: "Relay could not make a trusted TLS connection to the mail server.",
    todo: "Check the security (`relay settings get mail.smtp`), and the server's certificate and name. If your own authority signed it, start the service with NODE_EXTRA_CA_CERTS=/path/to/authority.pem.",
  },
  auth_refused: {
    what: "The mail server rejected the user name or password.",
    todo: "Set both again with `relay settings set mail.smtp`.",
  },
  sender_refused: {
    what: "The mail server rejected the sender's address.",
    todo: "Check that the mail server accepts mail from the sender domain (`relay domain show`).",
  },
  recipient_refused: {
    what: "The mail server rejected the recipient's address.",
    todo: "Check the recipient's address.",
  },
  text_refused: {
    what: "The mail server rejected the mail after it received its text.",
    todo: "Read in the server's log what the mail server answered.",
  },
  server_trouble: {
    what: "The mail server rejected the connection, or its answer is not SMTP.",
    todo: "Check the host and port (`relay settings get mail.smtp`), and that the mail server accepts mail.",
  },
  connection_lost: {
    what: "The mail server closed the connection before it accepted the mail.",
    todo: "Check the log of the mail server.",
  },
  stopped: {
    what: "The service stopped before the mail server accepted the mail.",
    todo: "Do nothing: Relay sends the mail of an event and of an alert again.",
  },
  not_composed: {
    what: "Relay could not create the mail or hand it over.",
    todo: "Read the cause in the server's log.",
  },
} as const satisfies Record<string, CodeEntry>;

export type MailFailureCode = keyof typeof MAIL_FAILURES;

/** Formats why a mail was not sent, with the code that the mail server replied, if any. */
export function formatMailFailure(code: MailFailureCode, reply: string | null = null): string {
  const { what, todo } = MAIL_FAILURES[code];
  return reply === null ? `${what} ${todo}` : `${what} Its reply was ${reply}. ${todo}`;
}

/** Formats why a mail of the server itself, such as an invitation, was not sent. */
export function formatServerMailFailure(code: MailFailureCode): string {
  return `${MAIL_FAILURES[code].what} ${SERVER_ADVICE[code] ?? "Check --mail-url (RELAY_MAIL_URL) and the server's log, then send it again."}`;
}

const SERVER_ADVICE: Readonly<Partial<Record<MailFailureCode, string>>> = {
  address_refused: MAIL_FAILURES.address_refused.todo,
  recipient_refused: "Check the member's address.",
  stopped: "Send it again.",
};
