/**
 * Sells and refunds products. A purchase grants the product's key and credits and writes the receipt, all in the caller's transaction, once
 * per ref. A refund takes back exactly what the receipt granted, once. A refunded purchase stays refunded. Source: the specification's
 * "Actions" (fulfil_product, refund_product), decisions section 5.
 */
import { failFinally, failForNow, type Outcome } from "../../base/outcome.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { grantAccess, listLiveGrants, reorderGrants, revokeGrantsOfSource } from "../people/access-grant.ts";
import { formatEndedByLaterEvent } from "../people/access-order.ts";
import { addCredits, findBalance, refundCredits } from "../people/credit.ts";
import { countGrantsOfSource } from "../people/live-grant.ts";
import { type Product, products } from "./product.ts";
import { findPurchase, type Purchase, setPurchaseArrival, type TakenBack } from "./purchase.ts";
import {
  auditRefusedRef,
  failUnknown,
  findSoldHere,
  isTheirPurchase,
  newPurchaseId,
  type Payment,
  type RelaySale,
  recordPurchase,
  type SaleContext,
  sell,
} from "./sale.ts";

/** Implements fulfil_product. The product must be sold through the relay that runs. */
export async function fulfilByRelay(
  tx: Writer,
  sale: RelaySale,
  name: string,
  payment: Payment,
): Promise<Outcome> {
  const found = await findSoldHere(tx, sale, products, name, payment.ref);
  if ("failure" in found) return found.failure;
  return "previous" in found
    ? skipSold(tx, sale, found.previous)
    : sellProduct(tx, sale, found.item, payment);
}

/** The part of a product that a sale gives. `ended`: the access of a purchase that moves had ended, so none is granted. */
type SoldProduct = Pick<Product, "name" | "key" | "credits"> & { ended?: boolean };

/** Sells a product. */
export function sellProduct(
  tx: Writer,
  sale: SaleContext,
  product: SoldProduct,
  payment: Payment,
): Promise<Outcome> {
  const { name: item, key: entitlement, credits, ended = false } = product;
  return sell(tx, sale, payment, {
    itemKind: "product",
    item,
    skip: (previous) => skipSold(tx, sale, previous),
    readState: () => readHoldings(tx, sale, entitlement),
    grantItem: async (purchaseId) => {
      const source = { source: "purchase", sourceRef: purchaseId } as const;
      const unending = { reason: null, expiresAtMs: null };
      const { grantArrival: arrival = sale.arrival } = sale;
      const grant = ended
        ? null
        : await grantAccess(tx, { ...sale, ...source, ...unending, arrival, entitlement });
      if (credits > 0) {
        const onceKey = `purchase:${purchaseId}`;
        const line = { amount: credits, reason: `purchase: ${item}`, source: "purchase", onceKey } as const;
        await addCredits(tx, { ...sale, ...line });
      }
      const endedByEvent = grant?.endedByEvent ?? null;
      return {
        granted: { entitlement, ...(grant === null ? {} : { grant: grant.id }), credits },
        message:
          endedByEvent === null ? null : formatEndedByLaterEvent(entitlement, endedByEvent, sale.personId),
      };
    },
  });
}

/** Implements refund_product: takes back only what a relay fulfilled, for this person and product. */
export async function refundByRelay(
  tx: Writer,
  sale: RelaySale,
  name: string,
  { ref }: Payment,
): Promise<Outcome> {
  const claim = await claimRefund(tx, sale, name, ref);
  if ("outcome" in claim) return claim;
  if (claim.previous === null) {
    if ((await products.find(tx, sale.environmentId, name)) === null) return failUnknown(products, name);
    const message = `No payment was fulfilled under this ref yet, so ${name} cannot be refunded: the refund is retried in case the payment's event arrives later.`;
    return failForNow("purchase_missing", message);
  }
  if (claim.previous.origin !== "relay") {
    const message = `The purchase under this ref (${claim.previous.id}) was not fulfilled by a relay, so a relay cannot refund it. Refund it where it was paid, and then with relay receipts refund.`;
    return failFinally("purchase_not_by_relay", message);
  }
  return refundPurchase(tx, { ...sale, personId: claim.previous.personId }, claim.previous);
}

/**
 * Finds the purchase of this person and product under the ref, also if it moved to another person; null if the ref is free. Otherwise returns
 * why nothing is taken back.
 */
async function claimRefund(
  tx: Writer,
  sale: RelaySale,
  item: string,
  ref: string,
): Promise<{ previous: Purchase | null } | Outcome> {
  const purchase = await findPurchase(tx, sale.environmentId, "purchase", ref);
  if (purchase === null || (await isTheirPurchase(tx, sale, purchase, "product", item)))
    return { previous: purchase };
  const { id, personId, itemKind } = purchase;
  const isTheirs = personId === sale.personId;
  if (isTheirs && (await products.find(tx, sale.environmentId, item)) === null)
    return failUnknown(products, item);
  const code = isTheirs ? "other_product" : "ref_used";
  await auditRefusedRef(tx, sale, { itemKind: "product", item, ref, purchase: id, code });
  if (isTheirs) {
    const message = `The payment under this ref (${id}) is for the ${itemKind} ${purchase.item} and not for ${item}, so this action refunded nothing: the relay that refunds ${purchase.item} does it.`;
    return { outcome: "skipped", code, message };
  }
  const message = `\`ref\` belongs to another person's purchase (${id} of ${purchase.item}), so nothing was refunded. If that payment was refunded, refund the purchase by hand with Refund… in the dashboard under Catalog › Receipts or with relay receipts refund ${ref}.`;
  return failFinally(code, message);
}

