/** What was sold: receipts with their refunds, payments that the app's own processor took and its server tells of, and subscriptions. */
import { Type } from "typebox";
import { listPurchases, purchaseKind, purchaseView, requirePurchaseView } from "../selling/purchase.ts";
import { receiptBody, recordReceipt } from "../selling/receipt.ts";
import {
  endSubscriptionByHand,
  listSubscriptions,
  subscriptionStatus,
  subscriptionView,
  viewSubscription,
} from "../selling/subscription.ts";
import { environmentRoute, listRoute } from "./route.ts";

export const purchaseRoutes = [
  listRoute({
    path: "/purchases",
    summary: "Lists receipts and refunds, newest first; ref finds a receipt with its refund.",
    filter: {
      ref: Type.Optional(Type.String({ description: "the ref of a receipt" })),
      person: Type.Optional(Type.String()),
      kind: Type.Optional(purchaseKind),
    },
    item: purchaseView,
    list: (tx, { environmentId }, page, filter) => listPurchases(tx, environmentId, page, filter),
  }),
  environmentRoute({
    method: "GET",
    path: "/purchases/:id",
    summary: "Shows one receipt or refund.",
    answer: Type.Object({ purchase: purchaseView }),
    read: async (tx, { environmentId, params }) => ({
      purchase: await requirePurchaseView(tx, environmentId, params.id),
    }),
  }),
  listRoute({
    path: "/subscriptions",
    summary: "Lists subscriptions, newest first.",
    filter: {
      person: Type.Optional(Type.String()),
      status: Type.Optional(subscriptionStatus),
    },
    item: subscriptionView,
    list: (tx, { environmentId }, page, filter) => listSubscriptions(tx, environmentId, page, filter),
  }),
  environmentRoute({
    method: "POST",
    path: "/subscriptions/:id/end",
    summary: "Ends a subscription with its own grants; the person lands on the default plan.",
    answer: Type.Object({ subscription: subscriptionView }),
    write: async (tx, { change, params }) => ({
      subscription: viewSubscription(await endSubscriptionByHand(tx, change, params.id)),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/receipts",
    summary:
      "Records a payment or refund the app's processor took, once per ref, and gives or takes back what it is for.",
    body: receiptBody,
    answer: Type.Object({ receipt: purchaseView, created: Type.Boolean() }),
    status: 201,
    handle: ({ deps, change, body }) => recordReceipt(deps.store, change, body),
  }),
];
