/**
 * `relay emails …`: what became of mail, and mail sent by hand. On a data directory they send by themselves, with the settings of the environment,
 * beside a running server or without one; of a server elsewhere that server sends.
 */

import { createLog } from "../../base/log.ts";
import { actorOrigin, COMMAND_LINE, formatActor } from "../../platform/account/api-key.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { EMAIL_STATES, type EmailView, listEmails } from "../../platform/mail/email.ts";
import { listMailStops, type MailStopView } from "../../platform/mail/mail-stop.ts";
import {
  type ManualActor,
  type ManualMailDeps,
  sendEmailAgain,
  sendTestMail,
} from "../../platform/mail/manual-mail.ts";
import { createMailer } from "../../platform/mail/smtp-mailer.ts";
import { readPersonId, requireActingPerson } from "../../shop/people/person.ts";
import type { Store } from "../../store/port.ts";
import type { Command, Input } from "./command.ts";
import { JSON_OUTPUT, openSealerHere, readAllowPrivate } from "./data-directory.ts";
import { wholeId } from "./id-suffix.ts";
import type { World } from "./io.ts";
import { LIMIT, pagesOf, SINCE } from "./listing.ts";
import { askPlace, pageRemote } from "./remote.ts";
import { ALLOW_PRIVATE, BASE_URL, readBaseUrl, readLimits } from "./service-option.ts";
import { ANYWHERE, atPlace, type HereOf, listAtPlace } from "./target.ts";
import { sayList } from "./terminal.ts";

const SEND_OPTIONS = [...ANYWHERE, BASE_URL, ALLOW_PRIVATE];

export const emailsList: Command = {
  words: ["emails", "list"],
  summary: "list mail with what became of it, newest first",
  options: [
    {
      name: "person",
      value: "<address, id or token>",
      help: "only what went to this person; somebody unknown is an error",
    },
    { name: "state", value: "<state>", help: EMAIL_STATES.join(", "), of: EMAIL_STATES },
    SINCE,
    LIMIT,
    JSON_OUTPUT,
    ...ANYWHERE,
  ],
  examples: ["relay emails list --state unknown", "relay emails list --person ada@example.com"],
  async run(input, world) {
    const state = input.choice("state", EMAIL_STATES) ?? undefined;
    const named = input.text("person") ?? undefined;
    const here: HereOf<EmailView> = async (tx, id, part) => {
      const person = await readPersonId(tx, id, "--person", named);
      return await listEmails(tx, id, part, { state, person });
    };
    const time = { of: (mail: EmailView) => mail.createdAt, ordered: true };
    const mails = await listAtPlace(input, world, "/emails", { state, person: named }, here, time);
    await sayList(input, world, mails, {
      columns: [
        { heading: "MADE", value: (mail) => mail.createdAt, keep: 3 },
        { heading: "STATE", value: (mail) => mail.state, tone: true, keep: 1 },
        { heading: "TO", value: (mail) => mail.to, cut: 14, keep: 2, raw: true },
        { heading: "SUBJECT", value: (mail) => mail.subject, cut: 14, keep: 5, raw: true },
        { heading: "ID", value: (mail) => mail.id, keep: 4 },
        { heading: "WHY", value: (mail) => mail.message ?? "", cut: 14, keep: 6 },
      ],
      none: "No mail matches.",
    });
  },
};

export const emailsStopped: Command = {
  words: ["emails", "stopped"],
  summary: "list who wants no more mail of kind event",
  details:
    "By the link that such a mail carries, or by relay people stop-mail. Mail of kind account goes to them all the same.",
  options: [LIMIT, JSON_OUTPUT, ...ANYWHERE],
  examples: ["relay emails stopped"],
  async run(input, world) {
    const stops = await listAtPlace<MailStopView>(input, world, "/mail/stops", {}, listMailStops);
    await sayList(input, world, stops, {
      columns: [
        { heading: "SINCE", value: (stop) => stop.stoppedAt, keep: 2 },
        { heading: "ADDRESS", value: (stop) => stop.email, cut: 20, keep: 1, raw: true },
        { heading: "ID", value: (stop) => stop.person, keep: 3 },
      ],
      none: "Nobody stopped mail of kind event.",
    });
  },
};

