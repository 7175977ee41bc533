/**
 * The catalog: products, plans, and access slugs, which are entitlements of neither. It also has the sales: receipts with their refunds, payments
 * that the app's server reports from its own processor, and subscriptions.
 */
import { Type } from "typebox";
import { MAX_REF_CHARS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { exactText, fields, oneOf, savedFile, warningView } from "../../base/schema.ts";
import { catalogUse, listCatalogUses, trackCatalogEdit } from "../../rules/relay/catalog-edit.ts";
import {
  accessSlugView,
  deleteAccessSlug,
  listAccessSlugs,
  pageAccessSlugs,
  putAccessSlug,
  putAccessSlugs,
} from "../../shop/people/entitlement.ts";
import { readPersonId } from "../../shop/people/person.ts";
import { movePurchaseManually, purchaseMove } from "../../shop/selling/manual-move.ts";
import { previewRefund, refundManually, refundPreview } from "../../shop/selling/manual-refund.ts";
import { deletePlan, plans, planView, savePlan, viewPlan } from "../../shop/selling/plan.ts";
import {
  deleteProduct,
  products,
  productView,
  saveProduct,
  viewProduct,
} from "../../shop/selling/product.ts";
import {
  listPurchases,
  purchaseView,
  receiptKind,
  requirePurchaseView,
} from "../../shop/selling/purchase.ts";
import { receiptBody, recordReceipt } from "../../shop/selling/receipt.ts";
import {
  endSubscriptionManually,
  listSubscriptions,
  subscriptionItem,
  subscriptionStatus,
  subscriptionView,
  viewSubscription,
} from "../../shop/selling/subscription.ts";
import { dryRunWithin } from "../../store/dry-run.ts";
import type { Reader } from "../../store/port.ts";
import { environmentRoute, listRoute } from "../http/route.ts";

/** The version that the caller read before the deletion. If it is absent, any version is deleted. */
const versionQuery = fields({
  version: Type.Optional(Type.String({ description: "the version you read" })),
});

function readVersion(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Refusal("invalid_input", "version is not valid: write the version you read, an integer.");
}

/** The effects of the change on relays. */
const followed = { warnings: Type.Array(warningView), ...savedFile };

/** The answer to a change: all slugs by name. */
const slugs = Type.Object({ items: Type.Array(accessSlugView), ...followed });
const title = Type.Optional(Type.String());
const forceQuery = fields({ force: Type.Optional(oneOf(["true", "false"])) });

function entitlementOf(slug: string): string {
  return `access:${slug}`;
}

async function showSlugs(tx: Reader, environmentId: number) {
  return { items: await listAccessSlugs(tx, environmentId) };
}

/** Returns slugs and their titles, for the audit's before and after. */
async function readTitles(tx: Reader, environmentId: number): Promise<Record<string, string>> {
  const entries = await listAccessSlugs(tx, environmentId);
  return Object.fromEntries(entries.map(({ slug, title }) => [slug, title]));
}

export const sellingRoutes = [
  listRoute({
    path: "/products",
    needs: "read",
    summary: "Lists products, newest first.",
    item: productView,
    list: (tx, { environmentId }, page) => products.list(tx, environmentId, page),
  }),
  environmentRoute({
    method: "GET",
    path: "/products/:name",
    needs: "read",
    summary: "Shows one product.",
    answer: Type.Object({ product: productView }),
    read: async (tx, { environmentId, params }) => ({
      product: viewProduct(await products.require(tx, environmentId, params.name)),
    }),
  }),
  environmentRoute({
    method: "PUT",
    path: "/products/:name",
    needs: "edit_definitions",
    saves: "catalog",
    summary: "Creates or replaces a product: the entitlement and credits that it grants, and how it is sold.",
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
      ...followed,
    }),
    async write(tx, { change, params, body }) {
      const { result, warnings } = await trackCatalogEdit(tx, change, params.name, () =>
        saveProduct(tx, change, params.name, body),
      );
      return { ...result, product: viewProduct(result.product), warnings: [...result.warnings, ...warnings] };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/products/:name",
    needs: "edit_definitions",
    saves: "catalog",
    summary: "Deletes a product. People keep what they bought.",
    query: versionQuery,
    answer: Type.Object(followed),
    async write(tx, { change, params, query }) {
      const { warnings } = await trackCatalogEdit(tx, change, params.name, () =>
        deleteProduct(tx, change, params.name, readVersion(query.version)),
      );
      return { warnings };
    },
  }),
  listRoute({
    path: "/plans",
    needs: "read",
    summary: "Lists plans, newest first.",
    item: planView,
    list: (tx, { environmentId }, page) => plans.list(tx, environmentId, page),
  }),
  environmentRoute({
    method: "GET",
    path: "/plans/:name",
    needs: "read",
    summary: "Shows one plan.",
    answer: Type.Object({ plan: planView }),
    read: async (tx, { environmentId, params }) => ({
      plan: viewPlan(await plans.require(tx, environmentId, params.name)),
    }),
  }),
  environmentRoute({
    method: "PUT",
    path: "/plans/:name",
    needs: "edit_definitions",
    saves: "catalog",
    summary: "Creates or replaces a plan. A plan with default true becomes the default plan.",
    body: fields({
      title: Type.Optional(Type.String()),
      default: Type.Optional(Type.Boolean()),
      soldThrough: Type.Optional(Type.Unknown()),
      version: Type.Optional(Type.Integer()),
    }),
    answer: Type.Object({ plan: planView, created: Type.Boolean(), ...followed }),
    async write(tx, { change, params, body }) {
      const { result, warnings } = await trackCatalogEdit(tx, change, params.name, () =>
        savePlan(tx, change, params.name, body),
      );
      return { plan: viewPlan(result.plan), created: result.created, warnings };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/plans/:name",
    needs: "edit_definitions",
    saves: "catalog",
    summary: "Deletes a plan.",
    query: versionQuery,
    answer: Type.Object(followed),
    async write(tx, { change, params, query }) {
      const { warnings } = await trackCatalogEdit(tx, change, params.name, () =>
        deletePlan(tx, change, params.name, readVersion(query.version)),
      );
      return { warnings };
    },
  }),
  listRoute({
    path: "/access",
    needs: "read",
    summary: "Lists the access slugs, newest first.",
    item: accessSlugView,
    list: (tx, { environmentId }, page) => pageAccessSlugs(tx, environmentId, page),
  }),
  environmentRoute({
    method: "PUT",
    path: "/access",
    needs: "edit_definitions",
    saves: "catalog",
    summary:
      "Replaces all access slugs. If people have a slug that is not in the list, force=true is required.",
    query: forceQuery,
    body: fields({ items: Type.Array(fields({ slug: Type.String(), title })) }),
    answer: slugs,
    async write(tx, { environmentId, change, audit, query, body, nowMs }) {
      const before = await readTitles(tx, environmentId);
      const { warnings } = await trackCatalogEdit(tx, change, null, () =>
        putAccessSlugs(tx, environmentId, body.items, nowMs, { force: query.force === "true" }),
      );
      const after = await readTitles(tx, environmentId);
      await audit(tx, { action: "access.changed", target: "access", before, after });
      return { ...(await showSlugs(tx, environmentId)), warnings };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/access/:slug",
    needs: "edit_definitions",
    saves: "catalog",
    summary: "Creates an access slug, or changes its title.",
    body: fields({ title }),
    answer: slugs,
    async write(tx, { environmentId, change, audit, params, body, nowMs }) {
      const { slug } = params;
      const title = (await readTitles(tx, environmentId))[slug];
      const { warnings } = await trackCatalogEdit(tx, change, entitlementOf(slug), () =>
        putAccessSlug(tx, environmentId, { slug, title: body.title }, nowMs),
      );
      const before = title === undefined ? null : { slug, title };
      const after = { slug, title: body.title ?? slug };
      await audit(tx, { action: "access.changed", target: `access:${slug}`, before, after });
      return { ...(await showSlugs(tx, environmentId)), warnings };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/access/:slug",
    needs: "edit_definitions",
    saves: "catalog",
    summary:
      "Deletes an access slug. If people have it, force=true is required, and their grants stay under its name.",
    query: forceQuery,
    answer: Type.Object(followed),
    async write(tx, { environmentId, change, audit, params, query, nowMs }) {
      const { slug } = params;
      const title = (await readTitles(tx, environmentId))[slug];
      const { warnings } = await trackCatalogEdit(tx, change, entitlementOf(slug), () =>
        deleteAccessSlug(tx, environmentId, slug, nowMs, { force: query.force === "true" }),
      );
      await audit(tx, { action: "access.deleted", target: `access:${slug}`, before: { slug, title } });
      return { warnings };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/catalog-uses",
    needs: "read",
    summary: "Lists which relays use which product, plan or access slug, and in which action.",
    answer: Type.Object({ uses: Type.Array(catalogUse) }),
    async handle({ deps, environmentId }) {
      const { relays } = await deps.relays.current();
      return { uses: listCatalogUses(relays.filter((relay) => relay.environmentId === environmentId)) };
    },
  }),
  listRoute({
    path: "/purchases",
    needs: "read",
    summary:
      "Lists receipts and refunds, newest first. ref finds a receipt with its refund. A confirmation is not a purchase: find it by kind or ref.",
    filter: {
      ref: exactText(MAX_REF_CHARS, "the ref of a receipt"),
      person: Type.Optional(Type.String({ description: "a person's id, address or token" })),
      kind: Type.Optional(receiptKind),
    },
    item: purchaseView,
    async list(tx, { environmentId }, page, filter) {
      const person = await readPersonId(tx, environmentId, "person", filter.person);
      return await listPurchases(tx, environmentId, page, { ...filter, person });
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/purchases/:id",
    needs: "read",
    summary: "Shows one receipt or refund.",
    answer: Type.Object({ purchase: purchaseView }),
    read: async (tx, { environmentId, params }) => ({
      purchase: await requirePurchaseView(tx, environmentId, params.id),
    }),
  }),
  environmentRoute({
    method: "GET",
    path: "/purchases/:id/refund",
    needs: "read",
    summary: "Shows what a manual refund of a purchase would take back.",
    answer: Type.Object({ plan: refundPreview }),
    read: async (tx, { environmentId, params, nowMs }) => ({
      plan: await previewRefund(tx, environmentId, params.id, nowMs),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/purchases/:id/refund",
    needs: "act_on_people",
    summary:
      "Refunds a purchase manually, also a purchase that a relay fulfilled: it takes back the access and credits, or the plan. No money moves.",
    answer: Type.Object({ receipt: purchaseView, created: Type.Boolean() }),
    status: 201,
    write: async (tx, { change, params }) => await refundManually(tx, change, params.id),
  }),
  environmentRoute({
    method: "POST",
    path: "/purchases/:id/move",
    needs: "act_on_people",
    summary:
      "Moves a purchase to another person with what it still gives and its receipt, under the same ref; plan shows the move and changes nothing.",
    body: fields({
      person: Type.String({ description: "the new person's id, address or token" }),
      plan: Type.Optional(Type.Boolean({ description: "true: shows the move and changes nothing" })),
    }),
    answer: Type.Object({ plan: purchaseMove, receipt: purchaseView, moved: Type.Boolean() }),
    handle: ({ deps, change, params, body }) =>
      deps.store.write(
        "move",
        async (tx) => {
          const move = () => movePurchaseManually(tx, change, params.id, body.person);
          if (body.plan !== true) return await move();
          const { plan } = await dryRunWithin(tx, move);
          const receipt = await requirePurchaseView(tx, change.environmentId, params.id);
          return { plan, receipt, moved: false };
        },
        change.environmentId,
      ),
  }),
  listRoute({
    path: "/subscriptions",
    needs: "read",
    summary: "Lists subscriptions, newest first.",
    filter: {
      person: Type.Optional(Type.String({ description: "a person's id, address or token" })),
      status: Type.Optional(subscriptionStatus),
    },
    item: subscriptionItem,
    async list(tx, { environmentId }, page, filter) {
      const person = await readPersonId(tx, environmentId, "person", filter.person);
      return await listSubscriptions(tx, environmentId, page, { ...filter, person });
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/subscriptions/:id/end",
    needs: "act_on_people",
    summary: "Ends a subscription and its grants. The person moves to the default plan.",
    answer: Type.Object({ subscription: subscriptionView }),
    write: async (tx, { change, params }) => ({
      subscription: viewSubscription(await endSubscriptionManually(tx, change, params.id)),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/receipts",
    needs: "act_on_people",
    summary:
      "Records a payment or refund of the app's processor, once for each ref. It grants or takes back what was bought.",
    body: receiptBody,
    answer: Type.Object({ receipt: purchaseView, created: Type.Boolean() }),
    status: 201,
    handle: ({ deps, change, body }) => recordReceipt(deps.store, change, body),
  }),
];
