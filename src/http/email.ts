/** Mail that was sent, or in local development kept: the mailbox. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { listEmails, requireEmailView } from "../mail/email.ts";
import { environmentRoute } from "./route.ts";
import { fields, oneOf, orNull, pageOf, pageQuery, time, timeOrNull } from "./schema.ts";

const kind = oneOf(["event", "account", "alert", "signin"]);
const state = oneOf(["intended", "sent", "failed", "mailbox", "unknown"]);

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
  relay: orNull(Type.String()),
  eventId: orNull(Type.String()),
  createdAt: time,
  finishedAt: timeOrNull,
});

export const emailRoutes = [
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
    handle({ rooms, visit, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      return rooms.store.read((tx) => listEmails(tx, visit.environment.id, page, filter));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/emails/:id",
    summary: "Shows one mail.",
    answer: Type.Object({ email }),
    async handle({ rooms, visit, params }) {
      const environmentId = visit.environment.id;
      return { email: await rooms.store.read((tx) => requireEmailView(tx, environmentId, params.id)) };
    },
  }),
];
