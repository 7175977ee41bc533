/** Which way a mail leaves: local development keeps it in the mailbox, a server hands it to the environment's SMTP server. */
import { mailboxMailer } from "./mailbox-mailer.ts";
import type { StoppableMailer } from "./mailer.ts";
import { makeSmtpMailer, type SmtpRooms } from "./smtp-mailer.ts";

/** `local`: the service runs local development. */
export function createMailer(rooms: SmtpRooms & { local: boolean }): StoppableMailer {
  return rooms.local ? mailboxMailer : makeSmtpMailer(rooms);
}
