/**
 * Plans: catalog items whose name is also the entitlement they grant. If an environment has any plan, exactly one is its default, which people
 * without a subscription have. This file never changes a subscription.
 */
import { type Static, Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { orNull, show, time } from "../../base/schema.ts";
import type { Change } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, flag, type RowOf } from "../../store/table.ts";
import { CatalogItems, ITEM_COLUMNS, type ItemInput, readTitle, soldThroughView } from "./catalog-item.ts";

const PLAN = defineTable({
  name: "plan",
  key: ["environmentId", "name"],
  columns: { ...ITEM_COLUMNS, isDefault: flag() },
});
type Plan = RowOf<typeof PLAN>;

export const planView = Type.Object({
  name: Type.String(),
  title: Type.String(),
  default: Type.Boolean(),
  soldThrough: orNull(soldThroughView),
  version: Type.Integer(),
  createdAt: time,
  updatedAt: time,
});

export function viewPlan(row: Plan): Static<typeof planView> {
  return show(planView, { ...row, default: row.isDefault });
}

export const plans = new CatalogItems({
  kind: "plan",
  table: PLAN,
  view: viewPlan,
  codes: { notSellable: "plan_not_sellable", unknown: "plan_unknown", notSoldHere: "plan_not_sold_here" },
});

/** Finds the environment's default plan; null if it has no plan. */
export function findDefaultPlan(tx: Reader, environmentId: number): Promise<Plan | null> {
  return PLAN.get(tx, "WHERE environment_id = $environmentId AND is_default = 1", { environmentId });
}

/** A complete plan; an absent default changes no default. */
export interface PlanInput extends ItemInput {
  default?: boolean | undefined;
}

/**
 * Creates or replaces a plan, audited. The first plan is always the default; `default: true` makes this plan the default. Throws
 * `invalid_input` (also for removing the default without naming another), `name_taken`, `relay_missing`, `version_conflict`.
 */
export async function savePlan(
  tx: Writer,
  change: Change,
  name: string,
  input: PlanInput,
): Promise<{ plan: Plan; created: boolean }> {
  const { environmentId, nowMs } = change;
  const { before, item } = await plans.prepare(tx, change, name, input);
  const title = readTitle(input.title, name);
  const isDefault = await resolveDefault(tx, environmentId, name, input.default);
  if (isDefault) {
    const sql = `UPDATE plan SET is_default = 0, version = version + 1, updated_at = $nowMs
      WHERE environment_id = $environmentId AND is_default = 1 AND name <> $name`;
    await tx.run(sql, { environmentId, name, nowMs });
  }
  const plan: Plan = { ...item, title, isDefault };
  await plans.save(tx, change, before, plan);
  return { plan, created: before === null };
}

/**
 * Deletes a plan, audited. Throws `not_found`, `version_conflict`, and `in_use` for a plan that people have, or for the default while others
 * exist.
 */
export async function deletePlan(tx: Writer, change: Change, name: string, version?: number): Promise<void> {
  const { environmentId } = change;
  const plan = await plans.requireAt(tx, environmentId, name, version);
  if (plan.isDefault && (await hasOthers(tx, environmentId, name))) {
    throw new Refusal(
      "in_use",
      `The plan ${name} is the default: save another plan with default true first.`,
    );
  }
  const active = await tx.get(
    "SELECT 1 AS found FROM subscription WHERE environment_id = ?1 AND plan = ?2 AND status = 'active' LIMIT 1",
    environmentId,
    name,
  );
  if (active !== null) {
    throw new Refusal("in_use", `The plan ${name} has active subscriptions: end them first.`);
  }
  await plans.delete(tx, change, plan);
}

/** Decides whether the saved plan is the default. */
async function resolveDefault(
  tx: Reader,
  environmentId: number,
  name: string,
  wanted: boolean | undefined,
): Promise<boolean> {
  const current = await findDefaultPlan(tx, environmentId);
  if (current === null) return true;
  if (current.name !== name) return wanted ?? false;
  if (wanted !== false || !(await hasOthers(tx, environmentId, name))) return true;
  throw new Refusal(
    "invalid_input",
    "`default` cannot be removed from the default plan, because an environment has exactly one: save another plan with default true instead.",
  );
}

async function hasOthers(tx: Reader, environmentId: number, name: string): Promise<boolean> {
  const sql = "SELECT 1 AS found FROM plan WHERE environment_id = ?1 AND name <> ?2";
  return (await tx.get(sql, environmentId, name)) !== null;
}
