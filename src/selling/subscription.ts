/**
 * Subscriptions: which plan a person is on. One active at a time; one that ends is marked, never removed, and takes its own grants with
 * it (by-hand and purchase grants stay). It never decides who may start or end one: that is plan-sale.ts.
 */
import { type Static, Type } from "typebox";
import { newId } from "../ground/id.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import { oneOf, show, textOrNull, time, timeOrNull } from "../ground/schema.ts";
import { grantAccess, listLiveGrants, revokeGrantsOfSource } from "../people/access-grant.ts";
import type { Reader, Writer } from "../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../store/table.ts";
import { equals, walkPage } from "../store/walk.ts";
import { type Change, writeAudit } from "../watch/audit.ts";
import { lastArrived } from "./arrival.ts";
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
    /** Under which it was cancelled. */
    endedRef: orNull(text()),
    /** The event that ended it, or the last one that would have; null: it was ended otherwise, or by an earlier version. */
    endedEventId: orNull(text()),
    /** The event whose payment for it arrived last; null: of a card payment, of an earlier version, or none. */
    paidEventId: orNull(text()),
  },
});
export type Subscription = RowOf<typeof SUBSCRIPTION>;

/** As the API shows one; the processor's customer id stays inside. */
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

/** As it is listed, among others' ones; the address is null once they are erased. */
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

/** The one on this plan that was cancelled under the ref. */
export function findCancelled(
  tx: Reader,
  {
    environmentId,
    personId,
    plan,
    ref,
  }: Pick<Subscription, "environmentId" | "personId" | "plan"> & { ref: string },
): Promise<Subscription | null> {
  const rest = `WHERE environment_id = $environmentId AND person_id = $personId AND plan = $plan AND ended_ref = $ref
    ORDER BY id DESC LIMIT 1`;
  return SUBSCRIPTION.get(tx, rest, { environmentId, personId, plan, ref });
}

/** A person's newest that are looked at. */
const MAX_STANDING = 200;

/** The person's that relays gave and that events alone began and ended, with what such events left behind; the newest first. None that ended by hand. */
export function listByEvents(
  tx: Reader,
  { environmentId, personId }: Pick<Subscription, "environmentId" | "personId">,
): Promise<Subscription[]> {
  const rest = `INDEXED BY subscription_by_person WHERE person_id = $personId AND environment_id = $environmentId AND billed_by = 'relay'
    AND (status = 'active' OR ended_event_id IS NOT NULL) ORDER BY id DESC LIMIT ${MAX_STANDING}`;
  return SUBSCRIPTION.all(tx, rest, { environmentId, personId });
}

/** The event whose payment for it arrived last, as far as that is known. */
export function lastPaying({ paidEventId, eventId }: Subscription): string | null {
  return lastArrived([paidEventId, eventId]);
}

interface SubscriptionFilter {
  person?: string | undefined;
  status?: SubscriptionStatus | undefined;
}

/** Not what a cancellation that found nothing to end left behind: nobody was on that. */
const STOOD = "NOT (billed_by = 'relay' AND event_id IS NULL)";

/** Newest first. */
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
    fits: [equals("status", filter.status), { sql: STOOD, values: [] }],
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

/** Starts one and grants its plan's key, sourced on it. There must be no active one. Answers its id and the grant's. */
export async function startSubscription(
  tx: Writer,
  sale: SaleContext,
  plan: string,
  processorCustomerId: string | null,
): Promise<{ id: string; grant: string }> {
  const ended = { endedAt: null, endedEventId: null, endedRef: null } as const;
  const stands = { status: "active", ...ended, paidEventId: sale.eventId, processorCustomerId } as const;
  const id = await insertSubscription(tx, sale, plan, stands);
  return { id, grant: await grantPlanKey(tx, sale, id, plan) };
}

/**
 * Writes one that ended as it began: of a payment that came too late for its plan, or, where the sale has no event, of a cancellation that ended
 * nothing, under its ref. Answers its id.
 */
export function recordEnded(
  tx: Writer,
  sale: SaleContext,
  plan: string,
  { endedEventId, endedRef = null }: { endedEventId: string; endedRef?: string | null },
): Promise<string> {
  return insertSubscription(tx, sale, plan, {
    status: "ended",
    endedAt: sale.nowMs,
    endedEventId,
    endedRef,
    paidEventId: sale.eventId,
    processorCustomerId: null,
  });
}

async function insertSubscription(
  tx: Writer,
  { environmentId, personId, relayName, eventId, nowMs }: SaleContext,
  plan: string,
  stands: Pick<
    Subscription,
    "status" | "endedAt" | "endedEventId" | "endedRef" | "paidEventId" | "processorCustomerId"
  >,
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

/** Keeps an active one going: stamps it, and gives its key again should it have been taken meanwhile. Answers the live grant's id. */
export async function renewSubscription(
  tx: Writer,
  sale: SaleContext,
  active: Subscription,
): Promise<{ id: string; grant: string }> {
  const { id, plan } = active;
  await SUBSCRIPTION.change(tx, { id }, { renewedAt: sale.nowMs });
  await notePaid(tx, active, sale.eventId);
  const live = await listLiveGrants(tx, { ...sale, entitlement: plan });
  const own = live.find((grant) => grant.source === "plan" && grant.sourceRef === id);
  return { id, grant: own?.id ?? (await grantPlanKey(tx, sale, id, plan)) };
}

/** Ends an active one and the grants sourced on it; the person lands on the default plan. `ref`: what it is cancelled under; `eventId`: by which event. */
export async function endSubscription(
  tx: Writer,
  { id, environmentId }: Subscription,
  {
    by,
    nowMs,
    ref = null,
    eventId = null,
  }: { by: string; nowMs: number; ref?: string | null; eventId?: string | null },
): Promise<void> {
  const sql = `UPDATE subscription SET status = 'ended', ended_at = ?2, ended_ref = ?3, ended_event_id = ?4
    WHERE id = ?1 AND status = 'active'`;
  await tx.run(sql, id, nowMs, ref, eventId);
  await revokeGrantsOfSource(tx, { environmentId, source: "plan", sourceRef: id, by, nowMs });
}

/** Of one that has ended: that this event would have ended it too. */
export async function noteEnd(tx: Writer, id: string, endedEventId: string): Promise<void> {
  await SUBSCRIPTION.change(tx, { id }, { endedEventId });
}

/** That this event paid for it too. */
export async function notePaid(tx: Writer, paid: Subscription, eventId: string | null): Promise<void> {
  const paidEventId = lastArrived([lastPaying(paid), eventId]);
  await SUBSCRIPTION.change(tx, { id: paid.id }, { paidEventId });
}

/** The owner, or the app's own server, ends one by id, whoever bills it; audited. Refuses with `not_found`. */
export async function endSubscriptionByHand(tx: Writer, change: Change, id: string): Promise<Subscription> {
  const { environmentId, by, nowMs } = change;
  const sentence = "No subscription with this id exists here; the list shows them.";
  const before = await SUBSCRIPTION.require(tx, { environmentId, id }, sentence);
  if (before.status === "ended") return before;
  await endSubscription(tx, before, { by, nowMs });
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

async function grantPlanKey(tx: Writer, sale: SaleContext, id: string, plan: string): Promise<string> {
  const source = { source: "plan", sourceRef: id } as const;
  const unending = { reason: null, expiresAtMs: null };
  return (await grantAccess(tx, { ...sale, ...source, ...unending, entitlement: plan })).id;
}
