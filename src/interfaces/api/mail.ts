/**
 * Mail: the list (the mailbox in local development), manual resending, a test of the settings, and the sender domain. It also has the opt-out
 * from mail of kind event, by a page and a one-click URL in each such mail. Anyone with the URL can use them. Owners can see and undo opt-outs.
 * Opening the page changes nothing, because mail scanners open every URL. Source: RFC 8058.
 */
import { Type } from "typebox";
import { toIsoOrNull } from "../../base/clock.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, orNull, timeOrNull } from "../../base/schema.ts";
import type { Actor } from "../../platform/account/api-key.ts";
import { findApp } from "../../platform/account/app.ts";
import { findEnvironmentById } from "../../platform/account/environment.ts";
import {
  EMAIL_KINDS,
  EMAIL_STATES,
  emailView,
  listEmails,
  requireEmailView,
} from "../../platform/mail/email.ts";
import {
  findMailStop,
  listMailStops,
  MAIL_STOP_PATH,
  type MailStop,
  mailStopView,
  readStopToken,
  setMailStop,
} from "../../platform/mail/mail-stop.ts";
import { escapeHtml } from "../../platform/mail/mailer.ts";
import { type ManualMailDeps, sendEmailAgain, sendTestMail } from "../../platform/mail/manual-mail.ts";
import {
  findSenderDomain,
  removeSenderDomain,
  saveSenderDomain,
  senderDomainInput,
  senderDomainView,
  verifySenderDomain,
  viewSenderDomain,
} from "../../platform/mail/sender-domain.ts";
import { findPerson, readPersonId, requireActingPerson, requirePerson } from "../../shop/people/person.ts";
import type { Reader } from "../../store/port.ts";
import { PAGE_HEADERS } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute, listRoute, openRoute } from "../http/route.ts";

function handDeps({ store, clock, mailer, config }: HttpDeps): ManualMailDeps {
  return { store, clock, mailer, local: config.mode === "local" };
}

/** Maximum size of a one-click body, which has one short field. */
const MAX_CLICK_BYTES = 1024;

/** Returns the person whose mail the token stops, and the app's name. Refuses with `not_found`. */
async function requireStop(
  tx: Reader,
  deps: HttpDeps,
  token: string,
): Promise<{ stop: MailStop; app: string }> {
  const stop = readStopToken(deps.sealer, token);
  const environment = stop === null ? null : await findEnvironmentById(tx, stop.environmentId);
  if (
    stop !== null &&
    environment !== null &&
    (await findPerson(tx, stop.environmentId, stop.personId)) !== null
  )
    return { stop, app: (await findApp(tx, environment.appId))?.name ?? environment.appId };
  throw new Refusal(
    "not_found",
    "This link does not work: it is incomplete, or the person no longer exists here.",
  );
}

function answerPage(title: string, body: string): Response {
  const page = `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title></head>\n<body><main><h1>${escapeHtml(title)}</h1>\n${body}\n</main></body></html>\n`;
  const headers = {
    ...PAGE_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
  };
  return new Response(page, { headers });
}

const stopAnswer = Type.Object({ mailStop: Type.Object({ person: Type.String(), stoppedAt: timeOrNull }) });

async function showStop(tx: Reader, stop: MailStop) {
  return { mailStop: { person: stop.personId, stoppedAt: toIsoOrNull(await findMailStop(tx, stop)) } };
}

/** Returns the email address of the owner who calls, from the dashboard or with the key of a login. */
function ownerOf(actor: Actor): string | undefined {
  if (actor.kind === "owner") return actor.email;
  return actor.kind === "key" ? (actor.owner ?? undefined) : undefined;
}

