/**
 * revoke_plan: ends the person's relay-granted subscription on the plan, from any relay of the environment; never one billed by the card
 * processor, never a by-hand or purchase grant. Source: the specification's "Actions".
 */
import { revokeByRelay } from "../selling/plan-sale.ts";
import { makeSaleAction } from "./sale.ts";

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
