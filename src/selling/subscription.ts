/**
 * Subscriptions: which plan a person is on. One active at a time; one that ends is marked, never removed, and takes its own grants with
 * it (by-hand and purchase grants stay). It never decides who may start or end one: that is plan-sale.ts.
 */
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import { newId } from "../ground/id.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import { grantAccess, listLiveGrants, revokeGrantsOfSource } from "../people/access-grant.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";
import { writeAudit } from "../watch/audit.ts";
import type { Occasion } from "./occasion.ts";
import { findDefaultPlan } from "./plan.ts";
import type { CatalogChange } from "./product.ts";

export interface Subscription {
  id: string;
  personId: string;
  plan: string;
  status: "active" | "ended";
  billedBy: "relay" | "processor";
  processorCustomerId: string | null;
  relayName: string | null;
  /** The event that started it. */
  eventId: string | null;
  startedAt: number;
  renewedAt: number | null;
  endedAt: number | null;
}

interface SubscriptionView {
  id: string;
  person: string;
  plan: string;
  status: "active" | "ended";
  billedBy: "relay" | "processor";
  relay: string | null;
  eventId: string | null;
  startedAt: string;
  renewedAt: string | null;
  endedAt: string | null;
}

const COLUMNS = `id, person_id AS personId, plan, status, billed_by AS billedBy,
  processor_customer_id AS processorCustomerId, relay_name AS relayName, event_id AS eventId, started_at AS startedAt,
  renewed_at AS renewedAt, ended_at AS endedAt`;

/** The subscription as the API shows it; the processor's customer id stays inside. */
export function viewSubscription(row: Subscription): SubscriptionView {
  return {
    id: row.id,
    person: row.personId,
    plan: row.plan,
    status: row.status,
    billedBy: row.billedBy,
    relay: row.relayName,
    eventId: row.eventId,
    startedAt: toIso(row.startedAt),
    renewedAt: toIsoOrNull(row.renewedAt),
    endedAt: toIsoOrNull(row.endedAt),
  };
}

export function findActiveSubscription(
  tx: Reader,
  environmentId: number,
  personId: string,
): Promise<Subscription | null> {
  const sql = `SELECT ${COLUMNS} FROM subscription
    WHERE environment_id = ?1 AND person_id = ?2 AND status = 'active'`;
  return tx.get<Subscription>(sql, environmentId, personId);
}

/** The plan a person is on: the active subscription's, else the default; `plan` is null where there is no plan at all. */
export async function currentPlan(
  tx: Reader,
  environmentId: number,
  personId: string,
): Promise<{ plan: string | null; subscription: Subscription | null }> {
  const subscription = await findActiveSubscription(tx, environmentId, personId);
  if (subscription !== null) return { plan: subscription.plan, subscription };
  const plan = await findDefaultPlan(tx, environmentId);
  return { plan: plan?.name ?? null, subscription: null };
}

interface SubscriptionFilter {
  person?: string | undefined;
  status?: "active" | "ended" | undefined;
}

/** Newest first. */
export async function listSubscriptions(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  filter: SubscriptionFilter = {},
): Promise<Page<SubscriptionView>> {
  return await walkPage<Subscription, SubscriptionView>(
    tx,
    {
      from: `subscription INDEXED BY subscription_by_${filter.person === undefined ? "environment" : "person"}`,
      columns: COLUMNS,
      key: "id",
      led: [equals("environment_id", environmentId), equals("person_id", filter.person)],
      fits: [equals("status", filter.status)],
      after: request.after,
      limit: request.limit,
    },
    viewSubscription,
  );
}

/** Starts one and grants its plan's key, sourced on it. There must be no active one. Answers its id and the grant's. */
export async function startSubscription(
  tx: Writer,
  occasion: Occasion,
  plan: string,
  processorCustomerId: string | null,
): Promise<{ id: string; grant: string }> {
  const id = newId("sub", occasion.nowMs);
  const billedBy = occasion.relayName === null ? "processor" : "relay";
  await tx.run(
    `INSERT INTO subscription (id, environment_id, person_id, plan, status, billed_by, processor_customer_id, relay_name,
       event_id, started_at)
     VALUES (?1, ?2, ?3, ?4, 'active', ?5, ?6, ?7, ?8, ?9)`,
    id,
    occasion.environmentId,
    occasion.personId,
    plan,
    billedBy,
    processorCustomerId,
    occasion.relayName,
    occasion.eventId,
    occasion.nowMs,
  );
  return { id, grant: await grantPlanKey(tx, occasion, id, plan) };
}

/** Keeps an active one going: stamps it, and gives its key again should it have been taken meanwhile. Answers the live grant's id. */
export async function renewSubscription(
  tx: Writer,
  occasion: Occasion,
  subscription: Subscription,
): Promise<{ id: string; grant: string }> {
  const { id, plan } = subscription;
  await tx.run("UPDATE subscription SET renewed_at = ?2 WHERE id = ?1", id, occasion.nowMs);
  const live = await listLiveGrants(tx, { ...occasion, entitlement: plan });
  const own = live.find((grant) => grant.source === "plan" && grant.sourceRef === id);
  return { id, grant: own?.id ?? (await grantPlanKey(tx, occasion, id, plan)) };
}

/** Ends an active one and the grants sourced on it; the person lands on the default plan. Answers how many grants ended. */
export async function endSubscription(
  tx: Writer,
  environmentId: number,
  subscription: Subscription,
  by: string,
  nowMs: number,
): Promise<number> {
  const sql = "UPDATE subscription SET status = 'ended', ended_at = ?2 WHERE id = ?1 AND status = 'active'";
  await tx.run(sql, subscription.id, nowMs);
  return revokeGrantsOfSource(tx, {
    environmentId,
    source: "plan",
    sourceRef: subscription.id,
    by,
    nowMs,
  });
}

/** The owner, or the app's own server, ends one by id, whoever bills it; audited. Refuses with `not_found`. */
export async function endSubscriptionByHand(
  tx: Writer,
  change: CatalogChange,
  id: string,
): Promise<Subscription> {
  const { environmentId, by, nowMs } = change;
  const sql = `SELECT ${COLUMNS} FROM subscription WHERE environment_id = ?1 AND id = ?2`;
  const before = await tx.get<Subscription>(sql, environmentId, id);
  if (before === null) {
    throw new Refusal("not_found", "No subscription with this id exists here; the list shows them.");
  }
  if (before.status === "ended") return before;
  await endSubscription(tx, environmentId, before, by, nowMs);
  const after: Subscription = { ...before, status: "ended", endedAt: nowMs };
  await writeAudit(tx, {
    environmentId,
    atMs: nowMs,
    actor: by,
    action: "subscription.ended",
    target: `subscription:${id}`,
    before: viewSubscription(before),
    after: viewSubscription(after),
  });
  return after;
}

async function grantPlanKey(
  tx: Writer,
  occasion: Occasion,
  subscriptionId: string,
  plan: string,
): Promise<string> {
  const grant = await grantAccess(tx, {
    ...occasion,
    entitlement: plan,
    source: "plan",
    sourceRef: subscriptionId,
    reason: null,
    expiresAtMs: null,
  });
  return grant.id;
}
