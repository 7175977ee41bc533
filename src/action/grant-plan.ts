/**
 * grant_plan: puts the event's person on a plan sold through this relay and records the payment under its ref; a new ref renews it.
 * It never ends by itself. Source: the specification's "Actions".
 */
import { type Static, Type } from "typebox";
import type { Problem } from "../ground/problem.ts";
import { readOccasion } from "../selling/occasion.ts";
import { grantByRelay } from "../selling/plan-sale.ts";
import { resolveRef } from "../selling/ref.ts";
import type { DatabaseAction } from "./contract.ts";
import { catalogNameShape, checkTemplateText, refShape, words } from "./shape.ts";

const shape = Type.Object(
  {
    type: Type.Literal("grant_plan", { ...words({ description: "Grant a plan.", expects: '"grant_plan"' }) }),
    plan: catalogNameShape("plan"),
    ref: Type.Optional(refShape),
  },
  {
    additionalProperties: false,
    ...words({
      description: "Puts the person on the plan and records the payment; a new ref renews it.",
      expects: "an action object",
    }),
  },
);

export type GrantPlan = Static<typeof shape>;

export const grantPlan: DatabaseAction<GrantPlan> = {
  type: "grant_plan",
  title: "Grant a plan",
  effect: "gives",
  shape,
  sends: false,
  needsPerson: () => true,
  check: (action): Problem[] => (action.ref === undefined ? [] : checkTemplateText("ref", action.ref)),
  references: (action) => [{ kind: "plan", name: action.plan, field: "plan" }],
  target: (action) => action.plan,
  examples: [
    { type: "grant_plan", plan: "pro" },
    { type: "grant_plan", plan: "pro", ref: "{{mapped.invoice_id}}" },
  ],

  async apply(tx, action, run) {
    const found = await readOccasion(tx, run);
    if ("failure" in found) return found.failure;
    const target = resolveRef(action.ref, (text) => run.renderRef(text), run.event.id);
    if ("failure" in target) return target.failure;
    return grantByRelay(tx, found.occasion, action.plan, target.ref);
  },
};
