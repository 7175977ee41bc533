/**
 * A plan sold, renewed and ended. One active plan a person: another plan granted by a relay ends the relay-granted one before it; a
 * subscription billed by the card processor is never ended by a relay. Payments and cancellations count in the order in which their events
 * arrived: one that waited or was tried again undoes nothing that a later arrival did. There is no lapse timer: a plan is active until it is
 * revoked.
 * Source: the specification's "Actions" (grant_plan, revoke_plan), decisions section 5.
 */
import { failForNow, type Outcome } from "../ground/outcome.ts";
import { listLiveGrants } from "../people/access-grant.ts";
import type { Reader, Writer } from "../store/port.ts";
import { arrivedAfter, lastArrived } from "./arrival.ts";
import { findDefaultPlan, plans } from "./plan.ts";
import type { Purchase } from "./purchase.ts";
import {
  claimRef,
  failUnknown,
  findSoldHere,
  type Payment,
  type RelaySale,
  type SaleContext,
  sell,
} from "./sale.ts";
import {
  endSubscription,
  findActiveSubscription,
  findCancelled,
  lastPaying,
  listByEvents,
  noteEnd,
  notePaid,
  recordEnded,
  renewSubscription,
  type Subscription,
  startSubscription,
} from "./subscription.ts";

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

/** grant_plan: the plan must be sold through the relay that runs. */
export async function grantByRelay(tx: Writer, sale: RelaySale, name: string, ref: string): Promise<Outcome> {
  const found = await findSoldHere(tx, sale, plans, name, ref);
  if ("failure" in found) return found.failure;
  if ("own" in found) return skipSold(found.own);
  const active = await findActiveSubscription(tx, sale.environmentId, sale.personId);
  const passed = active?.billedBy === "processor" ? null : await findPassed(tx, sale, name, active);
  if (passed !== null) return recordPassed(tx, sale, name, ref, passed, active);
  if (active?.billedBy !== "processor") return sellPlan(tx, sale, name, { ref }, null);
  const claim = await claimRef(tx, sale, "plan", name, ref);
  if ("failure" in claim) return claim.failure;
  if (claim.own !== null) return skipSold(claim.own);
  const message = `The person's plan ${active.plan} is billed by the card processor, and one plan is active at a time: end it there and in the dashboard or with relay people end ${sale.personId} ${active.plan}, then replay this event.`;
  return failForNow("billed_by_processor", message);
}

/** A later arrival that a payment is too late for, and what it did. */
interface Passed {
  later: string;
  /** The other plan that it paid for; null: it cancelled the one that is paid for. */
  paidFor: string | null;
  /** The newest subscription on that plan; null: there never was one. */
  subscription: Subscription | null;
}

/**
 * What a payment is too late for: its event waited, was tried again or replayed, and one that arrived after it paid for another plan or cancelled
 * this one. Nothing an event holds tells when it was paid, so what a provider delivers late is not known.
 */
async function findPassed(
  tx: Reader,
  sale: RelaySale,
  plan: string,
  active: Subscription | null,
): Promise<Passed | null> {
  if (active?.plan === plan) return null;
  const all = await listByEvents(tx, sale);
  const [own, others] = [all.filter((one) => one.plan === plan), all.filter((one) => one.plan !== plan)];
  const subscription = own[0] ?? null;
  const paid = lastArrived(others.map(lastPaying));
  if (paid !== null && arrivedAfter(paid, sale.eventId)) {
    const paidFor = others.find((one) => lastPaying(one) === paid)?.plan ?? null;
    return { later: paid, paidFor, subscription };
  }
  const ended = lastArrived(own.map(({ endedEventId }) => endedEventId));
  return ended !== null && arrivedAfter(ended, sale.eventId)
    ? { later: ended, paidFor: null, subscription }
    : null;
}

/**
 * Records a payment that came too late. One that its own plan's cancellation passed would have taken the person off the plan paid for before it: of
 * that nothing is left either.
 */
async function recordPassed(
  tx: Writer,
  sale: RelaySale,
  name: string,
  ref: string,
  { later, paidFor, subscription }: Passed,
  active: Subscription | null,
): Promise<Outcome> {
  const left =
    paidFor === null && active !== null && arrivedAfter(sale.eventId, lastPaying(active)) ? active : null;
  const give = async () => {
    if (left !== null) await endSubscription(tx, left, { ...sale, eventId: sale.eventId });
    if (subscription !== null) await notePaid(tx, subscription, sale.eventId);
    const id = subscription?.id ?? (await recordEnded(tx, sale, name, { endedEventId: later }));
    return { entitlement: name, credits: 0, subscription: id };
  };
  const look = () => lookAt(tx, sale);
  const outcome = await sell(tx, sale, { ref }, { itemKind: "plan", item: name, skip: skipSold, look, give });
  if (outcome.outcome !== "done") return outcome;
  const did = paidFor === null ? `cancelled ${name}` : `paid for ${paidFor}`;
  const ends = left === null ? "changed nothing else" : `ended ${left.plan}, which was paid for before`;
  const message = `The payment was recorded and ${ends}, because this event arrived before ${later}, which ${did}, and plans go by the order of arrival. Should the person have ${name} all the same, grant it in the dashboard or with relay people grant ${sale.personId} ${name}; its next payment puts them on it.`;
  return { ...outcome, message };
}

