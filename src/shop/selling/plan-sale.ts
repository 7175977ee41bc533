/**
 * Sells, renews and ends plans. A person has one active plan: a relay that grants another plan ends the earlier one that a relay granted, and
 * never a subscription that the card processor bills. Payments and cancellations count in order of arrival (plan-order.ts). If a later arrival
 * ran first, the person is switched to the plan that this order gives. A plan does not expire; it is active until it is revoked. Source: the
 * specification's "Actions" (grant_plan, revoke_plan), decisions section 5.
 */
import { failForNow, type Outcome } from "../../base/outcome.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { listLiveGrants, reorderGrants } from "../people/access-grant.ts";
import { formatEndedByLaterEvent } from "../people/access-order.ts";
import { findDefaultPlan, plans } from "./plan.ts";
import {
  hasLaterArrival,
  markConfirmations,
  readPlanHistory,
  recordCancellation,
  wasBilledSince,
} from "./plan-history.ts";
import { derivePlanOrder, hasOwnRef, type PlanOrder, type PlanPayment } from "./plan-order.ts";
import { findPurchase, type Purchase, setPurchaseArrival } from "./purchase.ts";
import {
  claimRef,
  failUnknown,
  findSoldHere,
  type Payment,
  type RelaySale,
  type SaleContext,
  type SaleGrant,
  sell,
} from "./sale.ts";
import {
  endSubscription,
  findActiveSubscription,
  findNewestSubscription,
  recordEndedSubscription,
  recordRenewal,
  renewPlanGrant,
  type Subscription,
  startSubscription,
} from "./subscription.ts";

/** Sells a plan that moves to another person without putting them on it, because the payment put its first person on no plan at the end. */
export function sellSpentPlan(
  tx: Writer,
  sale: SaleContext,
  name: string,
  payment: Payment,
): Promise<Outcome> {
  const granted = { entitlement: name, credits: 0 };
  return sell(
    tx,
    { ...sale, arrival: 0 },
    payment,
    sellingOf(tx, sale, name, () => Promise.resolve({ granted })),
  );
}

/** Finds a person's plan: that of the active subscription, otherwise the default. `plan` is null if there is no plan at all. */
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

/** Implements grant_plan. The plan must be sold through the relay that runs. */
export async function grantByRelay(
  tx: Writer,
  sale: RelaySale,
  name: string,
  payment: Payment,
): Promise<Outcome> {
  const found = await findSoldHere(tx, sale, plans, name, payment.ref);
  if ("failure" in found) return found.failure;
  if ("previous" in found) return skipSold(tx, sale, found.previous);
  return sellByRelay(tx, sale, name, payment);
}

/** Sells a plan of a relay in its place in the order of arrival. */
export async function sellByRelay(
  tx: Writer,
  sale: RelaySale,
  name: string,
  payment: Payment,
): Promise<Outcome> {
  const { ref } = payment;
  const active = await findActiveSubscription(tx, sale.environmentId, sale.personId);
  if (active?.billedBy === "processor" && !(await wasBilledSince(tx, sale)))
    return rejectBilledByProcessor(tx, sale, name, ref, active);
  if (!(await hasLaterArrival(tx, sale))) return sellPlan(tx, sale, name, payment, null);
  return sell(
    tx,
    sale,
    payment,
    sellingOf(tx, sale, name, (id) => grantRecordedPayment(tx, sale, name, ref, id)),
  );
}

async function rejectBilledByProcessor(
  tx: Writer,
  sale: RelaySale,
  name: string,
  ref: string,
  { plan }: Subscription,
): Promise<Outcome> {
  const claim = await claimRef(tx, sale, "plan", name, ref);
  if ("failure" in claim) return claim.failure;
  if (claim.previous !== null) return skipSold(tx, sale, claim.previous);
  const message = `The person's plan ${plan} is billed by the card processor, and only one plan can be active at a time. End it at the processor, and with relay people end ${sale.personId} ${plan}, then replay this event.`;
  return failForNow("billed_by_processor", message);
}

/** Sells a plan that no later arrival affects: starts, renews, confirms or switches the subscription. */
export function sellPlan(
  tx: Writer,
  sale: SaleContext,
  name: string,
  payment: Payment,
  processorCustomerId: string | null,
): Promise<Outcome> {
  const grantItem = () => grantNewest(tx, sale, name, payment.ref, processorCustomerId);
  return sell(tx, sale, payment, sellingOf(tx, sale, name, grantItem));
}

function sellingOf(
  tx: Writer,
  sale: SaleContext,
  item: string,
  grantItem: (purchaseId: string) => Promise<SaleGrant>,
) {
  return {
    itemKind: "plan",
    item,
    skip: (previous: Purchase) => skipSold(tx, sale, previous),
    readState: () => readPlanState(tx, sale),
    grantItem,
  } as const;
}

