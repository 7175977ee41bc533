/** What was sold: receipts with their refunds, and subscriptions. */
import { t } from "elysia";
import { readPageRequest } from "../ground/page.ts";
import { listPurchases, requirePurchaseView } from "../selling/purchase.ts";
import { endSubscriptionByHand, listSubscriptions, viewSubscription } from "../selling/subscription.ts";
import { environmentRoute } from "./route.ts";
import { fields, json, oneOf, orNull, pageOf, pageQuery, time, timeOrNull } from "./schema.ts";

const purchaseKind = oneOf(["purchase", "refund"]);

export const purchase = t.Object({
  id: t.String(),
  kind: purchaseKind,
  ref: t.String(),
  itemKind: oneOf(["product", "plan"]),
  item: t.String(),
  person: t.String(),
  origin: oneOf(["relay", "payment"]),
  relay: orNull(t.String()),
  eventId: orNull(t.String()),
  refunds: orNull(t.String()),
  refundedBy: orNull(t.String()),
  amountMinor: orNull(t.Integer()),
  currency: orNull(t.String()),
  granted: json,
  takenBack: json,
  data: json,
  createdAt: time,
});

const status = oneOf(["active", "ended"]);

const subscription = t.Object({
  id: t.String(),
  person: t.String(),
  plan: t.String(),
  status,
  billedBy: oneOf(["relay", "processor"]),
  relay: orNull(t.String()),
  eventId: orNull(t.String()),
  startedAt: time,
  renewedAt: timeOrNull,
  endedAt: timeOrNull,
});

export const purchaseRoutes = [
  environmentRoute({
    method: "GET",
    path: "/purchases",
    summary: "Lists receipts and refunds, newest first.",
    query: fields({ ...pageQuery, person: t.Optional(t.String()), kind: t.Optional(purchaseKind) }),
    answer: pageOf(purchase),
    handle({ rooms, visit, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      return rooms.store.read((tx) => listPurchases(tx, visit.environment.id, page, filter));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/purchases/:id",
    summary: "Shows one receipt or refund.",
    answer: t.Object({ purchase }),
    async handle({ rooms, visit, params }) {
      const environmentId = visit.environment.id;
      return { purchase: await rooms.store.read((tx) => requirePurchaseView(tx, environmentId, params.id)) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/subscriptions",
    summary: "Lists subscriptions, newest first.",
    query: fields({ ...pageQuery, person: t.Optional(t.String()), status: t.Optional(status) }),
    answer: pageOf(subscription),
    handle({ rooms, visit, query }) {
      const { limit, cursor, ...filter } = query;
      const page = readPageRequest({ limit, cursor });
      return rooms.store.read((tx) => listSubscriptions(tx, visit.environment.id, page, filter));
    },
  }),
  environmentRoute({
    method: "POST",
    path: "/subscriptions/:id/end",
    summary: "Ends a subscription with its own grants; the person lands on the default plan.",
    answer: t.Object({ subscription }),
    async handle({ rooms, visit, params, nowMs }) {
      const change = { environmentId: visit.environment.id, by: visit.by, nowMs };
      const row = await rooms.store.write(visit.origin, (tx) => endSubscriptionByHand(tx, change, params.id));
      return { subscription: viewSubscription(row) };
    },
  }),
];
