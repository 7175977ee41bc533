/** The overview of an environment, and how many problems need attention in every environment. */
import { Type } from "typebox";
import { fields, readTime } from "../../base/schema.ts";
import { environmentSummaryView, listEnvironmentSummaries } from "../../insight/overview/environment-list.ts";
import type { OpenItemContext } from "../../insight/overview/open-item.ts";
import { overviewView, showOverview } from "../../insight/overview/overview.ts";
import { showUrlTimes, urlTimesView } from "../../insight/overview/url-time.ts";
import { findFailure, listCopies } from "../../operator/backup/copy-state.ts";
import { readBackupPlan } from "../../operator/backup/stored-schedule.ts";
import { docsOf } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute, ownerRoute } from "../http/route.ts";

/** Returns the backups that a server must have. Local development needs none, and other tools back up PostgreSQL. */
export async function backupsOf({ config, store }: HttpDeps): Promise<OpenItemContext["backups"]> {
  const { dataDir, database, mode } = config;
  if (mode !== "server" || database !== null) return null;
  return await store.read(async (tx) => {
    const plan = await readBackupPlan(tx, config);
    return { dataDir, backupEveryMs: plan?.everyMs ?? null, copyFailure: findFailure(await listCopies(tx)) };
  });
}

export const overviewRoutes = [
  environmentRoute({
    method: "GET",
    path: "/overview",
    needs: "read",
    summary:
      "Lists what needs attention, each item once with its cause and what to do, and summarizes the last 24 hours.",
    answer: overviewView,
    async handle({ deps, environment, request }) {
      const { store, clock, relays } = deps;
      const backups = await backupsOf(deps);
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
    needs: "read",
    summary:
      "Returns the response time of called URLs since a time, from the newest calls: the median and the 95th percentile.",
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
    needs: null,
    summary:
      "Returns the number of items that need attention for each app and environment of the member, and since when.",
    answer: Type.Object({ places: Type.Array(environmentSummaryView) }),
    handle: async ({ deps, owner }) => ({
      places: await listEnvironmentSummaries(deps.store, deps.clock, (environment) =>
        owner.permissionsIn(environment).has("read"),
      ),
    }),
  }),
];
