/**
 * A product sold and taken back. A purchase gives the product's key and credits and writes the receipt, all in the caller's transaction,
 * once per ref for good; a refund takes back exactly what that receipt says it gave, once. A refunded purchase stays refunded.
 * Source: the specification's "Actions" (fulfil_product, refund_product), decisions section 5.
 */
import { grantAccess, listLiveGrants, revokeGrantsOfSource } from "../people/access-grant.ts";
import { addCredits, findBalance, takeBackCredits } from "../people/credit.ts";
import type { Writer } from "../store/port.ts";
import { fail, type Occasion, type SaleOutcome } from "./occasion.ts";
import { findProduct, type Product } from "./product.ts";
import {
  findPurchase,
  insertPurchase,
  type NewPurchase,
  newPurchaseId,
  type Purchase,
  type PurchaseData,
} from "./purchase.ts";
import { claimRef, findOwnPurchase } from "./ref.ts";
import { soldByRelay } from "./sold-through.ts";

/** fulfil_product: the product must be sold through the relay that runs; what this ref bought before stays bought, wherever it is sold now. */
export async function fulfilByRelay(
  tx: Writer,
  occasion: Occasion & { relayName: string },
  name: string,
  ref: string,
): Promise<SaleOutcome> {
  const product = await findProduct(tx, occasion.environmentId, name);
  if (product !== null && soldByRelay(product.soldThrough, occasion.relayName)) {
    return sellProduct(tx, occasion, product, { ref });
  }
  const own = await findOwnPurchase(tx, occasion, "product", name, ref);
  if (own !== null) return skipSold(tx, occasion, own);
  if (product === null) return failUnknown(name);
  const message = `\`product\` names ${name}, which is not sold through the relay ${occasion.relayName}: name that relay in the product's soldThrough.`;
  return fail("product_not_sold_here", message, true);
}

/** Any sale of a product: `skipped` when this person bought it under this ref before, `ref_used` when the ref is another purchase's. */
export async function sellProduct(
  tx: Writer,
  occasion: Occasion,
  product: Product,
  payment: Pick<NewPurchase, "ref" | "amountMinor" | "currency"> & Pick<PurchaseData, "given">,
): Promise<SaleOutcome> {
  const claim = await claimRef(tx, occasion, "product", product.name, payment.ref);
  if ("failure" in claim) return claim.failure;
  if (claim.own !== null) return skipSold(tx, occasion, claim.own);
  const before = await lookAt(tx, occasion, product.key);
  const id = newPurchaseId(occasion);
  const granted = await giveProduct(tx, occasion, product, id);
  const { given, ...paid } = payment;
  const data = { granted, ...(given === undefined ? {} : { given }) };
  await insertPurchase(tx, occasion, id, {
    kind: "purchase",
    itemKind: "product",
    item: product.name,
    ...paid,
    data,
  });
  const after = { ...(await lookAt(tx, occasion, product.key)), purchase: id, ref: payment.ref };
  return { outcome: "done", before, after };
}

/** refund_product: takes back only what a relay fulfilled, for this person and product. */
export async function refundByRelay(
  tx: Writer,
  occasion: Occasion,
  name: string,
  ref: string,
): Promise<SaleOutcome> {
  const claim = await claimRef(tx, occasion, "product", name, ref);
  if ("failure" in claim) return claim.failure;
  if (claim.own === null) {
    if ((await findProduct(tx, occasion.environmentId, name)) === null) return failUnknown(name);
    const message = `Nothing was fulfilled under this ref yet, so there is nothing to take back of ${name}: the refund is tried again in case the payment's event is still to come.`;
    return fail("purchase_missing", message);
  }
  if (claim.own.origin !== "relay") {
    const message = `The purchase under this ref (${claim.own.id}) was not fulfilled by a relay, and a relay refunds no other: refund it where it was paid.`;
    return fail("purchase_not_by_relay", message);
  }
  return refundPurchase(tx, occasion, claim.own);
}

