/** The domain mail is sent from: setting it, checking its DNS record, removing it. */
import { t } from "elysia";
import {
  findSenderDomain,
  removeSenderDomain,
  saveSenderDomain,
  verifySenderDomain,
  viewSenderDomain,
} from "../mail/sender-domain.ts";
import { environmentRoute } from "./route.ts";
import { fields, orNull, timeOrNull } from "./schema.ts";

export const senderDomain = t.Object({
  domain: t.String(),
  verified: t.Boolean(),
  verifiedAt: timeOrNull,
  checkedAt: timeOrNull,
  eventWord: t.String(),
  accountWord: t.String(),
  record: t.Object({ type: t.Literal("TXT"), name: t.String(), value: t.String() }),
});

export const senderDomainRoutes = [
  environmentRoute({
    method: "GET",
    path: "/sender-domain",
    summary: "Shows the domain mail is sent from, with the DNS record that verifies it.",
    answer: t.Object({ senderDomain: orNull(senderDomain) }),
    async handle({ rooms, visit }) {
      const row = await rooms.store.read((tx) => findSenderDomain(tx, visit.environment.id));
      return { senderDomain: row === null ? null : viewSenderDomain(row) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/sender-domain",
    summary: "Sets the domain mail is sent from and its words; another domain starts unverified.",
    body: fields({
      domain: t.String({ description: "a domain such as example.com" }),
      eventWord: t.Optional(t.String()),
      accountWord: t.Optional(t.String()),
    }),
    answer: t.Object({ senderDomain }),
    async handle({ rooms, visit, body, nowMs }) {
      const change = { environmentId: visit.environment.id, by: visit.by, nowMs };
      const row = await rooms.store.write(visit.origin, (tx) => saveSenderDomain(tx, change, body));
      return { senderDomain: viewSenderDomain(row) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/sender-domain/verify",
    summary: "Looks the domain's DNS record up now and remembers what it found.",
    answer: t.Object({ senderDomain, message: t.String() }),
    async handle({ rooms, visit }) {
      const change = { environmentId: visit.environment.id, by: visit.by };
      const { domain, message } = await verifySenderDomain(rooms.store, rooms, change);
      return { senderDomain: viewSenderDomain(domain), message };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/sender-domain",
    summary: "Removes the domain, so that mail stops leaving.",
    answer: null,
    async handle({ rooms, visit, nowMs }) {
      const change = { environmentId: visit.environment.id, by: visit.by, nowMs };
      await rooms.store.write(visit.origin, (tx) => removeSenderDomain(tx, change));
      return undefined;
    },
  }),
];
