/**
 * A product sold and taken back. A purchase gives the product's key and credits and writes the receipt, all in the caller's transaction,
 * once per ref for good; a refund takes back exactly what that receipt says it gave, once. A refunded purchase stays refunded.
 * Source: the specification's "Actions" (fulfil_product, refund_product), decisions section 5.
 */
import { failFinally, failForNow, type Outcome } from "../ground/outcome.ts";
import { grantAccess, listLiveGrants, moveGrants, revokeGrantsOfSource } from "../people/access-grant.ts";
import { sayEndedByLater } from "../people/access-order.ts";
import { addCredits, findBalance, takeBackCredits } from "../people/credit.ts";
import type { Reader, Writer } from "../store/port.ts";
import { type Product, products } from "./product.ts";
import { findPurchase, movePurchase, type Purchase } from "./purchase.ts";
import {
  claimRef,
  failUnknown,
  findSoldHere,
  newPurchaseId,
  type Payment,
  type RelaySale,
  recordPurchase,
  type SaleContext,
  sell,
} from "./sale.ts";

/** fulfil_product: the product must be sold through the relay that runs. */
export async function fulfilByRelay(
  tx: Writer,
  sale: RelaySale,
  name: string,
  ref: string,
): Promise<Outcome> {
  const found = await findSoldHere(tx, sale, products, name, ref);
  if ("failure" in found) return found.failure;
  return "own" in found ? skipSold(tx, sale, found.own) : sellProduct(tx, sale, found.item, { ref });
}

/** Any sale of a product. */
export function sellProduct(
  tx: Writer,
  sale: SaleContext,
  product: Product,
  payment: Payment,
): Promise<Outcome> {
  const { name: item, key: entitlement, credits } = product;
  return sell(tx, sale, payment, {
    itemKind: "product",
    item,
    skip: (own) => skipSold(tx, sale, own),
    look: () => lookAt(tx, sale, entitlement),
    give: async (purchaseId) => {
      const source = { source: "purchase", sourceRef: purchaseId } as const;
      const unending = { reason: null, expiresAtMs: null };
      const grant = await grantAccess(tx, { ...sale, ...source, ...unending, entitlement });
      if (credits > 0) {
        const onceKey = `purchase:${purchaseId}`;
        const line = { amount: credits, reason: `purchase: ${item}`, source: "purchase", onceKey } as const;
        await addCredits(tx, { ...sale, ...line });
      }
      const { endedByEvent } = grant;
      return {
        granted: { entitlement, grant: grant.id, credits },
        message: endedByEvent === null ? null : sayEndedByLater(entitlement, endedByEvent, sale.personId),
      };
    },
  });
}

/** refund_product: takes back only what a relay fulfilled, for this person and product. */
export async function refundByRelay(
  tx: Writer,
  sale: RelaySale,
  name: string,
  ref: string,
): Promise<Outcome> {
  const claim = await claimRef(tx, sale, "product", name, ref);
  if ("failure" in claim) return claim.failure;
  if (claim.own === null) {
    if ((await products.find(tx, sale.environmentId, name)) === null) return failUnknown(products, name);
    const message = `Nothing was fulfilled under this ref yet, so there is nothing to take back of ${name}: the refund is tried again in case the payment's event is still to come.`;
    return failForNow("purchase_missing", message);
  }
  if (claim.own.origin !== "relay") {
    const message = `The purchase under this ref (${claim.own.id}) was not fulfilled by a relay, and a relay refunds no other: refund it where it was paid, and take it back in the dashboard or with relay receipts refund.`;
    return failFinally("purchase_not_by_relay", message);
  }
  return refundPurchase(tx, sale, claim.own);
}

/** Any refund of a product: ends the grants that purchase gave and takes back its credits as far as they are still there. */
export async function refundPurchase(tx: Writer, sale: SaleContext, purchase: Purchase): Promise<Outcome> {
  const { ref, item, amountMinor, currency } = purchase;
  const refund = await findPurchase(tx, sale.environmentId, "refund", ref);
  if (refund !== null) {
    const message = `The purchase ${purchase.id} was refunded before (${refund.id}).`;
    return { outcome: "skipped", message };
  }
  const { entitlement = item, credits = 0 } = purchase.data.granted ?? {};
  const before = await lookAt(tx, sale, entitlement);
  const id = newPurchaseId(sale);
  const source = { source: "purchase", sourceRef: purchase.id } as const;
  const grants = await revokeGrantsOfSource(tx, { ...sale, ...source });
  const taken = credits === 0 ? 0 : await takeCredits(tx, sale, credits, id, item);
  const takenBack = { grants, credits: taken, creditsShort: credits - taken };
  const refunds = purchase.id;
  const paid = { ref, amountMinor, currency };
  await recordPurchase(tx, sale, id, {
    kind: "refund",
    itemKind: "product",
    item,
    refunds,
    ...paid,
    data: { takenBack },
  });
  const now = await lookAt(tx, sale, entitlement);
  const after = { ...now, refund: id, purchase: purchase.id, ref, takenBack };
  if (taken === credits) return { outcome: "done", before, after };
  const message = `Only ${taken} of ${credits} credits could be taken back, the others were spent; the balance never goes below zero.`;
  return { outcome: "done", message, before, after };
}

/** How many credits were really taken. */
async function takeCredits(
  tx: Writer,
  sale: SaleContext,
  amount: number,
  refundId: string,
  item: string,
): Promise<number> {
  const reason = `refund: ${item}`;
  const { line } = await takeBackCredits(tx, { ...sale, amount, reason, onceKey: `refund:${refundId}` });
  return 0 - line.amount;
}

/** Who buys the same again and again holds a grant of each: all of them in every run would grow with the square of what was sold. */
const MAX_TOLD_GRANTS = 20;

/** What the person holds of it, of very many grants the newest. */
async function lookAt(tx: Reader, sale: SaleContext, entitlement: string) {
  const live = await listLiveGrants(tx, { ...sale, entitlement }, MAX_TOLD_GRANTS + 1);
  const credits = await findBalance(tx, sale.environmentId, sale.personId);
  const grants = live.slice(0, MAX_TOLD_GRANTS).map((grant) => grant.id);
  return { entitlement, grants, ...(live.length > grants.length ? { moreGrants: true } : {}), credits };
}

/** A ref that was fulfilled before. Where an event that arrived later fulfilled it, the purchase and its key arrived with this event. */
async function skipSold(tx: Writer, sale: SaleContext, purchase: Purchase): Promise<Outcome> {
  if (sale.arrival < purchase.arrival) {
    await movePurchase(tx, purchase.id, sale.arrival);
    await moveGrants(tx, { ...sale, source: "purchase", sourceRef: purchase.id });
  }
  const refund = await findPurchase(tx, sale.environmentId, "refund", purchase.ref);
  const message =
    refund === null
      ? `This ref was fulfilled before (${purchase.id}).`
      : `This ref was fulfilled before (${purchase.id}) and refunded since (${refund.id}); it stays refunded.`;
  return { outcome: "skipped", message };
}
