/**
 * The four actions that sell products and plans through a relay. They read the catalog name, the ref, the person and the amount, and
 * shop/selling does the rest. Source: the specification's "Actions", "ref rules", "Relay-sold products and plans".
 */
import { Type } from "typebox";
import type { Outcome } from "../../base/outcome.ts";
import type { Problem } from "../../base/refusal.ts";
import { checkTemplateText } from "../../platform/template/template.ts";
import { readPaidAmount } from "../../shop/selling/paid-amount.ts";
import { grantByRelay, revokeByRelay } from "../../shop/selling/plan-sale.ts";
import { fulfilByRelay, refundByRelay } from "../../shop/selling/product-sale.ts";
import { type Payment, type RelaySale, readRelaySale, resolveRef } from "../../shop/selling/sale.ts";
import { moveSale } from "../../shop/selling/sale-move.ts";
import type { Writer } from "../../store/port.ts";
import type { DatabaseAction } from "./contract.ts";
import { catalogNameShape, defineActionShape, refShape } from "./shape.ts";

/** An action as written: `product` or `plan` by name, and an optional ref. */
type Sale<Name extends string, Item extends "product" | "plan"> = {
  type: Name;
  ref?: string;
} & Record<Item, string>;

interface SaleWords<Name extends string, Item extends "product" | "plan"> {
  type: Name;
  item: Item;
  /** The title in lists. */
  title: string;
  effect: "gives" | "takes";
  /** One sentence for editors. */
  description: string;
  examples: readonly Sale<Name, Item>[];
  /** Does the work for the person, the named item and the payment under the resolved ref. */
  work(tx: Writer, sale: RelaySale, name: string, payment: Payment): Promise<Outcome>;
}

function makeSaleAction<const Name extends string, const Item extends "product" | "plan">(
  sale: SaleWords<Name, Item>,
): DatabaseAction<Sale<Name, Item>> {
  const { type, item, title, effect, examples, work } = sale;
  const fields = { [item]: catalogNameShape(item), ref: Type.Optional(refShape) };
  return {
    ...defineActionShape(type, title, sale.description, fields),
    effect,
    sells: effect === "gives",
    sends: false,
    needsPerson: () => true,
    check: ({ ref }): Problem[] => (ref === undefined ? [] : checkTemplateText("ref", ref)),
    references: (action) => [{ kind: item, name: action[item], field: item }],
    target: (action) => action[item],
    examples,

    bind: (action) => async (tx, run) => {
      const found = await readRelaySale(tx, run);
      if ("failure" in found) return found.failure;
      const target = resolveRef(action.ref, (text) => run.renderRef(text), run.event.id);
      if ("failure" in target) return target.failure;
      const paid = effect === "gives" ? readPaidAmount(run.event.payload, run.warn) : null;
      const { ref } = target;
      const name = action[item];
      const sell = () => work(tx, found.sale, name, { ref, ...paid });
      if (effect === "takes" || run.movesFrom === null) return sell();
      return moveSale(tx, found.sale, run.movesFrom, { itemKind: item, item: name, ref }, sell);
    },
  };
}

/**
 * Grants the product's key and credits to the event's person and writes the receipt, once per ref. The product must be sold through this
 * relay.
 */
export const fulfilProduct = makeSaleAction({
  type: "fulfil_product",
  item: "product",
  title: "Fulfill a product",
  effect: "gives",
  description: "Grants the product's key and credits to the person and writes the receipt.",
  examples: [
    { type: "fulfil_product", product: "lamp" },
    { type: "fulfil_product", product: "lamp", ref: "{{mapped.payment_id}}" },
  ],
  work: fulfilByRelay,
});

/** Takes back once what fulfil_product granted under the same ref, by any relay of the environment. Never refunds a card purchase. */
export const refundProduct = makeSaleAction({
  type: "refund_product",
  item: "product",
  title: "Refund a product",
  effect: "takes",
  description: "Revokes what fulfil_product granted under the same ref.",
  examples: [
    { type: "refund_product", product: "lamp" },
    { type: "refund_product", product: "lamp", ref: "{{mapped.payment_id}}" },
  ],
  work: refundByRelay,
});

/**
 * Puts the person on a plan that this relay sells and records the payment under its ref. A new ref renews the plan; without a ref the
 * action confirms the current plan. The plan does not end by itself.
 */
export const grantPlan = makeSaleAction({
  type: "grant_plan",
  item: "plan",
  title: "Grant a plan",
  effect: "gives",
  description: "Puts the person on the plan and records the payment; a new ref renews it.",
  examples: [
    { type: "grant_plan", plan: "pro" },
    { type: "grant_plan", plan: "pro", ref: "{{mapped.invoice_id}}" },
  ],
  work: grantByRelay,
});

/**
 * Ends the person's subscription that any relay of the environment granted. Never ends a subscription billed by card, a manual grant or a
 * purchase.
 */
export const revokePlan = makeSaleAction({
  type: "revoke_plan",
  item: "plan",
  title: "Revoke a plan",
  effect: "takes",
  description: "Ends the person's relay-granted subscription on the plan.",
  examples: [
    { type: "revoke_plan", plan: "pro" },
    { type: "revoke_plan", plan: "pro", ref: "{{mapped.invoice_id}}" },
  ],
  work: revokeByRelay,
});