async function grantNewest(
  tx: Writer,
  sale: SaleContext,
  plan: string,
  ref: string,
  processorCustomerId: string | null,
): Promise<SaleGrant> {
  const active = await findActiveSubscription(tx, sale.environmentId, sale.personId);
  // A plan that moves between a relay and the card processor starts a new subscription, because each ends where it is billed.
  const goesOn = active?.plan === plan && (active.billedBy === "relay") === (sale.relayName !== null);
  const confirmation = goesOn && !hasOwnRef({ ref, eventId: sale.eventId });
  if (goesOn && !confirmation) await recordRenewal(tx, active.id, sale.nowMs);
  if (!goesOn && active !== null) await endSubscription(tx, active, sale);
  const { id, grant, endedByEvent } = goesOn
    ? await renewPlanGrant(tx, sale, active)
    : await startSubscription(tx, sale, plan, processorCustomerId);
  return {
    granted: { entitlement: plan, grant, credits: 0, subscription: id },
    message: endedByEvent === null ? null : formatEndedByLaterEvent(plan, endedByEvent, sale.personId),
    confirmation,
  };
}

/** Records a payment after a later arrival ran: the order of arrival decides the plan. */
async function grantRecordedPayment(
  tx: Writer,
  sale: RelaySale,
  plan: string,
  ref: string,
  purchaseId: string,
): Promise<SaleGrant> {
  const { arrival, eventId, relayName } = sale;
  const newPayment: PlanPayment = { id: purchaseId, plan, ref, arrival, eventId, relayName, confirms: null };
  const order = await applyPlanOrder(tx, sale, newPayment);
  const confirmation = order.confirmations.has(purchaseId);
  if (order.current === newPayment)
    return { ...(await grantNewest(tx, sale, plan, ref, null)), confirmation };
  const change = await switchPlan(tx, sale, order.current);
  const { before, after: active } = change;
  const isOn = active?.plan === plan && active.billedBy === "relay";
  if (isOn && !confirmation) await recordRenewal(tx, active.id, sale.nowMs);
  const subscription = isOn
    ? active.id
    : ((await findNewestSubscription(tx, sale, plan))?.id ?? (await recordEndedSubscription(tx, sale, plan)));
  return {
    granted: { entitlement: plan, credits: 0, subscription },
    message: isOn && before?.id === active.id ? null : formatLatePayment(sale, plan, order, change),
    confirmation,
  };
}

/**
 * Derives the plan from the person's payments and cancellations, with one payment that is about to be recorded, and updates which are only
 * confirmations.
 */
export async function applyPlanOrder(
  tx: Writer,
  sale: SaleContext,
  newPayment: PlanPayment | null,
): Promise<PlanOrder> {
  const history = await readPlanHistory(tx, sale);
  const payments = newPayment === null ? history.payments : [...history.payments, newPayment];
  const order = derivePlanOrder(payments, history.cancellations);
  await markConfirmations(tx, history, order.confirmations);
  return order;
}

interface PlanSwitch {
  /** The subscription before the switch. */
  before: Subscription | null;
  after: Subscription | null;
}

/** Switches the person to the plan of the payment that the order of arrival selects. */
export async function switchPlan(
  tx: Writer,
  sale: SaleContext,
  current: PlanPayment | null,
): Promise<PlanSwitch> {
  const before = await findActiveSubscription(tx, sale.environmentId, sale.personId);
  if (before?.billedBy === "processor" || before?.plan === current?.plan) return { before, after: before };
  if (before !== null) await endSubscription(tx, before, sale);
  if (current === null || current.relayName === null) return { before, after: null };
  const { relayName, eventId, arrival, plan } = current;
  await startSubscription(tx, { ...sale, relayName, eventId, arrival }, plan, null);
  return { before, after: await findActiveSubscription(tx, sale.environmentId, sale.personId) };
}

/** Formats the result of a payment that came too late for its plan, or that shows that a cancellation ended nothing. */
function formatLatePayment(
  { personId }: SaleContext,
  plan: string,
  { current, ended }: PlanOrder,
  { before, after }: PlanSwitch,
): string {
  const did =
    before?.id === after?.id
      ? "changed nothing else"
      : after !== null
        ? `put the person on ${after.plan} again`
        : `ended ${before?.plan}, which was paid for before`;
  const why =
    current !== null
      ? `${current.eventId ?? `the receipt ${current.ref}`}, which paid for ${current.plan}`
      : `${ended?.eventId ?? "another event"}, which canceled ${ended?.plan ?? plan}`;
  const sentence = `The payment was recorded and ${did}, because this event arrived before ${why}, and plans follow the order of arrival.`;
  if (after?.plan === plan) return sentence;
  return `${sentence} To give the person ${plan} anyway, use the dashboard or relay people grant ${personId} ${plan}; its next payment puts them on it.`;
}

