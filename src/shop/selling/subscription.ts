/**
 * Subscriptions: the plan of a person. A person has one active subscription. One that ends is marked, never removed, and its own grants end
 * with it (manual and purchase grants stay). plan-sale.ts decides who may start or end one.
 */
import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { oneOf, show, textOrNull, time, timeOrNull } from "../../base/schema.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import {
  grantAccess,
  listLiveGrants,
  revokeGrantsOfSource,
  updateGrantArrival,
} from "../people/access-grant.ts";
import { voidPayments } from "./plan-history.ts";
import type { SaleContext } from "./sale.ts";

export const subscriptionStatus = oneOf(["active", "ended"]);
type SubscriptionStatus = Static<typeof subscriptionStatus>;

export const SUBSCRIPTION = defineTable({
  name: "subscription",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    personId: text(),
    plan: text(),
    status: text<SubscriptionStatus>(),
    billedBy: text<"relay" | "processor">(),
    processorCustomerId: orNull(text()),
    relayName: orNull(text()),
    /** The event that started it. */
    eventId: orNull(text()),
    startedAt: integer(),
    renewedAt: orNull(integer()),
    endedAt: orNull(integer()),
  },
});
export type Subscription = RowOf<typeof SUBSCRIPTION>;

/** A subscription as the API shows it, without the processor's customer id. */
export const subscriptionView = Type.Object({
  id: Type.String(),
  person: Type.String(),
  plan: Type.String(),
  status: subscriptionStatus,
  billedBy: oneOf(["relay", "processor"]),
  relay: textOrNull,
  eventId: textOrNull,
  startedAt: time,
  renewedAt: timeOrNull,
  endedAt: timeOrNull,
});
type SubscriptionView = Static<typeof subscriptionView>;

/** A subscription in a list; the address is null once the person is erased. */
export const subscriptionItem = Type.Object({ ...subscriptionView.properties, personEmail: textOrNull });
export type SubscriptionItem = Static<typeof subscriptionItem>;

export function viewSubscription(row: Subscription): SubscriptionView {
  return show(subscriptionView, { ...row, person: row.personId, relay: row.relayName });
}

export function findActiveSubscription(
  tx: Reader,
  environmentId: number,
  personId: string,
): Promise<Subscription | null> {
  const rest = "WHERE environment_id = $environmentId AND person_id = $personId AND status = 'active'";
  return SUBSCRIPTION.get(tx, rest, { environmentId, personId });
}

/** Finds the newest subscription of this plan that a relay granted. */
export function findNewestSubscription(
  tx: Reader,
  { environmentId, personId }: Pick<Subscription, "environmentId" | "personId">,
  plan: string,
): Promise<Subscription | null> {
  const rest = `INDEXED BY subscription_by_person WHERE person_id = $personId AND environment_id = $environmentId
    AND billed_by = 'relay' AND plan = $plan ORDER BY id DESC LIMIT 1`;
  return SUBSCRIPTION.get(tx, rest, { environmentId, personId, plan });
}

interface SubscriptionFilter {
  person?: string | undefined;
  status?: SubscriptionStatus | undefined;
}

/** Lists one page of subscriptions, newest first. */
export async function listSubscriptions(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  filter: SubscriptionFilter = {},
): Promise<Page<SubscriptionItem>> {
  const walk = {
    index: `subscription_by_${filter.person === undefined ? "environment" : "person"}`,
    key: "id",
    led: [equals("environment_id", environmentId), equals("person_id", filter.person)],
    fits: [equals("status", filter.status)],
    columns: `${SUBSCRIPTION.columnsOf("subscription")}, (SELECT email FROM person WHERE person.id = subscription.person_id) AS personEmail`,
  } as const;
  type Row = Subscription & { personEmail: string | null };
  const show = (row: Row): SubscriptionItem => ({ ...viewSubscription(row), personEmail: row.personEmail });
  return await walkPage<Subscription, SubscriptionItem, { personEmail: string | null }>(
    tx,
    SUBSCRIPTION,
    request,
    walk,
    show,
  );
}

