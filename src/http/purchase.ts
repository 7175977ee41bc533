/** What was sold: receipts with their refunds, payments that the app's own processor took and its server tells of, and subscriptions. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, pageOf, pageQuery } from "../ground/schema.ts";
import { listPurchases, purchaseKind, purchaseView, requirePurchaseView } from "../selling/purchase.ts";
import { receiptBody, recordReceipt } from "../selling/receipt.ts";
import {
  endSubscriptionByHand,
  listSubscriptions,
  subscriptionStatus,
  subscriptionView,
  viewSubscription,
} from "../selling/subscription.ts";
import { readPage } from "../store/walk.ts";
import { environmentRoute } from "./route.ts";

export const purchaseRoutes = [
  environmentRoute({
    method: "GET",
    path: "/purchases",
    summary: "Lists receipts and refunds, newest first; ref finds a receipt with its refund.",
    query: fields({
      ...pageQuery,
      ref: Type.Optional(Type.String({ description: "the ref of a receipt" })),
      person: Type.Optional(Type.String()),
      kind: Type.Optional(purchaseKind),
    }),
    answer: pageOf(purchaseView),
    handle({ deps, environment, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      return readPage(deps.store, page, (tx, part) => listPurchases(tx, environment.id, part, filter));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/purchases/:id",
    summary: "Shows one receipt or refund.",
    answer: Type.Object({ purchase: purchaseView }),
    async handle({ deps, environment, params }) {
      const environmentId = environment.id;
      return { purchase: await deps.store.read((tx) => requirePurchaseView(tx, environmentId, params.id)) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/subscriptions",
    summary: "Lists subscriptions, newest first.",
    query: fields({
      ...pageQuery,
      person: Type.Optional(Type.String()),
      status: Type.Optional(subscriptionStatus),
    }),
    answer: pageOf(subscriptionView),
    handle({ deps, environment, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      return readPage(deps.store, page, (tx, part) => listSubscriptions(tx, environment.id, part, filter));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/subscriptions/:id/end",
    summary: "Ends a subscription with its own grants; the person lands on the default plan.",
    answer: Type.Object({ subscription: subscriptionView }),
    async handle({ deps, environment, by, origin, params, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const row = await deps.store.write(origin, (tx) => endSubscriptionByHand(tx, change, params.id));
      return { subscription: viewSubscription(row) };
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/receipts",
    summary:
      "Records a payment or refund the app's processor took, once per ref, and gives or takes back what it is for.",
    body: receiptBody,
    answer: Type.Object({ receipt: purchaseView, created: Type.Boolean() }),
    status: 201,
    async handle({ deps, environment, by, body, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      return await recordReceipt(deps.store, change, body);
    },
  }),
];
