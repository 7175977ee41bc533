/** The overview of an environment, and how many problems need attention in every environment. */
import { Type } from "typebox";
import { fields, readTime } from "../../base/schema.ts";
import { environmentSummaryView, listEnvironmentSummaries } from "../../insight/overview/environment-list.ts";
import { type OverviewContext, overviewView, showOverview } from "../../insight/overview/overview.ts";
import { showUrlTimes, urlTimesView } from "../../insight/overview/url-time.ts";
import { docsOf } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute, ownerRoute } from "../http/route.ts";

/** Returns the backups that a server must have. Local development needs none, and other tools back up PostgreSQL. */
function backupsOf({ config: { dataDir, database, backup, mode } }: HttpDeps): OverviewContext["backups"] {
  if (mode !== "server" || database !== null) return null;
  return { dataDir, backupEveryMs: backup?.everyMs ?? null };
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
      const backups = backupsOf(deps);
      await deps.writeRecentRequests();
      const overview = await showOverview(store, { environment, backups, clock, relays });
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
      places: await listEnvironmentSummaries(deps.store, deps.clock),
    }),
  }),
];
