/** Store account tokens of a person: filed by the app, so that a store's purchase finds its person. */
import { t } from "elysia";
import { fileToken, removeToken } from "../people/person-token.ts";
import { environmentRoute } from "./route.ts";
import { time } from "./schema.ts";

export const tokenRoutes = [
  environmentRoute({
    method: "PUT",
    path: "/persons/:id/tokens/:token",
    summary: "Files a store account token for a person; filing it again changes nothing.",
    answer: t.Object({ token: t.Object({ token: t.String(), createdAt: time }) }),
    async handle({ rooms, visit, params, nowMs }) {
      const filing = { environmentId: visit.environment.id, personId: params.id, token: params.token, nowMs };
      return { token: await rooms.store.write(visit.origin, (tx) => fileToken(tx, filing)) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/persons/:id/tokens/:token",
    summary: "Takes a person's store account token back.",
    answer: null,
    async handle({ rooms, visit, params }) {
      const filing = { environmentId: visit.environment.id, personId: params.id, token: params.token };
      await rooms.store.write(visit.origin, (tx) => removeToken(tx, filing));
      return undefined;
    },
  }),
];
