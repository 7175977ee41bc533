/** Receipts: payments the app's own processor took, told by the app's server. */
import { Type } from "typebox";
import type { JsonObject } from "../ground/json.ts";
import { fields, oneOf } from "../ground/schema.ts";
import { recordReceipt } from "../selling/receipt.ts";
import { purchase } from "./purchase.ts";
import { environmentRoute } from "./route.ts";

export const receiptRoutes = [
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