export const mailRoutes = [
  listRoute({
    path: "/emails",
    needs: "read",
    summary: "Lists mail with its state, newest first.",
    filter: {
      person: Type.Optional(Type.String({ description: "a person's id, address or token" })),
      kind: Type.Optional(oneOf(EMAIL_KINDS)),
      state: Type.Optional(oneOf(EMAIL_STATES)),
    },
    item: emailView,
    large: true,
    async list(tx, { environmentId }, page, filter) {
      const person = await readPersonId(tx, environmentId, "person", filter.person);
      return await listEmails(tx, environmentId, page, { ...filter, person });
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/emails/:id",
    needs: "read",
    summary: "Shows one mail.",
    answer: Type.Object({ email: emailView }),
    read: async (tx, { environmentId, params }) => ({
      email: await requireEmailView(tx, environmentId, params.id),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/emails/:id/send-again",
    needs: "replay",
    summary:
      "Sends a mail with an unknown result again, with the same text. Its state then shows the result.",
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
    needs: "edit_settings",
    sensitive: false,
    summary:
      "Sends an owner a test mail with the current mail settings. The state and reason of the mail show the result.",
    body: fields({ to: Type.Optional(Type.String({ description: "an owner's email address" })) }),
    answer: Type.Object({ email: emailView }),
    async handle({ deps, environment, actor, by, origin, body }) {
      const hand = { environmentId: environment.id, by, origin };
      const { appId } = environment;
      const to = body.to ?? ownerOf(actor);
      return {
        email: await sendTestMail(handDeps(deps), hand, { appId, to, limits: deps.config.limits }),
      };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/sender-domain",
    needs: "read",
    summary: "Shows the sender domain, with the DNS record that verifies it.",
    answer: Type.Object({ senderDomain: orNull(senderDomainView) }),
    async read(tx, { environmentId }) {
      const row = await findSenderDomain(tx, environmentId);
      return { senderDomain: row === null ? null : viewSenderDomain(row) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/sender-domain",
    needs: "edit_settings",
    summary: "Sets the sender domain and its texts. Another domain starts unverified.",
    body: senderDomainInput,
    answer: Type.Object({ senderDomain: senderDomainView }),
    write: async (tx, { change, body }) => ({
      senderDomain: viewSenderDomain(await saveSenderDomain(tx, change, body)),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/sender-domain/verify",
    needs: "edit_settings",
    sensitive: false,
    summary: "Checks the domain's DNS record now and stores the result.",
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
    needs: "edit_settings",
    summary: "Removes the sender domain. Mail then stops.",
    answer: null,
    write: (tx, { change }) => removeSenderDomain(tx, change),
  }),
  openRoute({
    method: "GET",
    path: `${MAIL_STOP_PATH}:token`,
    summary: "Asks the recipient of a mail whether to stop such mail. Opening the page changes nothing.",
    answer: Type.String(),
    async handle({ deps, params }) {
      const { app } = await deps.store.read((tx) => requireStop(tx, deps, params.token));
      const ask = `<p>You will get no more mail about events from ${escapeHtml(app)}. You will still get mail about your account.</p>\n<form method="post"><button>Stop these mails</button></form>`;
      return answerPage(`Stop mail from ${app}?`, ask);
    },
  }),
  openRoute({
    method: "POST",
    path: `${MAIL_STOP_PATH}:token`,
    summary: "Stops mail of kind event to the recipient of the mail, in one click (RFC 8058).",
    rawBytes: MAX_CLICK_BYTES,
    answer: Type.String(),
    async handle({ deps, params, nowMs }) {
      const { app, stop } = await deps.store.read((tx) => requireStop(tx, deps, params.token));
      const { environmentId, personId } = stop;
      const change = { environmentId, by: `person:${personId}`, nowMs };
      await deps.store.write(
        "app",
        async (tx) => {
          await requireStop(tx, deps, params.token);
          await setMailStop(tx, change, { personId, stopped: true });
        },
        environmentId,
      );
      return answerPage("Stopped", `<p>You will get no more mail about events from ${escapeHtml(app)}.</p>`);
    },
  }),
  listRoute({
    path: "/mail/stops",
    needs: "read",
    summary: "Lists the people who stopped mail of kind event, newest first.",
    item: mailStopView,
    list: (tx, { environmentId }, page) => listMailStops(tx, environmentId, page),
  }),
  environmentRoute({
    method: "GET",
    path: "/persons/:id/mail-stop",
    needs: "read",
    summary: "Shows when a person stopped mail of kind event.",
    answer: stopAnswer,
    async read(tx, { environmentId, params }) {
      await requirePerson(tx, environmentId, params.id);
      return await showStop(tx, { environmentId, personId: params.id });
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/mail-stop",
    needs: "act_on_people",
    summary: "Stops mail of kind event to a person, or allows it again.",
    body: fields({ stopped: Type.Boolean() }),
    answer: stopAnswer,
    async write(tx, { environmentId, change, params, body }) {
      const stop = { environmentId, personId: params.id };
      await requirePerson(tx, environmentId, params.id);
      await setMailStop(tx, change, { personId: params.id, ...body });
      return await showStop(tx, stop);
    },
  }),
];
