/**
 * x
 */
import { type Static, Type } from "typebox";
import type { Problem } from "../ground/problem.ts";
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

  async apply() {
    throw new Error("being written");
  },
};