/** Any sale of a plan: starts, renews or switches the subscription. */
export function sellPlan(
  tx: Writer,
  sale: SaleContext,
  name: string,
  payment: Payment,
  processorCustomerId: string | null,
): Promise<Outcome> {
  return sell(tx, sale, payment, {
    itemKind: "plan",
    item: name,
    skip: skipSold,
    look: () => lookAt(tx, sale),
    give: async () => {
      const { id, grant } = await settleSubscription(tx, sale, name, processorCustomerId);
      return { entitlement: name, grant, credits: 0, subscription: id };
    },
  });
}

/**
 * revoke_plan: ends the person's relay-granted subscription on that plan. Under the ref of a payment only the subscription it paid for, and
 * under any other ref one subscription for good: a late cancellation never ends the one that came after.
 */
export async function revokeByRelay(
  tx: Writer,
  sale: RelaySale,
  name: string,
  ref: string,
): Promise<Outcome> {
  const { environmentId, by, nowMs } = sale;
  const claim = await claimRef(tx, sale, "plan", name, ref);
  if ("failure" in claim) return claim.failure;
  const cancelled = await findCancelled(tx, { ...sale, plan: name, ref });
  const paidFor = claim.own?.data.granted?.subscription;
  // One that came too late and ended nothing stands for itself, unless its ref was paid under since.
  const isLeft = cancelled?.eventId === null && cancelled.startedAt >= (claim.own?.createdAt ?? 0);
  const meant = isLeft ? cancelled.id : (paidFor ?? cancelled?.id);
  const active = await findActiveSubscription(tx, environmentId, sale.personId);
  if (active === null || active.plan !== name) {
    if (active === null && (await plans.find(tx, environmentId, name)) === null) {
      return failUnknown(plans, name);
    }
    if (meant === undefined) await noteCancelled(tx, sale, name);
    const message = `The person has no active subscription on ${name}, so there was nothing to end. A payment that comes after its cancellation starts the plan all the same: should one, end it then, in the dashboard or with relay people end ${sale.personId} ${name}.`;
    return { outcome: "skipped", message };
  }
  if (active.billedBy === "processor") {
    const message = `billed_by_processor: the person's subscription on ${name} is billed by the card processor, so it was left as it is: end it there, and here in the dashboard or with relay people end ${sale.personId} ${name}.`;
    return { outcome: "skipped", code: "billed_by_processor", message };
  }
  if (meant !== undefined && meant !== active.id) {
    const how = isLeft || paidFor === undefined ? "cancelled" : "paid";
    const message = `The subscription ${how} under this ref (${meant}) ended before; the one active now was paid under another.`;
    return { outcome: "skipped", message };
  }
  const paid = lastPaying(active);
  if (sale.eventId !== null && arrivedAfter(paid, sale.eventId)) {
    // Told again under its ref it ends nothing either.
    await recordEnded(tx, { ...sale, eventId: null }, name, { endedEventId: sale.eventId, endedRef: ref });
    const message = `${name} was paid for by ${paid}, which arrived after this cancellation, and plans go by the order of arrival, so it was left active. Should it end all the same, end it in the dashboard or with relay people end ${sale.personId} ${name}.`;
    return { outcome: "skipped", message };
  }
  const before = await lookAt(tx, sale);
  await endSubscription(tx, active, { by, nowMs, ref, eventId: sale.eventId });
  return { outcome: "done", before, after: { ...(await lookAt(tx, sale)), ended: active.id } };
}

async function settleSubscription(
  tx: Writer,
  sale: SaleContext,
  plan: string,
  processorCustomerId: string | null,
): Promise<{ id: string; grant: string }> {
  const active = await findActiveSubscription(tx, sale.environmentId, sale.personId);
  if (active === null) return startSubscription(tx, sale, plan, processorCustomerId);
  // A plan that moves from a relay to the card processor begins anew, so that it is ended where it is billed.
  const sameBiller = (active.billedBy === "relay") === (sale.relayName !== null);
  if (active.plan === plan && sameBiller) return renewSubscription(tx, sale, active);
  await endSubscription(tx, active, sale);
  return startSubscription(tx, sale, plan, processorCustomerId);
}

/** A cancellation that found nothing to end is kept: a payment that arrived before it starts the plan no more, should it still run. */
async function noteCancelled(tx: Writer, sale: RelaySale, plan: string): Promise<void> {
  const { eventId } = sale;
  const own = (await listByEvents(tx, sale)).filter((one) => one.plan === plan);
  if (eventId === null || !arrivedAfter(eventId, lastArrived(own.map(({ endedEventId }) => endedEventId))))
    return;
  if (own[0] === undefined)
    await recordEnded(tx, { ...sale, eventId: null }, plan, { endedEventId: eventId });
  else await noteEnd(tx, own[0].id, eventId);
}

/** The person's plan and what it grants. */
async function lookAt(tx: Reader, sale: SaleContext) {
  const { plan, subscription } = await currentPlan(tx, sale.environmentId, sale.personId);
  const live = await listLiveGrants(tx, { ...sale, entitlement: null });
  const grants = live.filter((grant) => grant.source === "plan").map((grant) => grant.id);
  return { plan, subscription: subscription?.id ?? null, grants };
}

function skipSold({ id }: Purchase): Outcome {
  return { outcome: "skipped", message: `The payment under this ref was recorded before (${id}).` };
}
