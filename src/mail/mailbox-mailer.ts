/** The mailer of local development: nothing leaves the house, every mail is read in the dashboard's mailbox (its row). */
import type { Mailer } from "./mailer.ts";

export const mailboxMailer: Mailer = {
  send: () => Promise.resolve({ kind: "mailbox" }),
};
