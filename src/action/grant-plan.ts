/**
 * grant_plan: puts the event's person on a plan sold through this relay and records the payment under its ref; a new ref renews it.
 * It never ends by itself. Source: the specification's "Actions".
 */
import { grantByRelay } from "../selling/plan-sale.ts";
import { makeSaleAction } from "./sale.ts";

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
