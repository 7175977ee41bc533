/** Bulk replays: planning, starting, reading the progress of and stopping one. */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { fields, readTime } from "../../base/schema.ts";
import { type BulkFilter, bulkFilter, countMatches } from "../../engine/event/bulk-choice.ts";
import { bulkPlan, planBulkReplay } from "../../engine/event/bulk-plan.ts";
import {
  beginBulkReplay,
  bulkReplayView,
  DEFAULT_PER_SECOND,
  listBulkReplays,
  MAX_PER_SECOND,
  requireBulkReplay,
  stopBulkReplay,
} from "../../engine/event/bulk-replay.ts";
import { resolveNames } from "../../engine/event/filter-lookup.ts";
import type { Store } from "../../store/port.ts";
import { environmentRoute, listRoute } from "../http/route.ts";

/** The filter as the caller sends it: a person by address or id, and times in the format of other lists. */
const asked = {
  ...bulkFilter,
  // The stored filter has the name as the caller sent it, so its length is bounded here.
  relay: Type.Optional(Type.String({ maxLength: 200, description: "a relay's name" })),
  person: Type.Optional(Type.String({ description: "a person's id, address or token" })),
  since: Type.Optional(Type.String()),
  until: Type.Optional(Type.String()),
};
const askedBody = fields(asked);

async function readFilter(
  store: Store,
  environmentId: number,
  { state, relay, trigger, reason, since, until, ...named }: Static<typeof askedBody>,
): Promise<BulkFilter> {
  const [sinceMs, untilMs] = [readTime("since", since), readTime("until", until)];
  const { person } = await resolveNames(store, environmentId, { relay, ...named });
  return {
    state,
    ...(relay === undefined ? {} : { relay }),
    ...(trigger === undefined ? {} : { trigger }),
    ...(reason === undefined ? {} : { reason }),
    ...(person === undefined ? {} : { person }),
    ...(sinceMs === undefined ? {} : { since: toIso(sinceMs) }),
    ...(untilMs === undefined ? {} : { until: toIso(untilMs) }),
  };
}

export const bulkReplayRoutes = [
  environmentRoute({
    method: "POST",
    path: "/bulk-replays/plan",
    needs: "read",
    summary:
      "Shows what a bulk replay of a filter's events would do: how many match, what each action would do, and which events are left out.",
    body: askedBody,
    answer: Type.Object({ plan: bulkPlan }),
    async handle({ deps: { store }, environmentId, body }) {
      return {
        plan: await planBulkReplay(store, environmentId, await readFilter(store, environmentId, body)),
      };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/bulk-replays",
    needs: "replay",
    summary:
      "Starts a replay of all failed or dead events of a filter, oldest first. For done events, it replays those whose work was for another person.",
    body: fields({
      ...asked,
      move: Type.Optional(
        Type.Boolean({
          description:
            "also does work again that was done for a person other than the event's person now, and moves purchases; always true for done events",
        }),
      ),
      perSecond: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_PER_SECOND,
          description: `the most events to replay each second, from 1 to ${MAX_PER_SECOND}`,
        }),
      ),
    }),
    answer: Type.Object({ replay: bulkReplayView }),
    status: 202,
    async handle({
      deps: { store },
      environmentId,
      change,
      body: { perSecond = DEFAULT_PER_SECOND, move = false, ...wanted },
    }) {
      const filter = await readFilter(store, environmentId, wanted);
      const counted = await countMatches(store, environmentId, filter);
      const replay = await store.write("dashboard", (tx) =>
        beginBulkReplay(tx, { ...change, filter, perSecond, move, ...counted }),
      );
      return { replay };
    },
  }),
  listRoute({
    path: "/bulk-replays",
    needs: "read",
    summary: "Lists the bulk replays of the last 90 days, newest first.",
    item: bulkReplayView,
    list: (tx, { environmentId }, page) => listBulkReplays(tx, environmentId, page),
  }),
  environmentRoute({
    method: "GET",
    path: "/bulk-replays/:id",
    needs: "read",
    summary: "Shows the progress of a bulk replay.",
    answer: Type.Object({ replay: bulkReplayView }),
    read: async (tx, { environmentId, params }) => ({
      replay: await requireBulkReplay(tx, environmentId, params.id),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/bulk-replays/:id/stop",
    needs: "replay",
    summary: "Stops a bulk replay. The events that it queued stay queued.",
    answer: Type.Object({ replay: bulkReplayView }),
    write: async (tx, { change, params }) => ({ replay: await stopBulkReplay(tx, params.id, change) }),
  }),
];
