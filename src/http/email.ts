/** Mail that was sent, or in local development kept: the mailbox. */
import { t } from "elysia";
import { readPageRequest } from "../ground/page.ts";
import { listEmails, requireEmailView } from "../mail/email.ts";
import { environmentRoute } from "./route.ts";
import { fields, oneOf, orNull, pageOf, pageQuery, time, timeOrNull } from "./schema.ts";

const kind = oneOf(["event", "account", "alert", "signin"]);
const state = oneOf(["intended", "sent", "failed", "mailbox", "unknown"]);

const email = t.Object({
  id: t.String(),
  person: orNull(t.String()),
  to: t.String(),
  from: t.String(),
  kind,
  subject: t.String(),
  text: t.String(),
  state,
  message: orNull(t.String()),
  relay: orNull(t.String()),
  eventId: orNull(t.String()),
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
      person: t.Optional(t.String()),
      kind: t.Optional(kind),
      state: t.Optional(state),
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
    answer: t.Object({ email }),
    async handle({ rooms, visit, params }) {
      const environmentId = visit.environment.id;
      return { email: await rooms.store.read((tx) => requireEmailView(tx, environmentId, params.id)) };
    },
  }),
];
