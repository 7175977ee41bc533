/**
 * fulfil_product: grants the product's key and credits to the event's person and writes the receipt, once per ref, and only for a
 * product sold through this relay. Source: the specification's "Actions" and "Relay-sold products and plans".
 */
import { type Static, Type } from "typebox";
import type { Problem } from "../ground/problem.ts";
import { readOccasion } from "../selling/occasion.ts";
import { fulfilByRelay } from "../selling/product-sale.ts";
import { resolveRef } from "../selling/ref.ts";
import type { DatabaseAction } from "./contract.ts";
import { catalogNameShape, checkTemplateText, refShape, words } from "./shape.ts";

const shape = Type.Object(
  {
    type: Type.Literal("fulfil_product", {
      ...words({ description: "Fulfil a product.", expects: '"fulfil_product"' }),
    }),
    product: catalogNameShape("product"),
    ref: Type.Optional(refShape),
  },
  {
    additionalProperties: false,
    ...words({
      description: "Grants the product's key and credits to the person and writes the receipt.",
      expects: "an action object",
    }),
  },
);

export type FulfilProduct = Static<typeof shape>;

export const fulfilProduct: DatabaseAction<FulfilProduct> = {
  type: "fulfil_product",
  title: "Fulfil a product",
  effect: "gives",
  shape,
  sends: false,
  needsPerson: () => true,
  check: (action): Problem[] => (action.ref === undefined ? [] : checkTemplateText("ref", action.ref)),
  references: (action) => [{ kind: "product", name: action.product, field: "product" }],
  target: (action) => action.product,
  examples: [
    { type: "fulfil_product", product: "lamp" },
    { type: "fulfil_product", product: "lamp", ref: "{{mapped.payment_id}}" },
  ],

  async apply(tx, action, run) {
    const found = await readOccasion(tx, run);
    if ("failure" in found) return found.failure;
    const target = resolveRef(action.ref, (text) => run.renderRef(text), run.event.id);
    if ("failure" in target) return target.failure;
    return fulfilByRelay(tx, found.occasion, action.product, target.ref);
  },
};
