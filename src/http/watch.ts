/** What the house noticed: the audit, standing problems, alerts. Lists alone. */
import { Type } from "typebox";
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import { type PageRequest, readPageRequest } from "../ground/page.ts";
import { fields, json, oneOf, orNull, pageOf, pageQuery, time, timeOrNull } from "../ground/schema.ts";
import type { Reader } from "../store/port.ts";
import { readPage } from "../store/walk.ts";
import { listAlerts } from "../watch/alert.ts";
import { auditId, listAudit } from "../watch/audit.ts";
import { listProblems } from "../watch/problem.ts";
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
    answer: pageOf(
      Type.Object({
        id: Type.String(),
        at: time,
        actor: Type.String(),
        action: Type.String(),
        target: Type.String(),
        eventId: orNull(Type.String()),
        before: json,
        after: json,
      }),
    ),
    async handle({ deps, environment, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      const step = (tx: Reader, part: PageRequest) => listAudit(tx, environment.id, filter, part);
      const found = await readPage(deps.store, page, step, { large: true });
      const items = found.items.map(({ seq, at, ...row }) => ({
        id: auditId({ at, seq }),
        at: toIso(at),
        ...row,
      }));
      return { items, next: found.next };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/problems",
    summary: "Lists the problems that stand now, newest first; with all=true the cleared ones too.",
    query: fields({ ...pageQuery, all: Type.Optional(oneOf(["true", "false"])) }),
    answer: pageOf(
      Type.Object({
        id: Type.String(),
        code: Type.String(),
        target: Type.String(),
        message: Type.String(),
        raisedAt: time,
        clearedAt: timeOrNull,
      }),
    ),
    async handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      const standing = query.all !== "true";
      const found = await deps.store.read((tx) => listProblems(tx, environment.id, standing, page));
      const items = found.items.map(({ raisedAt, clearedAt, ...row }) => ({
        ...row,
        raisedAt: toIso(raisedAt),
        clearedAt: toIsoOrNull(clearedAt),
      }));
      return { items, next: found.next };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/alerts",
    summary: "Lists the alerts the owner was told of, newest first; a burst is one alert with a count.",
    query: fields(pageQuery),
    answer: pageOf(
      Type.Object({
        id: Type.String(),
        code: Type.String(),
        target: Type.String(),
        message: Type.String(),
        count: Type.Integer(),
        at: time,
        lastAt: time,
        mailedAt: timeOrNull,
      }),
    ),
    async handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      const found = await deps.store.read((tx) => listAlerts(tx, environment.id, page));
      const items = found.items.map(({ at, lastAt, mailedAt, ...row }) => ({
        ...row,
        at: toIso(at),
        lastAt: toIso(lastAt),
        mailedAt: toIsoOrNull(mailedAt),
      }));
      return { items, next: found.next };
    },
  }),
];
