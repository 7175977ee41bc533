/** Recent calls to the environment's receivers that became no event: refused, ignored, duplicate, each with its cause. A list alone. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, oneOf, orNull, pageOf, pageQuery, time } from "../ground/schema.ts";
import { CALL_OUTCOMES, listRecentCalls } from "../receiver/recent-call.ts";
import { environmentRoute } from "./route.ts";

const outcome = oneOf(CALL_OUTCOMES);

export const callRoutes = [
  environmentRoute({
    method: "GET",
    path: "/calls",
    summary:
      "Lists the last 1,000 receiver calls that were refused, ignored or duplicates, newest first, with the cause.",
    query: fields({ ...pageQuery, relay: Type.Optional(Type.String()), outcome: Type.Optional(outcome) }),
    answer: pageOf(
      Type.Object({
        id: Type.String(),
        at: time,
        relay: Type.String(),
        outcome,
        code: Type.String(),
        cause: Type.String(),
        source: Type.String(),
        eventId: orNull(Type.String()),
        count: Type.Integer(),
      }),
    ),
    async handle({ deps, environment, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      await deps.receiver.writeRecentCalls();
      return await deps.store.read((tx) => listRecentCalls(tx, environment.id, filter, page));
    },
  }),
];
