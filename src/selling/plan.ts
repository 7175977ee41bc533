/**
 * Plans: a name that is also the entitlement it grants, and the way it is sold. As long as an environment has any plan, exactly one is
 * its default, the one people without a subscription are on. It never touches a subscription.
 */
import { toIso } from "../ground/clock.ts";
import { makeNameKey, makePage, type Page, type PageRequest, parseNameKey } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";
import { readTitle, requireFreeName, requireItemVersion } from "./catalog-name.ts";
import type { CatalogChange } from "./product.ts";
import {
  parseSoldThrough,
  readSoldThrough,
  requireSellingRelay,
  type SoldThrough,
  writeSoldThrough,
} from "./sold-through.ts";

interface Plan {
  name: string;
  title: string;
  default: boolean;
  soldThrough: SoldThrough | null;
  version: number;
  createdAt: number;
  updatedAt: number;
}

interface PlanView extends Omit<Plan, "createdAt" | "updatedAt"> {
  createdAt: string;
  updatedAt: string;
}

/** A whole plan; an absent title is the name, an absent soldThrough none, an absent default leaves the default where it is. */
export interface PlanInput {
  title?: string | undefined;
  default?: boolean | undefined;
  /** As written; checked here. */
  soldThrough?: unknown;
  /** The version it was read at; absent overwrites whatever is there. */
  version?: number | undefined;
}

type PlanRow = Omit<Plan, "soldThrough" | "default"> & { soldThrough: string | null; isDefault: number };

const COLUMNS = `name, title, is_default AS isDefault, sold_through AS soldThrough, version, created_at AS createdAt,
  updated_at AS updatedAt`;

/** The plan as the API shows it. */
export function viewPlan(plan: Plan): PlanView {
  return { ...plan, createdAt: toIso(plan.createdAt), updatedAt: toIso(plan.updatedAt) };
}

export async function findPlan(tx: Reader, environmentId: number, name: string): Promise<Plan | null> {
  const sql = `SELECT ${COLUMNS} FROM plan WHERE environment_id = ?1 AND name = ?2`;
  const row = await tx.get<PlanRow>(sql, environmentId, name);
  return row === null ? null : toPlan(row);
}

/** As `findPlan`; refuses with `not_found`. */
export async function requirePlan(tx: Reader, environmentId: number, name: string): Promise<Plan> {
  const plan = await findPlan(tx, environmentId, name);
  if (plan !== null) return plan;
  throw new Refusal("not_found", "No plan of this name exists here; the list of plans shows which ones do.");
}

/** The environment's default plan; null while it has no plan at all. */
export async function findDefaultPlan(tx: Reader, environmentId: number): Promise<Plan | null> {
  const sql = `SELECT ${COLUMNS} FROM plan WHERE environment_id = ?1 AND is_default = 1`;
  const row = await tx.get<PlanRow>(sql, environmentId);
  return row === null ? null : toPlan(row);
}

