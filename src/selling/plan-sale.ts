/**
 * A plan sold, renewed and ended. One active plan a person: another plan granted by a relay ends the relay-granted one before it; a
 * subscription billed by the card processor is never ended by a relay. There is no lapse timer: a plan is active until it is revoked.
 * Source: the specification's "Actions" (grant_plan, revoke_plan), decisions section 5.
 */
import { failForNow, type Outcome } from "../ground/outcome.ts";
import { listLiveGrants } from "../people/access-grant.ts";
import type { Reader, Writer } from "../store/port.ts";
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
  if (active?.billedBy !== "processor") return sellPlan(tx, sale, name, { ref }, null);
  const claim = await claimRef(tx, sale, "plan", name, ref);
  if ("failure" in claim) return claim.failure;
  if (claim.own !== null) return skipSold(claim.own);
  const message = `The person's plan ${active.plan} is billed by the card processor, and one plan is active at a time: end it there and in the dashboard or with relay people end ${sale.personId} ${active.plan}, then replay this event.`;
  return failForNow("billed_by_processor", message);
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
  const active = await findActiveSubscription(tx, environmentId, sale.personId);
  if (active === null || active.plan !== name) {
    if (active === null && (await plans.find(tx, environmentId, name)) === null) {
      return failUnknown(plans, name);
    }
    const message = `The person has no active subscription on ${name}, so there was nothing to end. A payment that comes after its cancellation starts the plan all the same: should one, end it then, in the dashboard or with relay people end ${sale.personId} ${name}.`;
    return { outcome: "skipped", message };
  }
  if (active.billedBy === "processor") {
    const message = `billed_by_processor: the person's subscription on ${name} is billed by the card processor, so it was left as it is: end it there, and here in the dashboard or with relay people end ${sale.personId} ${name}.`;
    return { outcome: "skipped", code: "billed_by_processor", message };
  }
  const paidFor = claim.own?.data.granted?.subscription;
  const meant = paidFor ?? (await findCancelled(tx, { ...sale, plan: name, ref }))?.id;
  if (meant !== undefined && meant !== active.id) {
    const how = paidFor === undefined ? "cancelled" : "paid";
    const message = `The subscription ${how} under this ref (${meant}) ended before; the one active now was paid under another.`;
    return { outcome: "skipped", message };
  }
  const before = await lookAt(tx, sale);
  await endSubscription(tx, active, by, nowMs, ref);
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
  await endSubscription(tx, active, sale.by, sale.nowMs);
  return startSubscription(tx, sale, plan, processorCustomerId);
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
