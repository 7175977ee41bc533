/** Mail that was sent, or in local development kept: the mailbox; sending again by hand, a test of the settings, and the domain mail is sent from. */
import { Type } from "typebox";
import { type PageRequest, readPageRequest } from "../ground/page.ts";
import { fields, oneOf, orNull, pageOf, pageQuery, time, timeOrNull } from "../ground/schema.ts";
import { EMAIL_STATES, listEmails, requireEmailView } from "../mail/email.ts";
import { type HandMailRooms, sendEmailAgain, sendTestMail } from "../mail/hand-mail.ts";
import { MAIL_TROUBLES, type MailTrouble } from "../mail/mailer.ts";
import {
  findSenderDomain,
  removeSenderDomain,
  saveSenderDomain,
  verifySenderDomain,
  viewSenderDomain,
} from "../mail/sender-domain.ts";
import { requireActingPerson } from "../people/person.ts";
import type { Reader } from "../store/port.ts";
import { readPage } from "../store/walk.ts";
import type { HttpDeps } from "./deps.ts";
import { environmentRoute } from "./route.ts";

const kind = oneOf(["event", "account", "alert", "signin"]);
const state = oneOf(EMAIL_STATES);

const email = Type.Object({
  id: Type.String(),
  person: orNull(Type.String()),
  to: Type.String(),
  from: Type.String(),
  kind,
  subject: Type.String(),
  text: Type.String(),
  state,
  message: orNull(Type.String()),
  reason: orNull(oneOf(Object.keys(MAIL_TROUBLES) as MailTrouble[])),
  relay: orNull(Type.String()),
  eventId: orNull(Type.String()),
  createdAt: time,
  finishedAt: timeOrNull,
});

function handRooms({ store, clock, mailer, config }: HttpDeps): HandMailRooms {
  return { store, clock, mailer, local: config.mode === "local" };
}

export const senderDomain = Type.Object({
  domain: Type.String(),
  verified: Type.Boolean(),
  verifiedAt: timeOrNull,
  checkedAt: timeOrNull,
  eventWord: Type.String(),
  accountWord: Type.String(),
  record: Type.Object({ type: Type.Literal("TXT"), name: Type.String(), value: Type.String() }),
});

export const mailRoutes = [
  environmentRoute({
    method: "GET",
    path: "/emails",
    summary: "Lists mail with what became of it, newest first.",
    query: fields({
      ...pageQuery,
      person: Type.Optional(Type.String()),
      kind: Type.Optional(kind),
      state: Type.Optional(state),
    }),
    answer: pageOf(email),
    handle({ deps, environment, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      const step = (tx: Reader, part: PageRequest) => listEmails(tx, environment.id, part, filter);
      return readPage(deps.store, page, step, { large: true });
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/emails/:id",
    summary: "Shows one mail.",
    answer: Type.Object({ email }),
    async handle({ deps, environment, params }) {
      const environmentId = environment.id;
      return { email: await deps.store.read((tx) => requireEmailView(tx, environmentId, params.id)) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/emails/:id/send-again",
    summary:
      "Sends a mail again whose end is unknown, in the same words; its state says afterwards whether it was taken.",
    answer: Type.Object({ email }),
    async handle({ deps, environment, by, origin, params }) {
      const environmentId = environment.id;
      const hand = { environmentId, by, origin };
      const mail = await sendEmailAgain(handRooms(deps), hand, params.id, (tx, personId) =>
        requireActingPerson(tx, environmentId, personId),
      );
      return { email: mail };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/mail/test",
    summary: "Mails an owner a test of the mail settings; the mail's state and reason say how that ended.",
    body: fields({ to: Type.Optional(Type.String({ description: "an owner's e-mail address" })) }),
    answer: Type.Object({ email }),
    async handle({ deps, environment, actor, by, origin, body }) {
      const hand = { environmentId: environment.id, by, origin };
      const { appId } = environment;
      const to = body.to ?? (actor.kind === "owner" ? actor.email : undefined);
      return {
        email: await sendTestMail(handRooms(deps), hand, { appId, to, limits: deps.config.limits }),
      };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/sender-domain",
    summary: "Shows the domain mail is sent from, with the DNS record that verifies it.",
    answer: Type.Object({ senderDomain: orNull(senderDomain) }),
    async handle({ deps, environment }) {
      const row = await deps.store.read((tx) => findSenderDomain(tx, environment.id));
      return { senderDomain: row === null ? null : viewSenderDomain(row) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/sender-domain",
    summary: "Sets the domain mail is sent from and its words; another domain starts unverified.",
    body: fields({
      domain: Type.String({ description: "a domain such as example.com" }),
      eventWord: Type.Optional(Type.String()),
      accountWord: Type.Optional(Type.String()),
    }),
    answer: Type.Object({ senderDomain }),
    async handle({ deps, environment, by, origin, body, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const row = await deps.store.write(origin, (tx) => saveSenderDomain(tx, change, body));
      return { senderDomain: viewSenderDomain(row) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/sender-domain/verify",
    summary: "Looks the domain's DNS record up now and remembers what it found.",
    answer: Type.Object({ senderDomain, message: Type.String() }),
    async handle({ deps, environment, by }) {
      const change = { environmentId: environment.id, by };
      const { domain, message } = await verifySenderDomain(deps.store, deps, change);
      return { senderDomain: viewSenderDomain(domain), message };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/sender-domain",
    summary: "Removes the domain, so that mail stops leaving.",
    answer: null,
    async handle({ deps, environment, by, origin, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      await deps.store.write(origin, (tx) => removeSenderDomain(tx, change));
      return undefined;
    },
  }),
];
