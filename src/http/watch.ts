/** What the house noticed: the audit, standing problems, alerts, and recent calls to receivers that became no event. Lists alone. */
import { Type } from "typebox";
import { type PageRequest, readPageRequest } from "../ground/page.ts";
import { fields, oneOf, pageOf, pageQuery } from "../ground/schema.ts";
import { callOutcome, listRecentCalls, recentCallView } from "../receiver/call.ts";
import type { Reader } from "../store/port.ts";
import { readPage } from "../store/walk.ts";
import { alertView, listAlerts } from "../watch/alert.ts";
import { auditView, listAudit } from "../watch/audit.ts";
import { listProblems, problemView } from "../watch/problem.ts";
import { environmentRoute } from "./route.ts";

export const watchRoutes = [
  environmentRoute({
    method: "GET",
    path: "/audit",
    summary: "Lists management changes and runs, newest first, each with its actor, before and after.",
    query: fields({
      ...pageQuery,
      kind: Type.Optional(oneOf(["change", "run"])),
      target: Type.Optional(Type.String()),
      actor: Type.Optional(Type.String()),
      action: Type.Optional(Type.String()),
    }),
    answer: pageOf(auditView),
    async handle({ deps, environment, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      const step = (tx: Reader, part: PageRequest) => listAudit(tx, environment.id, filter, part);
      return await readPage(deps.store, page, step, { large: true });
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/problems",
    summary: "Lists the problems that stand now, newest first; with all=true the cleared ones too.",
    query: fields({ ...pageQuery, all: Type.Optional(oneOf(["true", "false"])) }),
    answer: pageOf(problemView),
    async handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      const standing = query.all !== "true";
      return await deps.store.read((tx) => listProblems(tx, environment.id, standing, page));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/alerts",
    summary: "Lists the alerts the owner was told of, newest first; a burst is one alert with a count.",
    query: fields(pageQuery),
    answer: pageOf(alertView),
    async handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return await deps.store.read((tx) => listAlerts(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/calls",
    summary:
      "Lists the last 1,000 receiver calls that were refused, ignored or duplicates, newest first, with the cause.",
    query: fields({ ...pageQuery, relay: Type.Optional(Type.String()), outcome: Type.Optional(callOutcome) }),
    answer: pageOf(recentCallView),
    async handle({ deps, environment, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      await deps.receiver.writeRecentCalls();
      return await deps.store.read((tx) => listRecentCalls(tx, environment.id, filter, page));
    },
  }),
];
