/** What was sold: receipts with their refunds, and subscriptions. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, json, oneOf, orNull, pageOf, pageQuery, time, timeOrNull } from "../ground/schema.ts";
import { listPurchases, requirePurchaseView } from "../selling/purchase.ts";
import { endSubscriptionByHand, listSubscriptions, viewSubscription } from "../selling/subscription.ts";
import { readPage } from "../store/walk.ts";
import { environmentRoute } from "./route.ts";

const purchaseKind = oneOf(["purchase", "refund"]);

export const purchase = Type.Object({
  id: Type.String(),
  kind: purchaseKind,
  ref: Type.String(),
  itemKind: oneOf(["product", "plan"]),
  item: Type.String(),
  person: Type.String(),
  origin: oneOf(["relay", "payment"]),
  relay: orNull(Type.String()),
  eventId: orNull(Type.String()),
  refunds: orNull(Type.String()),
  refundedBy: orNull(Type.String()),
  amountMinor: orNull(Type.Integer()),
  currency: orNull(Type.String()),
  granted: json,
  takenBack: json,
  data: json,
  createdAt: time,
});

const status = oneOf(["active", "ended"]);

const subscription = Type.Object({
  id: Type.String(),
  person: Type.String(),
  plan: Type.String(),
  status,
  billedBy: oneOf(["relay", "processor"]),
  relay: orNull(Type.String()),
  eventId: orNull(Type.String()),
  startedAt: time,
  renewedAt: timeOrNull,
  endedAt: timeOrNull,
});

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
    answer: pageOf(purchase),
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
    answer: Type.Object({ purchase }),
    async handle({ deps, environment, params }) {
      const environmentId = environment.id;
      return { purchase: await deps.store.read((tx) => requirePurchaseView(tx, environmentId, params.id)) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/subscriptions",
    summary: "Lists subscriptions, newest first.",
    query: fields({ ...pageQuery, person: Type.Optional(Type.String()), status: Type.Optional(status) }),
    answer: pageOf(subscription),
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
    answer: Type.Object({ subscription }),
    async handle({ deps, environment, by, origin, params, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const row = await deps.store.write(origin, (tx) => endSubscriptionByHand(tx, change, params.id));
      return { subscription: viewSubscription(row) };
    },
  }),
];
