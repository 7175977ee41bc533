/**
 * revoke_plan: ends the person's relay-granted subscription on the plan, from any relay of the environment; never one billed by the card
 * processor, never a by-hand or purchase grant. Source: the specification's "Actions".
 */
import { type Static, Type } from "typebox";
import type { Problem } from "../ground/problem.ts";
import { readOccasion } from "../selling/occasion.ts";
import { revokeByRelay } from "../selling/plan-sale.ts";
import { resolveRef } from "../selling/ref.ts";
import type { DatabaseAction } from "./contract.ts";
import { catalogNameShape, checkTemplateText, refShape, words } from "./shape.ts";

const shape = Type.Object(
  {
    type: Type.Literal("revoke_plan", {
      ...words({ description: "Revoke a plan.", expects: '"revoke_plan"' }),
    }),
    plan: catalogNameShape("plan"),
    ref: Type.Optional(refShape),
  },
  {
    additionalProperties: false,
    ...words({
      description: "Ends the person's relay-granted subscription on the plan.",
      expects: "an action object",
    }),
  },
);

export type RevokePlan = Static<typeof shape>;

export const revokePlan: DatabaseAction<RevokePlan> = {
  type: "revoke_plan",
  title: "Revoke a plan",
  effect: "takes",
  shape,
  sends: false,
  needsPerson: () => true,
  check: (action): Problem[] => (action.ref === undefined ? [] : checkTemplateText("ref", action.ref)),
  references: (action) => [{ kind: "plan", name: action.plan, field: "plan" }],
  target: (action) => action.plan,
  examples: [
    { type: "revoke_plan", plan: "pro" },
    { type: "revoke_plan", plan: "pro", ref: "{{mapped.invoice_id}}" },
  ],

  async apply(tx, action, run) {
    const found = await readOccasion(tx, run);
    if ("failure" in found) return found.failure;
    const target = resolveRef(action.ref, (text) => run.renderRef(text), run.event.id);
    if ("failure" in target) return target.failure;
    return revokeByRelay(tx, found.occasion, action.plan, target.ref);
  },
};