/** Starts a subscription and grants its plan's key. There must be no active one. */
export async function startSubscription(
  tx: Writer,
  sale: SaleContext,
  plan: string,
  processorCustomerId: string | null,
): Promise<PlanGrant> {
  const id = await insertSubscription(tx, sale, plan, {
    status: "active",
    endedAt: null,
    processorCustomerId,
  });
  return { id, ...(await insertPlanGrant(tx, sale, id, plan)) };
}

/** A subscription, the grant of its key, and the event that ended that grant at once; null: none did. */
interface PlanGrant {
  id: string;
  grant: string;
  endedByEvent: string | null;
}

/** Records a subscription that ended at once, for a payment that came too late for its plan. Returns its id. */
export function recordEndedSubscription(tx: Writer, sale: SaleContext, plan: string): Promise<string> {
  const endedAt = sale.nowMs;
  return insertSubscription(tx, sale, plan, { status: "ended", endedAt, processorCustomerId: null });
}

async function insertSubscription(
  tx: Writer,
  { environmentId, personId, relayName, eventId, nowMs }: SaleContext,
  plan: string,
  stands: Pick<Subscription, "status" | "endedAt" | "processorCustomerId">,
): Promise<string> {
  const id = newId("sub", nowMs);
  const billedBy = relayName === null ? "processor" : "relay";
  await SUBSCRIPTION.insert(tx, {
    id,
    environmentId,
    personId,
    plan,
    billedBy,
    relayName,
    eventId,
    startedAt: nowMs,
    renewedAt: null,
    ...stands,
  });
  return id;
}

/** Records that a payment renewed the subscription. */
export async function recordRenewal(tx: Writer, id: string, nowMs: number): Promise<void> {
  await SUBSCRIPTION.change(tx, { id }, { renewedAt: nowMs });
}

/** Renews the grant of an active subscription's key, and grants it again if it was revoked. */
export async function renewPlanGrant(
  tx: Writer,
  sale: SaleContext,
  active: Subscription,
): Promise<PlanGrant> {
  const { id, plan } = active;
  const live = await listLiveGrants(tx, { ...sale, entitlement: plan });
  const own = live.find((grant) => grant.source === "plan" && grant.sourceRef === id);
  if (own === undefined) return { id, ...(await insertPlanGrant(tx, sale, id, plan)) };
  await updateGrantArrival(tx, own.id, sale.arrival);
  return { id, grant: own.id, endedByEvent: null };
}

/** Ends an active subscription and its grants. The person then has the default plan. */
export async function endSubscription(
  tx: Writer,
  { id, environmentId }: Subscription,
  { by, nowMs }: { by: string; nowMs: number },
): Promise<void> {
  const sql = "UPDATE subscription SET status = 'ended', ended_at = ?2 WHERE id = ?1 AND status = 'active'";
  await tx.run(sql, id, nowMs);
  await revokeGrantsOfSource(tx, { environmentId, source: "plan", sourceRef: id, by, nowMs });
}

/** Ends a subscription by id for an owner or the app's server, under either kind of billing; audited. Throws `not_found`. */
export async function endSubscriptionManually(tx: Writer, change: Change, id: string): Promise<Subscription> {
  const { environmentId, by, nowMs } = change;
  const sentence =
    "No subscription with this id exists in this environment; the list shows the existing ones.";
  const before = await SUBSCRIPTION.require(tx, { environmentId, id }, sentence);
  if (before.status === "ended") return before;
  await endSubscription(tx, before, { by, nowMs });
  await voidPayments(tx, before);
  const after: Subscription = { ...before, status: "ended", endedAt: nowMs };
  await writeAudit(tx, {
    ...change,
    action: "subscription.ended",
    target: `subscription:${id}`,
    before: viewSubscription(before),
    after: viewSubscription(after),
  });
  return after;
}

async function insertPlanGrant(
  tx: Writer,
  sale: SaleContext,
  id: string,
  plan: string,
): Promise<Omit<PlanGrant, "id">> {
  const source = { source: "plan", sourceRef: id } as const;
  const unending = { reason: null, expiresAtMs: null };
  const { grantArrival: arrival = sale.arrival } = sale;
  const given = await grantAccess(tx, { ...sale, ...source, ...unending, arrival, entitlement: plan });
  return { grant: given.id, endedByEvent: given.endedByEvent };
}