/** Refunds a product: ends the purchase's grants and takes back its unspent credits. */
export async function refundPurchase(tx: Writer, sale: SaleContext, purchase: Purchase): Promise<Outcome> {
  const { ref, item, origin, amountMinor, currency } = purchase;
  const refund = await findPurchase(tx, sale.environmentId, "refund", ref);
  if (refund !== null) {
    const message = `The purchase ${purchase.id} was already refunded (${refund.id}).`;
    return { outcome: "skipped", message };
  }
  const { entitlement, credits } = readGiven(purchase);
  const before = await readHoldings(tx, sale, entitlement);
  const id = newPurchaseId(sale);
  const source = { source: "purchase", sourceRef: purchase.id } as const;
  const grants = await revokeGrantsOfSource(tx, { ...sale, ...source });
  const taken = credits === 0 ? 0 : await takeCredits(tx, sale, credits, id, item);
  const takenBack = { grants, credits: taken, creditsShort: credits - taken };
  const refunds = purchase.id;
  const paid = { ref, origin, amountMinor, currency };
  await recordPurchase(tx, sale, id, {
    kind: "refund",
    itemKind: "product",
    item,
    refunds,
    ...paid,
    data: { takenBack },
  });
  const now = await readHoldings(tx, sale, entitlement);
  const after = { ...now, refund: id, purchase: purchase.id, ref, takenBack };
  if (taken === credits) return { outcome: "done", before, after };
  const message = `Only ${taken} of ${credits} credits were removed, because the others are spent; the balance never goes below zero.`;
  return { outcome: "done", message, before, after };
}

/** Reads what the purchase granted. */
export function readGiven({ item, data }: Purchase): { entitlement: string; credits: number } {
  return { entitlement: data.granted?.entitlement ?? item, credits: data.granted?.credits ?? 0 };
}

/** Previews the refund of a product's purchase. */
export async function previewProductRefund(
  tx: Reader,
  purchase: Purchase,
  nowMs: number,
): Promise<{ takes: TakenBack; entitlement: string; keepsAccess: boolean }> {
  const { environmentId, personId, id } = purchase;
  const { entitlement, credits } = readGiven(purchase);
  const source = { source: "purchase", sourceRef: id } as const;
  const { fromSource, hasOther } = await countGrantsOfSource(tx, {
    environmentId,
    personId,
    entitlement,
    nowMs,
    ...source,
  });
  const taken = Math.min(credits, await findBalance(tx, environmentId, personId));
  const takes = { grants: fromSource, credits: taken, creditsShort: credits - taken };
  return { takes, entitlement, keepsAccess: hasOther };
}

/** Takes back credits. Returns how many. */
async function takeCredits(
  tx: Writer,
  sale: SaleContext,
  amount: number,
  refundId: string,
  item: string,
): Promise<number> {
  const reason = `refund: ${item}`;
  const { line } = await refundCredits(tx, { ...sale, amount, reason, onceKey: `refund:${refundId}` });
  return 0 - line.amount;
}

/**
 * The most grant ids in a result. A person who buys the same product often holds many grants, and listing all in every run would grow
 * quadratically.
 */
const MAX_SHOWN_GRANT_IDS = 20;

/** Reads what the person holds of the entitlement, at most the newest grants. */
async function readHoldings(tx: Reader, sale: SaleContext, entitlement: string) {
  const live = await listLiveGrants(tx, { ...sale, entitlement }, MAX_SHOWN_GRANT_IDS + 1);
  const credits = await findBalance(tx, sale.environmentId, sale.personId);
  const grants = live.slice(0, MAX_SHOWN_GRANT_IDS).map((grant) => grant.id);
  return { entitlement, grants, ...(live.length > grants.length ? { moreGrants: true } : {}), credits };
}

/** Skips a ref that was fulfilled before. If a later event fulfilled it, the purchase and its grants move to this event's earlier arrival. */
async function skipSold(tx: Writer, buyer: SaleContext, purchase: Purchase): Promise<Outcome> {
  const sale = { ...buyer, personId: purchase.personId };
  if (sale.arrival < purchase.arrival) {
    await setPurchaseArrival(tx, purchase.id, sale.arrival);
    await reorderGrants(tx, { ...sale, source: "purchase", sourceRef: purchase.id });
  }
  const refund = await findPurchase(tx, sale.environmentId, "refund", purchase.ref);
  const message =
    refund === null
      ? `This ref was already fulfilled (${purchase.id}).`
      : `This ref was already fulfilled (${purchase.id}) and later refunded (${refund.id}); it stays refunded.`;
  return { outcome: "skipped", message };
}
