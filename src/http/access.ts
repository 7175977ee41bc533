/** Access slugs of the catalog: the entitlements that are neither product nor plan. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, oneOf, pageOf, pageQuery } from "../ground/schema.ts";
import {
  accessSlugView,
  deleteAccessSlug,
  listAccessSlugs,
  pageAccessSlugs,
  putAccessSlug,
  putAccessSlugs,
} from "../people/entitlement.ts";
import type { Reader } from "../store/port.ts";
import { environmentRoute } from "./route.ts";

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

export const accessRoutes = [
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
