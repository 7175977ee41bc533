/** Routes of events: the list, one event with its runs, the plan of a replay, the replay, an immediate retry, and expunging. */
import { type Static, Type } from "typebox";
import { isId } from "../../base/id.ts";
import { MAX_ACTIONS_PER_RELAY } from "../../base/limit.ts";
import { readPageRequest } from "../../base/page.ts";
import { fields, oneOf, orNull, pageOf, pageQuery, readTime } from "../../base/schema.ts";
import { countEvents, eventCounts } from "../../engine/event/count.ts";
import { EVENT_STATES, EVENT_TRIGGERS } from "../../engine/event/event.ts";
import { expungeManually } from "../../engine/event/expunge.ts";
import { resolveNames } from "../../engine/event/filter-lookup.ts";
import { BAR_WIDTHS, drawHistogram, histogramView } from "../../engine/event/histogram.ts";
import { readEvents } from "../../engine/event/list.ts";
import { planReplay, replayEvent } from "../../engine/event/replay.ts";
import { replayPlan } from "../../engine/event/replay-plan.ts";
import { retryEventNow } from "../../engine/event/retry-now.ts";
import { type EventView, eventItem, eventView, requireEventView } from "../../engine/event/view.ts";
import { evaluateEventCause, eventCauseView } from "../../insight/overview/failure-cause.ts";
import { findPersonByEmail } from "../../shop/people/person.ts";
import { docsOf } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { requirePayloads } from "../http/payload-mask.ts";
import { type EnvironmentCall, environmentRoute } from "../http/route.ts";

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

/** The filters of the list, except the state. */
const eventFilter = {
  relay: Type.Optional(
    Type.String({ maxLength: 63, description: "the name of a relay that exists or was deleted" }),
  ),
  trigger: Type.Optional(oneOf(EVENT_TRIGGERS)),
  reason: Type.Optional(
    Type.String({
      maxLength: 100,
      description: "the code of the last failure, also for events that wait for a retry; any: any code",
    }),
  ),
  person: Type.Optional(Type.String({ description: "a person's id, address or token" })),
  since: Type.Optional(Type.String()),
  until: Type.Optional(Type.String()),
  q: Type.Optional(Type.String({ maxLength: 200, description: "text of at most 200 characters" })),
  mapped: Type.Optional(
    Type.String({
      maxLength: 270,
      description: "a mapped name and the start of its value, such as order:cs_live",
    }),
  ),
};
const eventFilterFields = Type.Object(eventFilter);

type FilterCall = Pick<EnvironmentCall, "environmentId" | "may"> & { deps: HttpDeps };

/**
 * Reads the filter. A search in payloads would tell their values, so it needs the permission to see them. The address of a person is visible to
 * everyone, so a search for it also finds events that name it and did not find the person.
 */
async function readFilter<Asked extends Static<typeof eventFilterFields>>(
  call: FilterCall,
  { since, until, ...asked }: Asked,
) {
  const { q = "", mapped } = asked;
  const { environmentId, deps } = call;
  const isOfPerson = (): Promise<boolean> =>
    deps.store.read(async (tx) => (await findPersonByEmail(tx, environmentId, q)) !== null);
  if (q !== "" && !isId("evt", q) && !(await isOfPerson())) requirePayloads(call, "A search in payloads (q)");
  if (mapped !== undefined) requirePayloads(call, "A search in mapped values (mapped)");
  const between = { sinceMs: readTime("since", since), untilMs: readTime("until", until) };
  return { ...(await resolveNames(deps.store, environmentId, asked)), ...between };
}

export const eventRoutes = [
  environmentRoute({
    method: "GET",
    path: "/events",
    needs: "read",
    summary:
      "Lists events without their payloads, newest first, each with its mapped event_type and a line of its first mapped values.",
    query: fields({ ...pageQuery, ...eventFilter, state: Type.Optional(oneOf(EVENT_STATES)) }),
    answer: pageOf(eventItem),
    async handle(call) {
      const { deps, environmentId } = call;
      const { limit, cursor, ...asked } = call.query;
      const filter = await readFilter(call, asked);
      return await readEvents(deps.store, environmentId, filter, readPageRequest({ limit, cursor }));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/events/counts",
    needs: "read",
    summary: "Counts the events that match a filter by state, up to 10,000 for each state.",
    query: fields(eventFilter),
    answer: Type.Object({ counts: eventCounts }),
    async handle(call) {
      const filter = await readFilter(call, call.query);
      return { counts: await countEvents(call.deps.store, call.environmentId, filter) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/events/histogram",
    needs: "read",
    summary:
      "Counts the events that match a filter over time, by current state. Large numbers are estimated from samples.",
    query: fields({
      ...eventFilter,
      state: Type.Optional(oneOf(EVENT_STATES)),
      every: Type.Optional(oneOf(BAR_WIDTHS)),
    }),
    answer: Type.Object({ histogram: histogramView }),
    async handle(call) {
      const { deps, environmentId, nowMs } = call;
      const { every, ...asked } = call.query;
      const filter = await readFilter(call, asked);
      return { histogram: await drawHistogram(deps.store, environmentId, { ...filter, every }, nowMs) };
    },
  }),
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
