/**
 * x
 */
import { type Static, Type } from "typebox";
import type { Problem } from "../ground/problem.ts";
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

  async apply() {
    throw new Error("being written");
  },
};
