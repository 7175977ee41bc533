/** Plans of the catalog. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, orNull, pageOf, pageQuery, time } from "../ground/schema.ts";
import { deletePlan, listPlans, requirePlan, savePlan, viewPlan } from "../selling/plan.ts";
import { environmentRoute } from "./route.ts";
import { readVersion, soldThrough, versionQuery } from "./selling-schema.ts";

const plan = Type.Object({
  name: Type.String(),
  title: Type.String(),
  default: Type.Boolean(),
  soldThrough: orNull(soldThrough),
  version: Type.Integer(),
  createdAt: time,
  updatedAt: time,
});

export const planRoutes = [
  environmentRoute({
    method: "GET",
    path: "/plans",
    summary: "Lists plans, newest first.",
    query: fields(pageQuery),
    answer: pageOf(plan),
    handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => listPlans(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/plans/:name",
    summary: "Shows one plan.",
    answer: Type.Object({ plan }),
    async handle({ deps, environment, params }) {
      const found = await deps.store.read((tx) => requirePlan(tx, environment.id, params.name));
      return { plan: viewPlan(found) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/plans/:name",
    summary: "Makes or replaces a plan; one saved with default true takes the default over.",
    body: fields({
      title: Type.Optional(Type.String()),
      default: Type.Optional(Type.Boolean()),
      soldThrough: Type.Optional(Type.Unknown()),
      version: Type.Optional(Type.Integer()),
    }),
    answer: Type.Object({ plan, created: Type.Boolean() }),
    async handle({ deps, environment, by, origin, params, body, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const saved = await deps.store.write(origin, (tx) => savePlan(tx, change, params.name, body));
      return { plan: viewPlan(saved.plan), created: saved.created };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/plans/:name",
    summary: "Deletes a plan.",
    query: versionQuery,
    answer: null,
    async handle({ deps, environment, by, origin, params, query, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const version = readVersion(query.version);
      await deps.store.write(origin, (tx) => deletePlan(tx, change, params.name, version));
      return undefined;
    },
  }),
];
