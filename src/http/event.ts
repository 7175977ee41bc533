/** Events: the list, one with its runs, and replay. */
import { Type } from "typebox";
import { listEvents } from "../event/event-list.ts";
import { type EventView, requireEventView } from "../event/event-view.ts";
import { expungeByHand } from "../event/expunge.ts";
import { planReplay, replayEvent } from "../event/replay.ts";
import { isJsonObject } from "../ground/json.ts";
import { MAX_ACTIONS_PER_RELAY } from "../ground/limit.ts";
import { readPageRequest } from "../ground/page.ts";
import {
  fields,
  json,
  oneOf,
  orNull,
  pageOf,
  pageQuery,
  readTime,
  time,
  timeOrNull,
} from "../ground/schema.ts";
import { readPage } from "../store/walk.ts";
import { docsOf } from "./answer.ts";
import type { HttpDeps } from "./deps.ts";
import { environmentRoute } from "./route.ts";

const state = oneOf(["queued", "running", "done", "failed", "dead"]);
const trigger = oneOf(["receiver", "schedule", "data_change"]);
const person = orNull(Type.Object({ id: Type.String(), email: orNull(Type.String()) }));

const summary = {
  id: Type.String(),
  relay: Type.Object({ id: Type.String(), name: Type.String() }),
  trigger,
  state,
  reason: orNull(Type.String()),
  attempts: Type.Integer(),
  nextAttemptAt: timeOrNull,
  person,
  truncated: Type.Boolean(),
  createdAt: time,
  finishedAt: timeOrNull,
};

const run = Type.Object({
  attempt: Type.Integer(),
  startedAt: time,
  finishedAt: timeOrNull,
  outcome: orNull(oneOf(["ok", "failed", "interrupted"])),
  results: json,
});

const event = Type.Object({
  ...summary,
  replays: Type.Integer(),
  mapVersion: orNull(Type.Integer()),
  mappedAgain: Type.Boolean(),
  payload: json,
  expunged: orNull(oneOf(["person_erased", "payload_expunged"])),
  preview: orNull(Type.String()),
  unsigned: Type.Boolean(),
  warnings: json,
  runs: Type.Array(run),
  runsLeftOut: Type.Integer(),
});

const plan = Type.Object({
  relay: orNull(Type.Object({ id: Type.String(), name: Type.String(), version: Type.Integer() })),
  stop: orNull(Type.String()),
  actions: Type.Array(
    Type.Object({
      index: Type.Integer(),
      type: Type.String(),
      will: oneOf(["run", "skip", "again", "edited", "settle"]),
      mayChoose: Type.Boolean(),
      doneAt: timeOrNull,
      message: Type.String(),
      action: json,
      was: Type.Optional(json),
    }),
  ),
});

/** The event as a caller is shown it: each result with a code has the page that explains it, where the caller is one who is told of pages. */
function showEvent({ deps, request }: { deps: HttpDeps; request: Request }, event: EventView): EventView {
  const runs = event.runs.map((run) => {
    const results = Array.isArray(run.results) ? run.results : [];
    const shown = results.map((result) => {
      const code = isJsonObject(result) ? result.code : undefined;
      const docs = typeof code === "string" ? docsOf(deps, request, code) : null;
      return docs === null || !isJsonObject(result) ? result : { ...result, docs };
    });
    return { ...run, results: shown };
  });
  return { ...event, runs };
}

export const eventRoutes = [
  environmentRoute({
    method: "GET",
    path: "/events",
    summary: "Lists events without their payloads, newest first.",
    query: fields({
      ...pageQuery,
      relay: Type.Optional(Type.String()),
      state: Type.Optional(state),
      trigger: Type.Optional(trigger),
      person: Type.Optional(Type.String()),
      since: Type.Optional(Type.String()),
      until: Type.Optional(Type.String()),
      q: Type.Optional(Type.String({ maxLength: 200, description: "text of at most 200 characters" })),
    }),
    answer: pageOf(Type.Object({ ...summary, warnings: Type.Integer() })),
    handle({ deps, environment, query }) {
      const { limit, cursor, since, until, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      const wanted = { ...filter, sinceMs: readTime("since", since), untilMs: readTime("until", until) };
      return readPage(deps.store, page, (tx, part) => listEvents(tx, environment.id, wanted, part));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/events/:id",
    summary: "Shows one event with its payload and what each action of each attempt did.",
    answer: Type.Object({ event }),
    async handle(call) {
      const { deps, environment, params } = call;
      const found = await deps.store.read((tx) => requireEventView(tx, environment.id, params.id));
      return { event: showEvent(call, found) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/events/:id/replay",
    summary:
      "Says what a replay of a finished event would do with each action of its relay's present definition.",
    answer: Type.Object({ plan }),
    async handle({ deps, environment, params }) {
      const event = { environmentId: environment.id, id: params.id };
      return { plan: await deps.store.read((tx) => planReplay(tx, event)) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/events/:id/replay",
    summary:
      "Queues a finished event again with its attempts reset; run names actions that were edited after their work and run all the same.",
    body: fields({
      run: Type.Optional(
        Type.Array(Type.Integer({ minimum: 0 }), {
          maxItems: MAX_ACTIONS_PER_RELAY,
          description: "a list of indexes that the plan lets you choose",
        }),
      ),
      version: Type.Optional(Type.Integer({ description: "the relay's version of the plan" })),
    }),
    answer: Type.Object({ event }),
    status: 202,
    async handle(call) {
      const { deps, environment, by, origin, params, body, nowMs } = call;
      const environmentId = environment.id;
      const { run, version } = body;
      const replayed = await deps.store.write(origin, async (tx) => {
        await replayEvent(tx, { environmentId, id: params.id, actor: by, nowMs, run, version });
        return await requireEventView(tx, environmentId, params.id);
      });
      return { event: showEvent(call, replayed) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/events/:id/expunge",
    summary:
      "Takes the payload and what results quote out of an event for good, audited; it never runs again, and one that waits ends failed.",
    answer: Type.Object({ event }),
    async handle(call) {
      const { deps, environment, by, params, nowMs } = call;
      const environmentId = environment.id;
      await expungeByHand(deps.store, { environmentId, id: params.id, actor: by, nowMs });
      const expunged = await deps.store.read((tx) => requireEventView(tx, environmentId, params.id));
      return { event: showEvent(call, expunged) };
    },
  }),
];
