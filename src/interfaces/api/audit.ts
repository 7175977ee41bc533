/** The audit, standing problems, alerts, and recent requests to receivers that became no event. */
import { Type } from "typebox";
import { findMeaning } from "../../base/code/code.ts";
import { type Page, readPageRequest } from "../../base/page.ts";
import { exactText, fields, oneOf, orNull, pageOf, pageQuery, readTime } from "../../base/schema.ts";
import {
  addFirstEvents,
  countRecentRequests,
  listRecentRequests,
  REQUEST_OUTCOMES,
  recentRequestView,
  requestCountsView,
  requireRecentRequest,
} from "../../engine/receiver/request.ts";
import { listUnknownRequests, unknownRequestView } from "../../engine/receiver/unknown-request.ts";
import { listAllProblems } from "../../insight/overview/problem-list.ts";
import { alertView, listAlerts, resolveAlert } from "../../platform/audit/alert.ts";
import { auditFilter, auditView, listAudit } from "../../platform/audit/audit.ts";
import { type ProblemView, problemView } from "../../platform/audit/problem.ts";
import { addFigures } from "../../rules/relay/streak-figure.ts";
import { listHints } from "../../rules/relay/trouble-hint.ts";
import type { Reader } from "../../store/port.ts";
import { docsOf } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute, listRoute } from "../http/route.ts";
import { meaningView } from "./docs.ts";
import { backupsOf } from "./overview.ts";

/** A name in a called URL, whether or not a relay has it. */
const calledName = exactText(63, "the name in the called URL");

/** Adds to each item the page that explains its code, for callers who may see documentation links. */
function withDocs<Item extends { code: string }>(
  { deps, request }: { deps: HttpDeps; request: Request },
  { items, next }: Page<Item>,
): Page<Item & { docs?: string }> {
  const addDocs = (item: Item) => {
    const docs = docsOf(deps, request, item.code);
    return docs === null ? item : { ...item, docs };
  };
  return { items: items.map(addDocs), next };
}

/** Adds the hints and the present figures to the open items. `beganAt` returns when an item began, and null for one that is over. */
async function withHints<Item extends { code: string; target: string; message: string }>(
  tx: Reader,
  { environmentId, nowMs }: { environmentId: number; nowMs: number },
  { items, next }: Page<Item>,
  beganAt: (item: Item) => string | null,
): Promise<Page<Item & { hints?: string[] }>> {
  const open = items.flatMap((item) => {
    const since = beganAt(item);
    return since === null ? [] : [{ item, code: item.code, target: item.target, sinceMs: Date.parse(since) }];
  });
  const hints = await listHints(tx, environmentId, open);
  const described = new Map<Item, { hints: string[]; message: string }>();
  for (const [at, { item }] of open.entries()) {
    const message = await addFigures(tx, environmentId, item, nowMs);
    described.set(item, { hints: hints[at] ?? [], message });
  }
  return { items: items.map((item) => ({ ...item, hints: [], ...described.get(item) })), next };
}

