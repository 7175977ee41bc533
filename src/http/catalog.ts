/** The catalog: products, plans, and access slugs, the entitlements that are neither. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import { fields, oneOf, pageOf, pageQuery } from "../ground/schema.ts";
import {
  accessSlugView,
  deleteAccessSlug,
  listAccessSlugs,
  pageAccessSlugs,
  putAccessSlug,
  putAccessSlugs,
} from "../people/entitlement.ts";
import { deletePlan, plans, planView, savePlan, viewPlan } from "../selling/plan.ts";
import { deleteProduct, products, productView, saveProduct, viewProduct } from "../selling/product.ts";
import type { Reader } from "../store/port.ts";
import { environmentRoute } from "./route.ts";

/** The version a deletion was decided on; absent deletes whatever is there. */
const versionQuery = fields({
  version: Type.Optional(Type.String({ description: "the version you read" })),
});

function readVersion(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Refusal("invalid_input", "version is not valid: write the version you read, an integer.");
}

/** What a change answers: all of them, by name. */
const slugs = Type.Object({ items: Type.Array(accessSlugView) });
const title = Type.Optional(Type.String());
const forceQuery = fields({ force: Type.Optional(oneOf(["true", "false"])) });

async function showSlugs(tx: Reader, environmentId: number) {
  return { items: await listAccessSlugs(tx, environmentId) };
}

/** Slugs and their titles, for the audit's before and after. */
async function readTitles(tx: Reader, environmentId: number): Promise<Record<string, string>> {
  const entries = await listAccessSlugs(tx, environmentId);
  return Object.fromEntries(entries.map(({ slug, title }) => [slug, title]));
}

export const catalogRoutes = [
  environmentRoute({
    method: "GET",
    path: "/products",
    summary: "Lists products, newest first.",
    query: fields(pageQuery),
    answer: pageOf(productView),
    handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => products.list(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/products/:name",
    summary: "Shows one product.",
    answer: Type.Object({ product: productView }),
    async handle({ deps, environment, params }) {
      const found = await deps.store.read((tx) => products.require(tx, environment.id, params.name));
      return { product: viewProduct(found) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/products/:name",
    summary: "Makes or replaces a product: the entitlement and credits it gives, and how it is sold.",
    body: fields({
      title: Type.Optional(Type.String()),
      key: Type.Optional(
        Type.String({ description: "an entitlement: a product or plan name, or access:<slug>" }),
      ),
      credits: Type.Optional(Type.Integer()),
      soldThrough: Type.Optional(Type.Unknown()),
      version: Type.Optional(Type.Integer()),
    }),
    answer: Type.Object({
      product: productView,
      created: Type.Boolean(),
      warnings: Type.Array(Type.String()),
    }),
    async handle({ deps, environment, by, origin, params, body, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const saved = await deps.store.write(origin, (tx) => saveProduct(tx, change, params.name, body));
      return { ...saved, product: viewProduct(saved.product) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/products/:name",
    summary: "Deletes a product; what people bought stays theirs.",
    query: versionQuery,
    answer: null,
    async handle({ deps, environment, by, origin, params, query, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const version = readVersion(query.version);
      await deps.store.write(origin, (tx) => deleteProduct(tx, change, params.name, version));
      return undefined;
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/plans",
    summary: "Lists plans, newest first.",
    query: fields(pageQuery),
    answer: pageOf(planView),
    handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => plans.list(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/plans/:name",
    summary: "Shows one plan.",
    answer: Type.Object({ plan: planView }),
    async handle({ deps, environment, params }) {
      const found = await deps.store.read((tx) => plans.require(tx, environment.id, params.name));
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
    answer: Type.Object({ plan: planView, created: Type.Boolean() }),
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
  environmentRoute({
    method: "GET",
    path: "/access",
    summary: "Lists the access slugs, newest first.",
    query: fields(pageQuery),
    answer: pageOf(accessSlugView),
    handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => pageAccessSlugs(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/access",
    summary: "Makes the access slugs exactly these; one that is held is only removed with force=true.",
    query: forceQuery,
    body: fields({ items: Type.Array(fields({ slug: Type.String(), title })) }),
    answer: slugs,
    handle({ deps, environment, origin, audit, query, body, nowMs }) {
      const environmentId = environment.id;
      return deps.store.write(origin, async (tx) => {
        const options = { force: query.force === "true" };
        const before = await readTitles(tx, environmentId);
        await putAccessSlugs(tx, environmentId, body.items, nowMs, options);
        const after = await readTitles(tx, environmentId);
        await audit(tx, { action: "access.changed", target: "access", before, after });
        return await showSlugs(tx, environmentId);
      });
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/access/:slug",
    summary: "Makes an access slug or changes its title.",
    body: fields({ title }),
    answer: slugs,
    handle({ deps, environment, origin, audit, params, body, nowMs }) {
      const { slug } = params;
      return deps.store.write(origin, async (tx) => {
        const title = (await readTitles(tx, environment.id))[slug];
        await putAccessSlug(tx, environment.id, { slug, title: body.title }, nowMs);
        await audit(tx, {
          action: "access.changed",
          target: `access:${slug}`,
          before: title === undefined ? null : { slug, title },
          after: { slug, title: body.title ?? slug },
        });
        return await showSlugs(tx, environment.id);
      });
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/access/:slug",
    summary: "Deletes an access slug; one that is held only with force=true, and its grants live on by name.",
    query: forceQuery,
    answer: null,
    async handle({ deps, environment, origin, audit, params, query, nowMs }) {
      const { slug } = params;
      await deps.store.write(origin, async (tx) => {
        const title = (await readTitles(tx, environment.id))[slug];
        await deleteAccessSlug(tx, environment.id, slug, nowMs, { force: query.force === "true" });
        await audit(tx, {
          action: "access.deleted",
          target: `access:${slug}`,
          before: { slug, title },
        });
      });
      return undefined;
    },
  }),
];
