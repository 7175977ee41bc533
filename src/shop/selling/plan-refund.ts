/** Refunds a payment of a plan: by hand, or because a replay moves it to another person. Cancellations by a relay are in plan-sale.ts. */
import type { Outcome } from "../../base/outcome.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findLaterPayment, voidPayments } from "./plan-history.ts";
import { applyPlanOrder, readPlanState, switchPlan } from "./plan-sale.ts";
import { type Purchase, setPurchaseArrival } from "./purchase.ts";
import { newPurchaseId, recordPurchase, type SaleContext } from "./sale.ts";
import { endSubscription, findActiveSubscription, type Subscription } from "./subscription.ts";

/** Previews the refund of a plan's payment: it ends the subscription, or a later payment keeps the plan. */
export async function previewPlanRefund(
  tx: Reader,
  purchase: Purchase,
): Promise<{ ends: Subscription | null; keptBy: string | null }> {
  const active = await findActiveSubscription(tx, purchase.environmentId, purchase.personId);
  if (active?.plan !== purchase.item) return { ends: null, keptBy: null };
  const keptBy = await findLaterPayment(tx, purchase);
  return { ends: keptBy === null ? active : null, keptBy };
}

/** Refunds a payment of a plan. Ends the subscription as a manual end does, unless a later payment keeps the plan. The payment no longer counts. */
export async function refundPlanPayment(tx: Writer, sale: SaleContext, purchase: Purchase): Promise<Outcome> {
  const { ends, keptBy } = await previewPlanRefund(tx, purchase);
  const before = await readPlanState(tx, sale);
  if (ends !== null) {
    await endSubscription(tx, ends, sale);
    await voidPayments(tx, sale);
  } else await setPurchaseArrival(tx, purchase.id, 0);
  const ended = ends === null ? {} : { ended: ends.id };
  const kept = keptBy === null ? {} : { keptByRef: keptBy };
  return recordPlanRefund(tx, sale, purchase, before, { ...ended, ...kept });
}

async function recordPlanRefund(
  tx: Writer,
  sale: SaleContext,
  { id: refunds, ref, item, origin, amountMinor, currency }: Purchase,
  before: Awaited<ReturnType<typeof readPlanState>>,
  more: Record<string, string>,
): Promise<Outcome> {
  const now = await readPlanState(tx, sale);
  const id = newPurchaseId(sale);
  const grants = before.grants.filter((grant) => !now.grants.includes(grant)).length;
  await recordPurchase(tx, sale, id, {
    ...{ kind: "refund", itemKind: "plan", item, refunds, ref, origin, amountMinor, currency },
    data: { takenBack: { grants, credits: 0, creditsShort: 0 } },
  });
  return { outcome: "done", before, after: { ...now, refund: id, purchase: refunds, ref, ...more } };
}

/** Withdraws a payment from a person who never made it. Their other payments then decide their plan. */
export async function withdrawPlanPayment(
  tx: Writer,
  sale: SaleContext,
  purchase: Purchase,
): Promise<Outcome> {
  const { id, arrival } = purchase;
  const before = await readPlanState(tx, sale);
  await setPurchaseArrival(tx, id, 0);
  // A payment that no longer counted has nothing to withdraw.
  if (arrival > 0) {
    const { current } = await applyPlanOrder(tx, { ...sale, arrival }, null);
    await switchPlan(tx, sale, current);
  }
  return recordPlanRefund(tx, sale, purchase, before, {});
}