export const watchRoutes = [
  listRoute({
    path: "/audit",
    needs: "read",
    summary: "Lists management changes and runs, newest first, each with its actor, before and after.",
    filter: { kind: Type.Optional(oneOf(["change", "run"])), ...auditFilter },
    item: auditView,
    large: true,
    list: (tx, { environmentId }, page, filter) => listAudit(tx, environmentId, filter, page),
  }),
  environmentRoute({
    method: "GET",
    path: "/problems",
    needs: "read",
    summary:
      "Lists the current problems, newest first, with all that Home shows, such as a hold and dead events. With all=true, also the cleared problems.",
    query: fields({ ...pageQuery, all: Type.Optional(oneOf(["true", "false"])) }),
    answer: pageOf(problemView),
    async handle({ deps, request, environment, environmentId, nowMs, query: { all, ...asked } }) {
      const { store, clock } = deps;
      const backups = await backupsOf(deps);
      const context = { environment, backups, clock };
      const page = await listAllProblems(store, context, all !== "true", readPageRequest(asked));
      const beganAt = ({ raisedAt, clearedAt }: ProblemView) => (clearedAt === null ? raisedAt : null);
      const visit = { environmentId, nowMs };
      return withDocs({ deps, request }, await store.read((tx) => withHints(tx, visit, page, beganAt)));
    },
  }),
  listRoute({
    path: "/alerts",
    needs: "read",
    summary:
      "Lists the alerts that were sent to the owner, newest first. A burst is one alert with a count. open=true leaves out resolved alerts.",
    filter: { open: Type.Optional(oneOf(["true", "false"])) },
    item: alertView,
    list: async (tx, visit, page, { open }) =>
      withDocs(
        visit,
        await withHints(
          tx,
          visit,
          await listAlerts(tx, visit.environmentId, page, open === "true"),
          ({ at, resolvedAt }) => (resolvedAt === null ? at : null),
        ),
      ),
  }),
  environmentRoute({
    method: "POST",
    path: "/alerts/:id/resolve",
    needs: "replay",
    summary: "Marks an alert as resolved, and clears its problem until the problem occurs again.",
    answer: Type.Object({ alert: alertView }),
    async write(tx, { change, audit, params }) {
      const { alert, resolved } = await resolveAlert(tx, { ...change, id: params.id });
      const { code, target } = alert;
      if (resolved)
        await audit(tx, { action: "alert.resolved", target: `alert:${alert.id}`, after: { code, target } });
      return { alert };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/calls",
    needs: "read",
    summary:
      "Lists the last 1,000 requests to receivers that were rejected, ignored or duplicates, newest first, with the cause.",
    query: fields({
      ...pageQuery,
      relay: calledName,
      outcome: Type.Optional(oneOf(REQUEST_OUTCOMES)),
      code: exactText(63, "the code of the rejection, such as bad_signature"),
      since: Type.Optional(Type.String()),
    }),
    answer: pageOf(recentRequestView),
    async handle({ deps, environment, query }) {
      const { limit, cursor, since, ...asked } = query;
      const page = readPageRequest({ limit, cursor });
      const filter = { ...asked, sinceMs: readTime("since", since) };
      await deps.writeRecentRequests();
      const { id } = environment;
      const { items, next } = await deps.store.read((tx) => listRecentRequests(tx, id, filter, page));
      return { items: await addFirstEvents(deps.store, id, items), next };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/calls/counts",
    needs: "read",
    summary:
      "Counts the requests that created no event since a time, by outcome and cause, among the last 1,000.",
    query: fields({ relay: calledName, since: Type.Optional(Type.String()) }),
    answer: Type.Object({ counts: requestCountsView }),
    async handle({ deps, environmentId, query: { relay, since } }) {
      const filter = { relay, sinceMs: readTime("since", since) };
      await deps.writeRecentRequests();
      return { counts: await deps.store.read((tx) => countRecentRequests(tx, environmentId, filter)) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/calls/:id",
    needs: "read",
    summary: "Shows one request that created no event, with its cause and what its code means.",
    answer: Type.Object({ call: recentRequestView, meaning: orNull(meaningView) }),
    async handle({ deps, environmentId, params }) {
      await deps.writeRecentRequests();
      const found = await deps.store.read((tx) => requireRecentRequest(tx, environmentId, params.id));
      const [call = found] = await addFirstEvents(deps.store, environmentId, [found]);
      return { call, meaning: findMeaning(call.code, ["refusal", "request"]) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/unknown-calls",
    needs: "read",
    summary:
      "Lists the last 50 receiver names in requests that the app does not have, with the receiver that the sender probably meant.",
    query: fields(pageQuery),
    answer: pageOf(unknownRequestView),
    async handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      await deps.writeRecentRequests();
      return await deps.store.read((tx) => listUnknownRequests(tx, environment.id, page));
    },
  }),
];