/** Every plan, newest first. */
export async function listPlans(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<PlanView>> {
  const after = parseNameKey(request.after);
  const sql = `SELECT ${COLUMNS} FROM plan
    WHERE environment_id = ?1 AND (?2 IS NULL OR created_at < ?2 OR (created_at = ?2 AND name > ?3))
    ORDER BY created_at DESC, name LIMIT ?4`;
  const rows = await tx.all<PlanRow>(sql, environmentId, after.createdAt, after.name, request.limit + 1);
  return makePage(rows, request, makeNameKey, (row) => viewPlan(toPlan(row)));
}

/**
 * Creates or replaces a plan and audits it. The first plan is the default whatever it says; one saved with `default: true` takes it over.
 * Refuses with `invalid_input` (also taking the default away without naming another), `name_taken`, `relay_missing`, `version_conflict`.
 */
export async function savePlan(
  tx: Writer,
  change: CatalogChange,
  name: string,
  input: PlanInput,
): Promise<{ plan: Plan; created: boolean }> {
  const { environmentId, nowMs } = change;
  await requireFreeName(tx, environmentId, "plan", name);
  const before = await findPlan(tx, environmentId, name);
  requireItemVersion("plan", name, before?.version ?? null, input.version);
  const soldThrough = parseSoldThrough(input.soldThrough);
  await requireSellingRelay(tx, environmentId, soldThrough);
  const plan: Plan = {
    name,
    title: readTitle(input.title, name),
    default: await settleDefault(tx, environmentId, name, input.default),
    soldThrough,
    version: (before?.version ?? 0) + 1,
    createdAt: before?.createdAt ?? nowMs,
    updatedAt: nowMs,
  };
  if (plan.default) await clearDefault(tx, change, name);
  await tx.run(
    `INSERT INTO plan (environment_id, name, title, is_default, sold_through, version, created_at, updated_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
     ON CONFLICT (environment_id, name) DO UPDATE SET title = excluded.title, is_default = excluded.is_default,
       sold_through = excluded.sold_through, version = excluded.version, updated_at = excluded.updated_at`,
    environmentId,
    name,
    plan.title,
    plan.default ? 1 : 0,
    writeSoldThrough(soldThrough),
    plan.version,
    plan.createdAt,
    nowMs,
  );
  await auditPlan(tx, change, before, plan);
  return { plan, created: before === null };
}

/**
 * Deletes a plan and audits it. Refuses with `not_found`, `version_conflict`, and with `in_use` a plan that people are on, or the default
 * while there are others.
 */
export async function deletePlan(
  tx: Writer,
  change: CatalogChange,
  name: string,
  version?: number,
): Promise<void> {
  const { environmentId } = change;
  const before = await requirePlan(tx, environmentId, name);
  requireItemVersion("plan", name, before.version, version);
  const others = await tx.get(
    "SELECT 1 AS found FROM plan WHERE environment_id = ?1 AND name <> ?2",
    environmentId,
    name,
  );
  if (before.default && others !== null) {
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
  await tx.run("DELETE FROM plan WHERE environment_id = ?1 AND name = ?2", environmentId, name);
  await auditPlan(tx, change, before, null);
}

/** Whether the plan is the default once saved. */
async function settleDefault(
  tx: Reader,
  environmentId: number,
  name: string,
  wanted: boolean | undefined,
): Promise<boolean> {
  const current = await findDefaultPlan(tx, environmentId);
  if (current === null) return true;
  if (current.name !== name) return wanted ?? false;
  const others = await tx.get(
    "SELECT 1 AS found FROM plan WHERE environment_id = ?1 AND name <> ?2",
    environmentId,
    name,
  );
  if (wanted !== false || others === null) return true;
  throw new Refusal(
    "invalid_input",
    "`default` cannot be taken from the default plan, an environment has exactly one: save another plan with default true instead.",
  );
}

async function clearDefault(tx: Writer, change: CatalogChange, except: string): Promise<void> {
  const sql = `UPDATE plan SET is_default = 0, version = version + 1, updated_at = ?3
    WHERE environment_id = ?1 AND is_default = 1 AND name <> ?2`;
  await tx.run(sql, change.environmentId, except, change.nowMs);
}

async function auditPlan(
  tx: Writer,
  change: CatalogChange,
  before: Plan | null,
  after: Plan | null,
): Promise<void> {
  await writeAudit(tx, {
    environmentId: change.environmentId,
    atMs: change.nowMs,
    actor: change.by,
    action: before === null ? "plan.created" : after === null ? "plan.deleted" : "plan.changed",
    target: `plan:${(after ?? before)?.name}`,
    before: before === null ? null : viewPlan(before),
    after: after === null ? null : viewPlan(after),
  });
}

function toPlan({ isDefault, soldThrough, ...row }: PlanRow): Plan {
  return { ...row, default: isDefault === 1, soldThrough: readSoldThrough(soldThrough) };
}
