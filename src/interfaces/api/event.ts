/** Routes of one event: its runs, its cause, the plan of a replay, the replay, an immediate retry, and expunging. */
import { Type } from "typebox";
import { MAX_ACTIONS_PER_RELAY } from "../../base/limit.ts";
import { fields, orNull } from "../../base/schema.ts";
import { expungeManually } from "../../engine/event/expunge.ts";
import { planReplay, replayEvent } from "../../engine/event/replay.ts";
import { replayPlan } from "../../engine/event/replay-plan.ts";
import { retryEventNow } from "../../engine/event/retry-now.ts";
import { type EventView, eventView, requireEventView } from "../../engine/event/view.ts";
import { evaluateEventCause, eventCauseView } from "../../insight/overview/failure-cause.ts";
import { docsOf } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute } from "../http/route.ts";

/** Returns the event for a caller. Each result with a code gets the page that explains it, for callers who may see documentation links. */
function showEvent({ deps, request }: { deps: HttpDeps; request: Request }, event: EventView): EventView {
  const runs = event.runs.map((run) => {
    const results = run.results.map((result) => {
      const docs = result.code === undefined ? null : docsOf(deps, request, result.code);
      return docs === null ? result : { ...result, docs };
    });
    return { ...run, results };
  });
  return { ...event, runs };
}

export const eventRoutes = [
  environmentRoute({
    method: "GET",
    path: "/events/:id",
    needs: "read",
    summary: "Shows one event with its payload and what each action of each attempt did.",
    answer: Type.Object({ event: eventView }),
    read: async (tx, call) => ({
      event: showEvent(call, await requireEventView(tx, call.environmentId, call.params.id)),
    }),
  }),
  environmentRoute({
    method: "GET",
    path: "/events/:id/cause",
    needs: "read",
    summary:
      "Shows whether the cause of a failed or dead event still exists, judged by later runs, and what changed shortly before. The value is null for every other event.",
    answer: Type.Object({ cause: orNull(eventCauseView) }),
    read: async (tx, { environmentId, params }) => ({
      cause: await evaluateEventCause(tx, environmentId, params.id),
    }),
  }),
  environmentRoute({
    method: "GET",
    path: "/events/:id/replay",
    needs: "read",
    summary:
      "Shows what a replay of an ended event would do with each action of the relay's current definition.",
    answer: Type.Object({ plan: replayPlan }),
    read: async (tx, { environmentId, params }) => ({
      plan: await planReplay(tx, { environmentId, id: params.id }),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/events/:id/replay",
    needs: "replay",
    summary:
      "Queues an ended event again and resets its attempts. run lists actions to run again although their work is done: they were edited, or did it for another person.",
    body: fields({
      run: Type.Optional(
        Type.Array(Type.Integer({ minimum: 0 }), {
          maxItems: MAX_ACTIONS_PER_RELAY,
          description: "a list of action indexes that the plan offers",
        }),
      ),
      version: Type.Optional(Type.Integer({ description: "the relay's version in the plan" })),
    }),
    answer: Type.Object({ event: eventView }),
    status: 202,
    async write(tx, call) {
      const { environmentId, by, params, body, nowMs } = call;
      const { run, version } = body;
      await replayEvent(tx, { environmentId, id: params.id, actor: by, nowMs, run, version });
      return { event: showEvent(call, await requireEventView(tx, environmentId, params.id)) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/events/:id/retry",
    needs: "replay",
    summary:
      "Retries a waiting event now. The attempt counts like any other. To run an ended event, replay it.",
    answer: Type.Object({ event: eventView }),
    status: 202,
    async write(tx, call) {
      const { environmentId, by, params, nowMs } = call;
      await retryEventNow(tx, { environmentId, id: params.id, actor: by, nowMs });
      return { event: showEvent(call, await requireEventView(tx, environmentId, params.id)) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/events/:id/expunge",
    needs: "erase",
    summary:
      "Permanently deletes the payload of an event and what its results quote from it. The event never runs again; a waiting event becomes failed.",
    answer: Type.Object({ event: eventView }),
    async handle(call) {
      const { deps, environment, by, params, nowMs } = call;
      const environmentId = environment.id;
      await expungeManually(deps.store, { environmentId, id: params.id, actor: by, nowMs });
      const expunged = await deps.store.read((tx) => requireEventView(tx, environmentId, params.id));
      return { event: showEvent(call, expunged) };
    },
  }),
];