/**
 * Implements revoke_plan: ends the person's subscription of that plan if a relay granted it, unless a later payment keeps it: one that arrived
 * after the cancellation or, if the cancellation names a payment's ref, after that payment and under another ref.
 */
export async function revokeByRelay(
  tx: Writer,
  buyer: RelaySale,
  name: string,
  { ref }: Payment,
): Promise<Outcome> {
  const claim = await claimRef(tx, buyer, "plan", name, ref);
  if ("failure" in claim) return claim.failure;
  const sale = { ...buyer, personId: claim.previous?.personId ?? buyer.personId };
  const { environmentId, personId, arrival, eventId } = sale;
  const active = await findActiveSubscription(tx, environmentId, personId);
  if (active === null && (await plans.find(tx, environmentId, name)) === null)
    return failUnknown(plans, name);
  const ownRef = hasOwnRef({ ref, eventId }) ? ref : "";
  await recordCancellation(tx, sale, { plan: name, ref: ownRef, arrival, eventId });
  if (active?.plan !== name) {
    // The cancellation may turn a later confirmation into a payment.
    if (await hasLaterArrival(tx, sale)) await applyPlanOrder(tx, sale, null);
    const message = `The person has no active subscription on ${name}, so there was nothing to end. A payment that arrives after its cancellation still starts the plan: if that happens, end the plan with relay people end ${personId} ${name}.`;
    return { outcome: "skipped", message };
  }
  if (active.billedBy === "processor") {
    const message = `billed_by_processor: the person's subscription on ${name} is billed by the card processor, so it was not changed. End it at the processor, and with relay people end ${personId} ${name}.`;
    return { outcome: "skipped", code: "billed_by_processor", message };
  }
  const { current, keepers } = await applyPlanOrder(tx, sale, null);
  if (current?.plan === name) {
    const keeper = [...keepers].find(([one]) => one.arrival === arrival && one.ref === ownRef)?.[1] ?? null;
    return skipCancellation(sale, name, ownRef, keeper ?? current, keeper !== null);
  }
  const before = await readPlanState(tx, sale);
  await endSubscription(tx, active, sale);
  return { outcome: "done", before, after: { ...(await readPlanState(tx, sale)), ended: active.id } };
}

/** Skips a cancellation that a payment outlasts, and names that payment. `isUnderOtherRef`: the payment came after the canceled one. */
function skipCancellation(
  { personId }: SaleContext,
  plan: string,
  ref: string,
  keeper: PlanPayment,
  isUnderOtherRef: boolean,
): Outcome {
  const why = isUnderOtherRef
    ? `the payment under the ref ${keeper.ref} arrived after the payment under the ref ${ref}`
    : `the payment under the ref ${keeper.ref} (${keeper.eventId ?? "a receipt"}) arrived after this cancellation`;
  const message = `${plan} was left active, because ${why}, and plans follow the order of arrival. To end it anyway, use the dashboard or relay people end ${personId} ${plan}.`;
  return { outcome: "skipped", message, after: { plan, keptByRef: keeper.ref } };
}

/** Reads the person's plan and its grants. */
export async function readPlanState(tx: Reader, sale: SaleContext) {
  const { plan, subscription } = await currentPlan(tx, sale.environmentId, sale.personId);
  const live = await listLiveGrants(tx, { ...sale, entitlement: null });
  const grants = live.filter((grant) => grant.source === "plan").map((grant) => grant.id);
  return { plan, subscription: subscription?.id ?? null, grants };
}

/** Skips a ref that was recorded before. If a later event recorded it, the payment moves to this event's earlier arrival. */
async function skipSold(tx: Writer, buyer: SaleContext, previous: Purchase): Promise<Outcome> {
  const sale = { ...buyer, personId: previous.personId };
  if (sale.arrival < previous.arrival) {
    await setPurchaseArrival(tx, previous.id, sale.arrival);
    const { current } = await applyPlanOrder(tx, sale, null);
    const { after } = await switchPlan(tx, sale, current);
    if (after?.billedBy === "relay" && current !== null)
      await reorderGrants(tx, { ...sale, source: "plan", sourceRef: after.id, arrival: current.arrival });
  }
  const refund = await findPurchase(tx, sale.environmentId, "refund", previous.ref);
  const since = refund === null ? "" : ` and later refunded (${refund.id}); it stays refunded`;
  return {
    outcome: "skipped",
    message: `The payment under this ref was already recorded (${previous.id})${since}.`,
  };
}
