/** The overview of an environment, and how many problems need attention in every environment. */
import { Type } from "typebox";
import { fields, readTime } from "../../base/schema.ts";
import type { AttentionContext } from "../../insight/overview/attention.ts";
import { environmentSummaryView, listEnvironmentSummaries } from "../../insight/overview/environment-list.ts";
import { overviewView, showOverview } from "../../insight/overview/overview.ts";
import { showUrlTimes, urlTimesView } from "../../insight/overview/url-time.ts";
import { docsOf } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { type EnvironmentCall, environmentRoute, ownerRoute } from "../http/route.ts";

function serverOf({ config }: HttpDeps) {
  const { dataDir, database, backup, mode } = config;
  return { dataDir, backupEveryMs: backup?.everyMs ?? null, backsUp: mode === "server" && database === null };
}

/** Returns what is needed to list the problems of the environment. */
export function needContext(deps: HttpDeps, environment: EnvironmentCall["environment"]): AttentionContext {
  return { environment, server: serverOf(deps), clock: deps.clock };
}

export const overviewRoutes = [
  environmentRoute({
    method: "GET",
    path: "/overview",
    summary:
      "Tells what needs somebody, each thing once with its cause and the way out, and how the last 24 hours went.",
    answer: overviewView,
    async handle({ deps, environment, request }) {
      const { store, clock, relays } = deps;
      await deps.writeRecentRequests();
      const overview = await showOverview(store, { environment, server: serverOf(deps), clock, relays });
      const needs = overview.needs.map((need) => {
        const docs = docsOf(deps, request, need.code);
        return docs === null ? need : { ...need, docs };
      });
      return { ...overview, needs };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/url-times",
    summary:
      "Tells how long called URLs took since a time, as the newest calls were measured: half, and 95 in a hundred.",
    query: fields({ since: Type.Optional(Type.String()) }),
    answer: Type.Object({ urls: urlTimesView }),
    async handle({ deps: { store, relays }, environmentId, query }) {
      const sinceMs = readTime("since", query.since) ?? 0;
      return { urls: await showUrlTimes(store, { environmentId, relays, sinceMs }) };
    },
  }),
  ownerRoute({
    method: "GET",
    path: "/api/overview",
    summary: "Tells of every app and environment how many things need somebody, and since when.",
    answer: Type.Object({ places: Type.Array(environmentSummaryView) }),
    handle: async ({ deps }) => ({
      places: await listEnvironmentSummaries(deps.store, { server: serverOf(deps), clock: deps.clock }),
    }),
  }),
];
