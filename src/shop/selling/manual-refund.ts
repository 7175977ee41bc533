/**
 * Manual refunds of any purchase, whether a relay, the app's server or an owner recorded it. A preview says what the refund takes back. No
 * money moves. Source: decisions section 3, "refund by hand".
 */
import { type Static, Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { textOrNull } from "../../base/schema.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findNewestArrival } from "../people/access-order.ts";
import { formatPerson } from "../people/person.ts";
import { previewPlanRefund, refundPlanPayment } from "./plan-refund.ts";
import { previewProductRefund, refundPurchase } from "./product-sale.ts";
import {
  findPurchase,
  findRefundOf,
  type Purchase,
  type PurchaseView,
  requirePurchase,
  requirePurchaseView,
  takenBackView,
} from "./purchase.ts";
import { writeReceiptRecord } from "./receipt.ts";
import type { SaleContext } from "./sale.ts";

/** The grants and credits that a refund of a purchase would take back now. */
export const refundPreview = Type.Object({
  ...takenBackView.properties,
  /** The plan that ends. */
  endsPlan: textOrNull,
  /** An earlier refund, which leaves nothing to change. */
  refundedBy: textOrNull,
  /** The preview in sentences. */
  message: Type.String(),
});
export type RefundPreview = Static<typeof refundPreview>;

/** Previews a refund. Throws `not_found`, and `invalid_input` for a row that is not a purchase. */
export async function previewRefund(
  tx: Reader,
  environmentId: number,
  id: string,
  nowMs: number,
): Promise<RefundPreview> {
  const purchase = await requireRefundable(tx, environmentId, id);
  const { ref, item, itemKind, personId } = purchase;
  const personName = await formatPerson(tx, environmentId, personId);
  const what = `${itemKind === "plan" ? `the plan ${item}` : item} (ref ${ref}) of ${personName}`;
  const refund = await findRefundOf(tx, purchase);
  const noChange = { grants: 0, credits: 0, creditsShort: 0, endsPlan: null };
  if (refund !== null) {
    const message = `The purchase of ${what} was already refunded (${refund.id}), so nothing changes.`;
    return { ...noChange, refundedBy: refund.id, message };
  }
  const format = (sentences: string): string =>
    `Refunds the purchase of ${what}. ${sentences} This moves no money: refund the payment where it was paid.`;
  if (itemKind === "plan") {
    const { ends, keptBy } = await previewPlanRefund(tx, purchase);
    const goes = { ...noChange, grants: ends === null ? 0 : 1, endsPlan: ends?.plan ?? null };
    return { ...goes, refundedBy: null, message: format(formatPlan(item, ends?.billedBy ?? null, keptBy)) };
  }
  const { takes, entitlement, keepsAccess } = await previewProductRefund(tx, purchase, nowMs);
  const sentences = [formatAccess(entitlement, takes.grants, keepsAccess), ...formatCredits(takes)];
  return { ...takes, endsPlan: null, refundedBy: null, message: format(sentences.join(" ")) };
}

function formatPlan(plan: string, billedBy: "relay" | "processor" | null, keptBy: string | null): string {
  if (keptBy !== null)
    return `The person stays on ${plan}, because the payment under the ref ${keptBy} came later.`;
  if (billedBy === null) return `The person is not on ${plan} now, so only a refund is recorded.`;
  const ends = `The plan ${plan} ends, and the person moves to the default plan.`;
  return billedBy === "relay" ? ends : `${ends} The card processor continues to bill it: end it there too.`;
}

function formatAccess(entitlement: string, grants: number, keepsAccess: boolean): string {
  if (grants === 0) return `Its access to ${entitlement} already ended.`;
  const kept = keepsAccess ? ", and the person keeps it by another grant" : "";
  return `Its access to ${entitlement} ends${kept}.`;
}

function formatCredits({ credits, creditsShort }: Pick<RefundPreview, "credits" | "creditsShort">): string[] {
  if (credits + creditsShort === 0) return [];
  const spent = creditsShort === 0 ? "" : `; ${creditsShort} more are already spent and cannot be removed`;
  return [`The refund removes ${credits} of its credits${spent}.`];
}

/**
 * Refunds a purchase, audited. `created: false`: it was refunded before. Returns the refund, or the purchase if there was a refund already.
 * Throws as `previewRefund`.
 */
export async function refundManually(
  tx: Writer,
  change: Change,
  id: string,
): Promise<{ receipt: PurchaseView; created: boolean }> {
  const { environmentId, by, nowMs } = change;
  const purchase = await requireRefundable(tx, environmentId, id);
  if ((await findRefundOf(tx, purchase)) !== null)
    return { receipt: await requirePurchaseView(tx, environmentId, id), created: false };
  const { personId } = purchase;
  const origin = { relayName: null, eventId: null, arrival: await findNewestArrival(tx) };
  const sale: SaleContext = { environmentId, personId, ...origin, by, nowMs };
  const refund = purchase.itemKind === "plan" ? refundPlanPayment : refundPurchase;
  const outcome = await refund(tx, sale, purchase);
  if (outcome.outcome === "failed") throw new Error("A refund by hand failed.");
  const row = await findPurchase(tx, environmentId, "refund", purchase.ref);
  if (row === null) throw new Error("A refund was written and is not there.");
  const receipt = await requirePurchaseView(tx, environmentId, row.id);
  // Only recorded payments are written to the collection of receipts, not the purchases of relays.
  if (purchase.origin === "payment") await writeReceiptRecord(tx, sale, receipt);
  const { before, after } = outcome;
  const target = `purchase:${receipt.id}`;
  await writeAudit(tx, { ...change, action: "receipt.refunded", target, before, after });
  return { receipt, created: true };
}

async function requireRefundable(tx: Reader, environmentId: number, id: string): Promise<Purchase> {
  const purchase = await requirePurchase(tx, environmentId, id);
  if (purchase.kind === "purchase" && !purchase.confirmation) return purchase;
  throw new Refusal(
    "invalid_input",
    purchase.kind === "refund"
      ? `${id} is a refund: name the refunded purchase, ${purchase.refunds}.`
      : `${id} only confirms the plan ${purchase.item} without a payment: end the plan with relay people end ${purchase.personId} ${purchase.item}.`,
  );
}