export const emailsSendAgain: Command = {
  words: ["emails", "send-again"],
  summary: "send mail again whose end is unknown",
  details: "Mail that failed is sent by a replay of its event: relay events replay.",
  arguments: [
    { name: "mail id", help: "as relay emails list --state unknown shows it, or its ending", many: true },
  ],
  options: SEND_OPTIONS,
  examples: ["relay emails send-again 1f09b2e4"],
  async run(input, world) {
    const sendAll = async (send: (id: string) => Promise<EmailView>): Promise<number> => {
      let code = 0;
      for (const id of input.positionals) code = Math.max(code, sayEnd(world, await send(id)));
      return code;
    };
    return await atPlace(input, world, {
      writes: true,
      here: (store, environment) =>
        withMailer(store, environment, input, world, (deps, hand) =>
          sendAll(async (text) => {
            const pages = pagesOf(store, (tx, part) => listEmails(tx, environment.id, part, {}));
            return await sendEmailAgain(deps, hand, await wholeId(text, "mails", pages), (tx, personId) =>
              requireActingPerson(tx, hand.environmentId, personId),
            );
          }),
        ),
      there: (remote) =>
        sendAll(async (text) => {
          const id = await wholeId(text, "mails", (most, cursor) =>
            pageRemote<EmailView>(remote, "/emails", {}, most, cursor),
          );
          const path = `/emails/${encodeURIComponent(id)}/send-again`;
          return (await askPlace<{ email: EmailView }>(remote, "POST", path)).email;
        }),
    });
  },
};

export const emailsTest: Command = {
  words: ["emails", "test"],
  summary: "mail an owner a test of the mail settings",
  options: [
    { name: "to", value: "<address>", otherwise: "the first owner's", help: "an owner's e-mail address" },
    ...SEND_OPTIONS,
  ],
  examples: ["relay emails test --to you@example.com"],
  async run(input, world) {
    const to = input.text("to") ?? undefined;
    const mail = await atPlace(input, world, {
      writes: true,
      here: (store, environment) =>
        withMailer(store, environment, input, world, (deps, hand) =>
          sendTestMail(deps, hand, { appId: environment.appId, to, limits: readLimits(world.env) }),
        ),
      there: async (remote) =>
        (await askPlace<{ email: EmailView }>(remote, "POST", "/mail/test", { to })).email,
    });
    return sayEnd(world, mail);
  },
};

/** 0 when the mail was taken, or kept in the mailbox of local development. */
function sayEnd(world: World, { id, to, state, message }: EmailView): number {
  const end = state === "mailbox" ? "kept here, as local development sends nothing" : state;
  world.say(`${id} to ${to}: ${end}${message === null ? "" : `. ${message}`}`);
  return state === "sent" || state === "mailbox" ? 0 : 1;
}

async function withMailer<Result>(
  store: Store,
  environment: Environment,
  input: Input,
  world: World,
  work: (deps: ManualMailDeps, hand: ManualActor) => Promise<Result>,
): Promise<Result> {
  const { clock } = world;
  const sealer = await openSealerHere(store, input, world);
  const log = createLog({ clock, format: "text", sink: (line) => world.tell(line) });
  const local = environment.name === "local";
  const mailer = createMailer({
    store,
    sealer,
    clock,
    log,
    allowPrivate: readAllowPrivate(input, world),
    baseUrl: () => readBaseUrl(input),
    local,
  });
  const hand = {
    environmentId: environment.id,
    by: formatActor(COMMAND_LINE),
    origin: actorOrigin(COMMAND_LINE),
  };
  return await work({ store, clock, mailer, local }, hand);
}
