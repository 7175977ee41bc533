/**
 * fulfil_product: grants the product's key and credits to the event's person and writes the receipt, once per ref, and only for a
 * product sold through this relay. Source: the specification's "Actions" and "Relay-sold products and plans".
 */
import { fulfilByRelay } from "../selling/product-sale.ts";
import { makeSaleAction } from "./sale.ts";

export const fulfilProduct = makeSaleAction({
  type: "fulfil_product",
  item: "product",
  title: "Fulfil a product",
  effect: "gives",
  description: "Grants the product's key and credits to the person and writes the receipt.",
  examples: [
    { type: "fulfil_product", product: "lamp" },
    { type: "fulfil_product", product: "lamp", ref: "{{mapped.payment_id}}" },
  ],
  work: fulfilByRelay,
});
