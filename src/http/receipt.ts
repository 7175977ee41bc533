/** Receipts: payments the app's own processor took, told by the app's server. */
import { t } from "elysia";
import type { JsonObject } from "../ground/json.ts";
import { recordReceipt } from "../selling/receipt.ts";
import { purchase } from "./purchase.ts";
import { environmentRoute } from "./route.ts";
import { fields, oneOf } from "./schema.ts";

export const receiptRoutes = [
  environmentRoute({
    method: "POST",
    path: "/receipts",
    summary:
      "Records a payment or refund the app's processor took, once per ref, and gives or takes back what it is for.",
    body: fields({
      kind: t.Optional(oneOf(["purchase", "refund"])),
      ref: t.String({ description: "the processor's unique payment identifier" }),
      person: t.String({ description: "a person's id" }),
      product: t.Optional(t.String()),
      plan: t.Optional(t.String()),
      amountMinor: t.Optional(t.Integer({ description: "an integer in the currency's smallest unit" })),
      currency: t.Optional(t.String()),
      processorCustomerId: t.Optional(t.String()),
      data: t.Optional(t.Record(t.String(), t.Unknown())),
    }),
    answer: t.Object({ receipt: purchase, created: t.Boolean() }),
    status: 201,
    async handle({ rooms, visit, body, nowMs }) {
      const change = { environmentId: visit.environment.id, by: visit.by, nowMs };
      const data = body.data as JsonObject | undefined;
      const recorded = await recordReceipt(rooms.store, change, { ...body, data });
      rooms.recordsChanged();
      return recorded;
    },
  }),
];
