/**
 * refund_product: takes back what fulfil_product granted under the same ref, once, for the event's person and the named product; from any
 * relay of the environment, never a card purchase. Source: the specification's "Actions".
 */
import { refundByRelay } from "../selling/product-sale.ts";
import { makeSaleAction } from "./sale.ts";

export const refundProduct = makeSaleAction({
  type: "refund_product",
  item: "product",
  title: "Refund a product",
  effect: "takes",
  description: "Takes back what fulfil_product granted under the same ref.",
  examples: [
    { type: "refund_product", product: "lamp" },
    { type: "refund_product", product: "lamp", ref: "{{mapped.payment_id}}" },
  ],
  work: refundByRelay,
});
