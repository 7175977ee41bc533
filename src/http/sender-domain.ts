/** The domain mail is sent from: setting it, checking its DNS record, removing it. */
import { Type } from "typebox";
import { fields, orNull, timeOrNull } from "../ground/schema.ts";
import {
  findSenderDomain,
  removeSenderDomain,
  saveSenderDomain,
  verifySenderDomain,
  viewSenderDomain,
} from "../mail/sender-domain.ts";
import { environmentRoute } from "./route.ts";

export const senderDomain = Type.Object({
  domain: Type.String(),
  verified: Type.Boolean(),
  verifiedAt: timeOrNull,
  checkedAt: timeOrNull,
  eventWord: Type.String(),
  accountWord: Type.String(),
  record: Type.Object({ type: Type.Literal("TXT"), name: Type.String(), value: Type.String() }),
});

export const senderDomainRoutes = [
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