/** Any refund of a product: ends the grants that purchase gave and takes back its credits as far as they are still there. */
export async function refundPurchase(
  tx: Writer,
  occasion: Occasion,
  purchase: Purchase,
): Promise<SaleOutcome> {
  const { environmentId, by, nowMs } = occasion;
  const refund = await findPurchase(tx, environmentId, "refund", purchase.ref);
  if (refund !== null) {
    return {
      outcome: "skipped",
      message: `The purchase ${purchase.id} was refunded before (${refund.id}).`,
    };
  }
  const { entitlement = purchase.item, credits = 0 } = purchase.data.granted ?? {};
  const before = await lookAt(tx, occasion, entitlement);
  const id = newPurchaseId(occasion);
  const grants = await revokeGrantsOfSource(tx, {
    environmentId,
    source: "purchase",
    sourceRef: purchase.id,
    by,
    nowMs,
  });
  const taken = await takeCredits(tx, occasion, credits, id, purchase.item);
  const takenBack = { grants, credits: taken, creditsShort: credits - taken };
  await insertPurchase(tx, occasion, id, {
    kind: "refund",
    ref: purchase.ref,
    itemKind: "product",
    item: purchase.item,
    refunds: purchase.id,
    amountMinor: purchase.amountMinor,
    currency: purchase.currency,
    data: { takenBack },
  });
  const now = await lookAt(tx, occasion, entitlement);
  const after = { ...now, refund: id, purchase: purchase.id, ref: purchase.ref, takenBack };
  if (taken === credits) return { outcome: "done", before, after };
  const message = `Only ${taken} of ${credits} credits could be taken back, the others were spent; the balance never goes below zero.`;
  return { outcome: "done", message, before, after };
}

/** What the person holds of it, for the audit's before and after. */
async function lookAt(tx: Writer, occasion: Occasion, entitlement: string) {
  const live = await listLiveGrants(tx, { ...occasion, entitlement });
  const credits = await findBalance(tx, occasion.environmentId, occasion.personId);
  return { entitlement, grants: live.map((grant) => grant.id), credits };
}

async function giveProduct(
  tx: Writer,
  occasion: Occasion,
  product: Product,
  purchaseId: string,
): Promise<NonNullable<PurchaseData["granted"]>> {
  const grant = await grantAccess(tx, {
    ...occasion,
    entitlement: product.key,
    source: "purchase",
    sourceRef: purchaseId,
    reason: null,
    expiresAtMs: null,
  });
  if (product.credits > 0) {
    await addCredits(tx, {
      ...occasion,
      amount: product.credits,
      reason: `purchase: ${product.name}`,
      source: "purchase",
      onceKey: `purchase:${purchaseId}`,
    });
  }
  return { entitlement: product.key, grant: grant.id, credits: product.credits };
}

/** How many credits were really taken. */
async function takeCredits(
  tx: Writer,
  occasion: Occasion,
  amount: number,
  refundId: string,
  item: string,
): Promise<number> {
  if (amount === 0) return 0;
  const { line } = await takeBackCredits(tx, {
    ...occasion,
    amount,
    reason: `refund: ${item}`,
    onceKey: `refund:${refundId}`,
  });
  return 0 - line.amount;
}

async function skipSold(tx: Writer, occasion: Occasion, purchase: Purchase): Promise<SaleOutcome> {
  const refund = await findPurchase(tx, occasion.environmentId, "refund", purchase.ref);
  const message =
    refund === null
      ? `This ref was fulfilled before (${purchase.id}).`
      : `This ref was fulfilled before (${purchase.id}) and refunded since (${refund.id}); it stays refunded.`;
  return { outcome: "skipped", message };
}

function failUnknown(name: string): SaleOutcome {
  const message = `\`product\` names ${name}, which is no product here: create it, or name one that exists.`;
  return fail("product_unknown", message, true);
}
