/**
 * Lists sent mail, and sends mail manually (`relay emails …`). On a data directory the command itself sends, with the settings of the
 * environment, even while a server runs. A remote server sends its own mail.
 */

import { EMAIL_STATES, type EmailView } from "../../../platform/mail/email.ts";
import type { MailStopView } from "../../../platform/mail/mail-stop.ts";
import { listItems, withApi } from "../api/connect.ts";
import { ANYWHERE } from "../api/target.ts";
import type { Command } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { ALLOW_PRIVATE, BASE_URL } from "../service-option.ts";
import { expandId } from "../terminal/id-suffix.ts";
import { LIMIT, SINCE } from "../terminal/listing.ts";
import { printList } from "../terminal/terminal.ts";

const SEND_OPTIONS = [...ANYWHERE, BASE_URL, ALLOW_PRIVATE];

export const emailsList: Command = {
  words: ["emails", "list"],
  summary: "list mail with its state, newest first",
  options: [
    {
      name: "person",
      value: "<address, id or token>",
      help: "only mail to this person; an unknown person is an error",
    },
    { name: "state", value: "<state>", help: EMAIL_STATES.join(", "), of: EMAIL_STATES },
    SINCE,
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay emails list --state unknown", "relay emails list --person ada@example.com"],
  async run(input, io) {
    const state = input.choice("state", EMAIL_STATES) ?? undefined;
    const named = input.text("person") ?? undefined;
    const time = { of: (mail: EmailView) => mail.createdAt, ordered: true };
    const mails = await listItems<EmailView>(input, io, "/emails", { state, person: named }, time);
    await printList(input, io, mails, {
      columns: [
        { heading: "MADE", value: (mail) => mail.createdAt },
        { heading: "STATE", value: (mail) => mail.state, tone: true },
        { heading: "TO", value: (mail) => mail.to, raw: true },
        { heading: "SUBJECT", value: (mail) => mail.subject, raw: true },
        { heading: "ID", value: (mail) => mail.id },
        { heading: "WHY", value: (mail) => mail.message ?? "" },
      ],
      none: "No mail matches.",
    });
  },
};

export const emailsStopped: Command = {
  words: ["emails", "stopped"],
  summary: "list people who stopped mail of kind event",
  details:
    "A person stops it with the link in such a mail, or you do with relay people stop-mail. They still get mail of kind account.",
  options: [LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay emails stopped"],
  async run(input, io) {
    const stops = await listItems<MailStopView>(input, io, "/mail/stops", {});
    await printList(input, io, stops, {
      columns: [
        { heading: "SINCE", value: (stop) => stop.stoppedAt },
        { heading: "ADDRESS", value: (stop) => stop.email, raw: true },
        { heading: "ID", value: (stop) => stop.person },
      ],
      none: "No person stopped mail of kind event.",
    });
  },
};

export const emailsResend: Command = {
  words: ["emails", "resend"],
  aliases: [["emails", "send-again"]],
  summary: "send mail of an unknown result again",
  details: "To send failed mail again, replay its event with relay events replay.",
  arguments: [
    { name: "mail id", help: "as relay emails list --state unknown shows it, or its ending", many: true },
  ],
  options: SEND_OPTIONS,
  examples: ["relay emails resend 1f09b2e4"],
  async run(input, io) {
    const sendAll = async (send: (id: string) => Promise<EmailView>): Promise<number> => {
      let code = 0;
      for (const id of input.positionals) code = Math.max(code, printEnd(io, await send(id)));
      return code;
    };
    return await withApi("write", input, io, (api) =>
      sendAll(async (text) => {
        const id = await expandId(text, "mails", (most, cursor) =>
          api.page<EmailView>("/emails", {}, most, cursor),
        );
        const path = `/emails/${encodeURIComponent(id)}/send-again`;
        return (await api.request<{ email: EmailView }>("POST", path)).email;
      }),
    );
  },
};

export const emailsTest: Command = {
  words: ["emails", "test"],
  summary: "send a test mail to an owner",
  options: [
    { name: "to", value: "<address>", otherwise: "the first owner's", help: "an owner's email address" },
    ...SEND_OPTIONS,
  ],
  examples: ["relay emails test --to you@example.com"],
  async run(input, io) {
    const to = input.text("to") ?? undefined;
    const mail = await withApi(
      "write",
      input,
      io,
      async (api) => (await api.request<{ email: EmailView }>("POST", "/mail/test", { to })).email,
    );
    return printEnd(io, mail);
  },
};

/** Reports the result. The exit code is 0 if the mail server accepted the mail, or the mailbox of local development stored it. */
function printEnd(io: Io, { id, to, state, message }: EmailView): number {
  const end = state === "mailbox" ? "stored in the mailbox, because local development sends no mail" : state;
  io.print(`${id} to ${to}: ${end}${message === null ? "" : `. ${message}`}`);
  return state === "sent" || state === "mailbox" ? 0 : 1;
}
