/** The mailer of local development: nothing leaves the house, every mail is read in the dashboard's mailbox (its row). */
import type { StoppableMailer } from "./mailer.ts";

export const mailboxMailer: StoppableMailer = {
  send: () => Promise.resolve({ kind: "mailbox" }),
  stop: () => undefined,
};
