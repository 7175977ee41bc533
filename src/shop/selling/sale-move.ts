/**
 * Moves a purchase to another person: when a replay makes a sale for another person than the earlier run, or by hand (manual-move.ts). The
 * purchase is taken back from the first person and made for the new one under the same ref, in one transaction. Source: decisions section 3,
 * "the corrected person".
 */
import type { Json } from "../../base/json.ts";
import type { Failure, Outcome, Success } from "../../base/outcome.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { formatPerson } from "../people/person.ts";
import type { ItemKind } from "./catalog-item.ts";
import { refundPlanPayment, withdrawPlanPayment } from "./plan-refund.ts";
import { refundPurchase } from "./product-sale.ts";
import { findPurchase, markMoved, PURCHASE, type Purchase } from "./purchase.ts";
import type { RelaySale, SaleContext } from "./sale.ts";

/** The person who has the purchase, and its receipt if known. */
interface MoveFrom {
  personId: string;
  purchase: string | null;
}

/** The item and ref of the new sale. */
interface Sold {
  itemKind: ItemKind;
  item: string;
  ref: string;
}

/** Rolls the withdrawal back if the new sale failed. */
class MoveRollback extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/**
 * Runs `sellNow`, which makes the sale for the sale's person, after it took the purchase back from the earlier person. A refunded purchase
 * does not move.
 */
export async function moveSale(
  tx: Writer,
  sale: RelaySale,
  from: MoveFrom,
  sold: Sold,
  sellNow: () => Promise<Outcome>,
): Promise<Outcome> {
  const purchase = await findMovable(tx, sale, from, sold);
  if (purchase === null) return await sellNow();
  const refund = await findPurchase(tx, sale.environmentId, "refund", purchase.ref);
  if (refund !== null) {
    const message = `The purchase ${purchase.id} was later refunded (${refund.id}), so it was not moved; it stays refunded.`;
    return { outcome: "skipped", message };
  }
  return await transferPurchase(tx, sale, sale, purchase, sellNow);
}

/**
 * Takes the purchase back as `withdrawal` says, and makes it with `sellNow` for the person of `sale`. If `sellNow` fails, nothing changes, and
 * its failure is the result.
 */
export async function transferPurchase(
  tx: Writer,
  withdrawal: Omit<SaleContext, "personId">,
  sale: SaleContext,
  purchase: Purchase,
  sellNow: (takenBack: Success) => Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await tx.attempt(async () => {
      const takenBack = await takeBack(tx, { ...withdrawal, personId: purchase.personId }, purchase);
      await markMoved(tx, purchase, sale.personId);
      const outcome = await sellNow(takenBack);
      if (outcome.outcome === "failed") throw new MoveRollback(outcome);
      return await recordMove(tx, sale, purchase, takenBack, outcome);
    });
  } catch (error) {
    if (error instanceof MoveRollback) return error.failure;
    throw error;
  }
}

/** Finds the receipt of the earlier run or, if unknown, what the earlier person bought under the ref. */
async function findMovable(
  tx: Reader,
  { environmentId, relayName }: RelaySale,
  { personId, purchase: id }: MoveFrom,
  { itemKind, item, ref }: Sold,
): Promise<Purchase | null> {
  const known = id === null ? null : await PURCHASE.find(tx, { environmentId, id });
  const purchase = known ?? (await findPurchase(tx, environmentId, "purchase", ref));
  if (purchase === null || purchase.personId !== personId || purchase.movedTo !== null) return null;
  if (purchase.kind !== "purchase" || purchase.relayName !== relayName) return null;
  return known !== null || (purchase.itemKind === itemKind && purchase.item === item) ? purchase : null;
}

async function takeBack(tx: Writer, sale: SaleContext, purchase: Purchase): Promise<Success> {
  const outcome = await withdrawalOf(purchase)(tx, sale, purchase);
  if (outcome.outcome === "failed") throw new Error("A purchase that moves was not taken back.");
  return outcome;
}

function withdrawalOf({ itemKind, relayName }: Purchase): typeof refundPurchase {
  if (itemKind === "product") return refundPurchase;
  // The order of arrival never ends a subscription that the card processor bills.
  return relayName === null ? refundPlanPayment : withdrawPlanPayment;
}

/** Audits the move and adds it to the sale's outcome. */
async function recordMove(
  tx: Writer,
  sale: SaleContext,
  { id, ref, personId }: Purchase,
  takenBack: Success,
  outcome: Success,
): Promise<Success> {
  const { environmentId, by, nowMs, eventId } = sale;
  await writeAudit(tx, {
    ...{ environmentId, by, nowMs },
    action: "receipt.moved",
    target: `purchase:${id}`,
    before: { person: personId, purchase: id, ref },
    after: {
      person: sale.personId,
      eventId,
      takenBack: takenBack.after ?? null,
      sold: outcome.after ?? null,
    },
  });
  const [was, is] = [
    await formatPerson(tx, environmentId, personId),
    await formatPerson(tx, environmentId, sale.personId),
  ];
  const more = outcome.message === undefined ? "" : ` ${outcome.message}`;
  const moved: Json = { purchase: id, person: personId, takenBack: takenBack.after ?? null };
  const after = outcome.after ?? {};
  return {
    ...outcome,
    outcome: "done",
    message: `The purchase moved from ${was} to ${is}.${more}`,
    after: { ...(after as Record<string, Json>), moved },
  };
}
