/** What was sold: receipts with their refunds, payments that the app's own processor took and its server tells of, and subscriptions. */
import { Type } from "typebox";
import type { JsonObject } from "../ground/json.ts";
import { readPageRequest } from "../ground/page.ts";
import { fields, json, oneOf, orNull, pageOf, pageQuery, time, timeOrNull } from "../ground/schema.ts";
import { listPurchases, requirePurchaseView } from "../selling/purchase.ts";
import { recordReceipt } from "../selling/receipt.ts";
import { endSubscriptionByHand, listSubscriptions, viewSubscription } from "../selling/subscription.ts";
import { readPage } from "../store/walk.ts";
import { environmentRoute } from "./route.ts";

const purchaseKind = oneOf(["purchase", "refund"]);

const purchase = Type.Object({
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
  environmentRoute({
    method: "POST",
    path: "/receipts",
    summary:
      "Records a payment or refund the app's processor took, once per ref, and gives or takes back what it is for.",
    body: fields({
      kind: Type.Optional(oneOf(["purchase", "refund"])),
      ref: Type.String({ description: "the processor's unique payment identifier" }),
      person: Type.String({ description: "a person's id" }),
      product: Type.Optional(Type.String()),
      plan: Type.Optional(Type.String()),
      amountMinor: Type.Optional(Type.Integer({ description: "an integer in the currency's smallest unit" })),
      currency: Type.Optional(Type.String()),
      processorCustomerId: Type.Optional(Type.String()),
      data: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    }),
    answer: Type.Object({ receipt: purchase, created: Type.Boolean() }),
    status: 201,
    async handle({ deps, environment, by, body, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const data = body.data as JsonObject | undefined;
      return await recordReceipt(deps.store, change, { ...body, data });
    },
  }),
];
