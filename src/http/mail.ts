/** Mail that was sent, or in local development kept: the mailbox; sending again by hand, a test of the settings, and the domain mail is sent from. */
import { Type } from "typebox";
import { type PageRequest, readPageRequest } from "../ground/page.ts";
import { fields, oneOf, orNull, pageOf, pageQuery } from "../ground/schema.ts";
import { EMAIL_KINDS, EMAIL_STATES, emailView, listEmails, requireEmailView } from "../mail/email.ts";
import { type HandMailDeps, sendEmailAgain, sendTestMail } from "../mail/hand-mail.ts";
import {
  findSenderDomain,
  removeSenderDomain,
  saveSenderDomain,
  senderDomainInput,
  senderDomainView,
  verifySenderDomain,
  viewSenderDomain,
} from "../mail/sender-domain.ts";
import { requireActingPerson } from "../people/person.ts";
import type { Reader } from "../store/port.ts";
import { readPage } from "../store/walk.ts";
import type { HttpDeps } from "./deps.ts";
import { environmentRoute } from "./route.ts";

function handDeps({ store, clock, mailer, config }: HttpDeps): HandMailDeps {
  return { store, clock, mailer, local: config.mode === "local" };
}

export const mailRoutes = [
  environmentRoute({
    method: "GET",
    path: "/emails",
    summary: "Lists mail with what became of it, newest first.",
    query: fields({
      ...pageQuery,
      person: Type.Optional(Type.String()),
      kind: Type.Optional(oneOf(EMAIL_KINDS)),
      state: Type.Optional(oneOf(EMAIL_STATES)),
    }),
    answer: pageOf(emailView),
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
    answer: Type.Object({ email: emailView }),
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
    answer: Type.Object({ email: emailView }),
    async handle({ deps, environment, by, origin, params }) {
      const environmentId = environment.id;
      const hand = { environmentId, by, origin };
      const mail = await sendEmailAgain(handDeps(deps), hand, params.id, (tx, personId) =>
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
    answer: Type.Object({ email: emailView }),
    async handle({ deps, environment, actor, by, origin, body }) {
      const hand = { environmentId: environment.id, by, origin };
      const { appId } = environment;
      const to = body.to ?? (actor.kind === "owner" ? actor.email : undefined);
      return {
        email: await sendTestMail(handDeps(deps), hand, { appId, to, limits: deps.config.limits }),
      };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/sender-domain",
    summary: "Shows the domain mail is sent from, with the DNS record that verifies it.",
    answer: Type.Object({ senderDomain: orNull(senderDomainView) }),
    async handle({ deps, environment }) {
      const row = await deps.store.read((tx) => findSenderDomain(tx, environment.id));
      return { senderDomain: row === null ? null : viewSenderDomain(row) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/sender-domain",
    summary: "Sets the domain mail is sent from and its words; another domain starts unverified.",
    body: senderDomainInput,
    answer: Type.Object({ senderDomain: senderDomainView }),
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
    answer: Type.Object({ senderDomain: senderDomainView, message: Type.String() }),
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
