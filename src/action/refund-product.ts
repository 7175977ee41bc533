/**
 * refund_product: takes back what fulfil_product granted under the same ref, once, for the event's person and the named product; from any
 * relay of the environment, never a card purchase. Source: the specification's "Actions".
 */
import { type Static, Type } from "typebox";
import type { Problem } from "../ground/problem.ts";
import { readOccasion } from "../selling/occasion.ts";
import { refundByRelay } from "../selling/product-sale.ts";
import { resolveRef } from "../selling/ref.ts";
import type { DatabaseAction } from "./contract.ts";
import { catalogNameShape, checkTemplateText, refShape, words } from "./shape.ts";

const shape = Type.Object(
  {
    type: Type.Literal("refund_product", {
      ...words({ description: "Refund a product.", expects: '"refund_product"' }),
    }),
    product: catalogNameShape("product"),
    ref: Type.Optional(refShape),
  },
  {
    additionalProperties: false,
    ...words({
      description: "Takes back what fulfil_product granted under the same ref.",
      expects: "an action object",
    }),
  },
);

export type RefundProduct = Static<typeof shape>;

export const refundProduct: DatabaseAction<RefundProduct> = {
  type: "refund_product",
  title: "Refund a product",
  effect: "takes",
  shape,
  sends: false,
  needsPerson: () => true,
  check: (action): Problem[] => (action.ref === undefined ? [] : checkTemplateText("ref", action.ref)),
  references: (action) => [{ kind: "product", name: action.product, field: "product" }],
  target: (action) => action.product,
  examples: [
    { type: "refund_product", product: "lamp" },
    { type: "refund_product", product: "lamp", ref: "{{mapped.payment_id}}" },
  ],

  async apply(tx, action, run) {
    const found = await readOccasion(tx, run);
    if ("failure" in found) return found.failure;
    const target = resolveRef(action.ref, (text) => run.renderRef(text), run.event.id);
    if ("failure" in target) return target.failure;
    return refundByRelay(tx, found.occasion, action.product, target.ref);
  },
};
