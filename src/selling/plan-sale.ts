/**
 * A plan sold, renewed and ended. One active plan a person: another plan granted by a relay ends the relay-granted one before it; a
 * subscription billed by the card processor is never ended by a relay. There is no lapse timer: a plan is active until it is revoked.
 * Source: the specification's "Actions" (grant_plan, revoke_plan), decisions section 5.
 */
import { listLiveGrants } from "../people/access-grant.ts";
import type { Reader, Writer } from "../store/port.ts";
import { fail, type Occasion, type SaleOutcome } from "./occasion.ts";
import { findPlan } from "./plan.ts";
import { insertPurchase, type NewPurchase, newPurchaseId, type PurchaseData } from "./purchase.ts";
import { claimRef, findOwnPurchase } from "./ref.ts";
import { soldByRelay } from "./sold-through.ts";
import {
  currentPlan,
  endSubscription,
  findActiveSubscription,
  renewSubscription,
  type Subscription,
  startSubscription,
} from "./subscription.ts";

/** grant_plan: the plan must be sold through the relay that runs; a payment recorded under this ref before is skipped, wherever it is sold now. */
export async function grantByRelay(
  tx: Writer,
  occasion: Occasion & { relayName: string },
  name: string,
  ref: string,
): Promise<SaleOutcome> {
  const plan = await findPlan(tx, occasion.environmentId, name);
  if (plan === null || !soldByRelay(plan.soldThrough, occasion.relayName)) {
    const own = await findOwnPurchase(tx, occasion, "plan", name, ref);
    if (own !== null) return skipSold(own.id);
    if (plan === null) return failUnknown(name);
    const message = `\`plan\` names ${name}, which is not sold through the relay ${occasion.relayName}: name that relay in the plan's soldThrough.`;
    return fail("plan_not_sold_here", message, true);
  }
  const active = await findActiveSubscription(tx, occasion.environmentId, occasion.personId);
  if (active?.billedBy !== "processor") return sellPlan(tx, occasion, name, { ref }, null);
  const claim = await claimRef(tx, occasion, "plan", name, ref);
  if ("failure" in claim) return claim.failure;
  if (claim.own !== null) return skipSold(claim.own.id);
  const message = `The person's plan ${active.plan} is billed by the card processor, and one plan is active at a time: end it there, then replay this event.`;
  return fail("billed_by_processor", message);
}

/** Any sale of a plan: starts, renews or switches the subscription and records the payment; `skipped` for a ref recorded before. */
export async function sellPlan(
  tx: Writer,
  occasion: Occasion,
  name: string,
  payment: Pick<NewPurchase, "ref" | "amountMinor" | "currency"> & Pick<PurchaseData, "given">,
  processorCustomerId: string | null,
): Promise<SaleOutcome> {
  const claim = await claimRef(tx, occasion, "plan", name, payment.ref);
  if ("failure" in claim) return claim.failure;
  if (claim.own !== null) return skipSold(claim.own.id);
  const before = await lookAt(tx, occasion);
  const subscription = await settleSubscription(tx, occasion, name, processorCustomerId);
  const id = newPurchaseId(occasion);
  const granted = {
    entitlement: name,
    grant: subscription.grant,
    credits: 0,
    subscription: subscription.id,
  };
  const { given, ...paid } = payment;
  const data = { granted, ...(given === undefined ? {} : { given }) };
  await insertPurchase(tx, occasion, id, { kind: "purchase", itemKind: "plan", item: name, ...paid, data });
  return {
    outcome: "done",
    before,
    after: { ...(await lookAt(tx, occasion)), purchase: id, ref: payment.ref },
  };
}

/**
 * revoke_plan: ends the person's relay-granted subscription on that plan. Under the ref of a payment, only the subscription it paid
 * for: a late cancellation never ends the one that came after.
 */
export async function revokeByRelay(
  tx: Writer,
  occasion: Occasion,
  name: string,
  ref: string,
): Promise<SaleOutcome> {
  const { environmentId, by, nowMs } = occasion;
  const claim = await claimRef(tx, occasion, "plan", name, ref);
  if ("failure" in claim) return claim.failure;
  const active = await findActiveSubscription(tx, environmentId, occasion.personId);
  if (active === null || active.plan !== name) {
    if (active === null && (await findPlan(tx, environmentId, name)) === null) return failUnknown(name);
    return {
      outcome: "skipped",
      message: `The person has no active subscription on ${name}; nothing to end.`,
    };
  }
  if (active.billedBy === "processor") {
    const message = `billed_by_processor: the person's subscription on ${name} is billed by the card processor, so it was left as it is; end it there.`;
    return { outcome: "skipped", code: "billed_by_processor", message };
  }
  const paidFor = claim.own?.data.granted?.subscription;
  if (paidFor !== undefined && paidFor !== active.id) {
    const message = `The subscription paid under this ref (${paidFor}) ended before; the one active now was paid under another.`;
    return { outcome: "skipped", message };
  }
  const before = await lookAt(tx, occasion);
  await endSubscription(tx, environmentId, active, by, nowMs);
  return { outcome: "done", before, after: { ...(await lookAt(tx, occasion)), ended: active.id } };
}

async function settleSubscription(
  tx: Writer,
  occasion: Occasion,
  plan: string,
  processorCustomerId: string | null,
): Promise<{ id: string; grant: string }> {
  const active = await findActiveSubscription(tx, occasion.environmentId, occasion.personId);
  if (active === null) return startSubscription(tx, occasion, plan, processorCustomerId);
  if (active.plan === plan && sameBiller(active, occasion)) return renewSubscription(tx, occasion, active);
  await endSubscription(tx, occasion.environmentId, active, occasion.by, occasion.nowMs);
  return startSubscription(tx, occasion, plan, processorCustomerId);
}

/** A plan that moves from a relay to the card processor begins anew, so that it is ended where it is billed. */
function sameBiller(active: Subscription, occasion: Occasion): boolean {
  return (active.billedBy === "relay") === (occasion.relayName !== null);
}

/** The person's plan and what it grants, for the audit's before and after. */
async function lookAt(tx: Reader, occasion: Occasion) {
  const { plan, subscription } = await currentPlan(tx, occasion.environmentId, occasion.personId);
  const live = await listLiveGrants(tx, { ...occasion, entitlement: null });
  const grants = live.filter((grant) => grant.source === "plan").map((grant) => grant.id);
  return { plan, subscription: subscription?.id ?? null, grants };
}

function skipSold(purchaseId: string): SaleOutcome {
  return { outcome: "skipped", message: `The payment under this ref was recorded before (${purchaseId}).` };
}

function failUnknown(name: string): SaleOutcome {
  const message = `\`plan\` names ${name}, which is no plan here: create it, or name one that exists.`;
  return fail("plan_unknown", message, true);
}
