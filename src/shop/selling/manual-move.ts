/**
 * Moves a purchase by hand, for a person who paid under another address. The purchase moves with what it still gives: its access, its unspent
 * credits or its plan, and its receipt. Its ref stays, so a later refund finds it. No money moves.
 */
import { type Static, Type } from "typebox";
import type { Outcome, Success } from "../../base/outcome.ts";
import { Refusal } from "../../base/refusal.ts";
import { textOrNull } from "../../base/schema.ts";
import type { Change } from "../../platform/audit/audit.ts";
import type { Writer } from "../../store/port.ts";
import { findNewestArrival } from "../people/access-order.ts";
import { findPerson, type PersonRow, requireActingPerson, requirePersonNamed } from "../people/person.ts";
import { formatMove, formatPurchase, type MovedPeople } from "./move-message.ts";
import { currentPlan, type readPlanState, sellByRelay, sellPlan, sellSpentPlan } from "./plan-sale.ts";
import { readGiven, sellProduct } from "./product-sale.ts";
import {
  findPurchase,
  findRefundOf,
  type Purchase,
  type PurchaseView,
  requirePurchase,
  requirePurchaseView,
  type TakenBack,
  takenBackView,
} from "./purchase.ts";
import { writeReceiptRecord } from "./receipt.ts";
import type { Payment, SaleContext } from "./sale.ts";
import { transferPurchase } from "./sale-move.ts";
import { findActiveSubscription, SUBSCRIPTION } from "./subscription.ts";

/** The rights that a move takes from the first person and gives to the new one. */
export const purchaseMove = Type.Object({
  /** The ids of both people. */
  from: Type.String(),
  to: Type.String(),
  ...takenBackView.properties,
  /** The new person's plan after the move of a plan's payment. */
  plan: textOrNull,
  /** An earlier refund, which leaves nothing to move. */
  refundedBy: textOrNull,
  /** The move in sentences. */
  message: Type.String(),
});
type PurchaseMove = Static<typeof purchaseMove>;

interface MovedPurchase {
  plan: PurchaseMove;
  /** The receipt under the ref: the new person's after a move. */
  receipt: PurchaseView;
  /** False if the person had the purchase before, or if it was refunded. */
  moved: boolean;
}

/**
 * Moves a purchase to a person, audited. Throws `not_found`, `person_suspended`, and `invalid_input` for a row that is not a purchase, that moved
 * to another person since, or whose plan the new person cannot get.
 */
export async function movePurchaseManually(
  tx: Writer,
  change: Change,
  id: string,
  personName: string,
): Promise<MovedPurchase> {
  const { environmentId } = change;
  const named = await requireActingPerson(
    tx,
    environmentId,
    (await requirePersonNamed(tx, environmentId, personName)).id,
  );
  const purchase = await requireMovable(tx, environmentId, id, named);
  const from = await findPerson(tx, environmentId, purchase.personId);
  if (from === null) throw new Refusal("invalid_input", FROM_ERASED);
  const refund = await findRefundOf(tx, purchase);
  const moves = refund === null && from.id !== named.id;
  if (moves) return await movePurchase(tx, change, purchase, { from, to: named });
  const message =
    refund === null
      ? `${named.email} has the purchase of ${formatPurchase(purchase)} already, so nothing changes.`
      : `The purchase of ${formatPurchase(purchase)} was refunded before (${refund.id}), so it does not move.`;
  const noChange = { grants: 0, credits: 0, creditsShort: 0, plan: null };
  const plan = { from: from.id, to: named.id, ...noChange, refundedBy: refund?.id ?? null, message };
  return { plan, receipt: await requirePurchaseView(tx, environmentId, purchase.id), moved: false };
}

const FROM_ERASED = "The person who made this purchase was erased, so nothing of it can move.";

/** Moves a purchase that was not refunded. Throws `invalid_input` if the new person cannot get its plan. */
export async function movePurchase(
  tx: Writer,
  change: Change,
  purchase: Purchase,
  { from, to }: MovedPeople,
): Promise<MovedPurchase> {
  const { environmentId, by, nowMs } = change;
  const { itemKind, ref, relayName, eventId, arrival } = purchase;
  const origin = { relayName: null, eventId: null, arrival: await findNewestArrival(tx) };
  const withdrawal = { environmentId, ...origin, by, nowMs };
  const sale: SaleContext = { ...withdrawal, personId: to.id, relayName, eventId, arrival };
  let refund = null as Purchase | null;
  let isPlanOver = false;
  let note = "";
  const customer = await findProcessorCustomer(tx, purchase);
  const outcome = await transferPurchase(tx, withdrawal, sale, purchase, async (takenBack) => {
    refund = await findRefundOf(tx, purchase);
    isPlanOver = itemKind === "plan" && !endsPlan(takenBack, purchase.item);
    const taken = refund?.data.takenBack;
    // Access that is live now stays live, although the new person's was revoked after the purchase arrived.
    const kept = taken?.grants ? { ...sale, grantArrival: Math.max(arrival, origin.arrival) } : sale;
    const sold = await sellAgain(tx, kept, purchase, { isPlanOver, customer, taken });
    note = sold.message ?? "";
    return sold;
  });
  if (outcome.outcome === "failed")
    throw new Refusal("invalid_input", `The purchase cannot move to ${to.email}: ${outcome.message}`);
  const sold = await findPurchase(tx, environmentId, "purchase", ref);
  if (refund === null || sold === null) throw new Error("A purchase moved, and its receipts are not there.");
  const receipt = await requirePurchaseView(tx, environmentId, sold.id);
  if (purchase.origin === "payment") {
    const withdrawn = await requirePurchaseView(tx, environmentId, refund.id);
    await writeReceiptRecord(tx, { ...withdrawal, personId: from.id }, withdrawn);
    await writeReceiptRecord(tx, sale, receipt);
  }
  const taken = refund.data.takenBack ?? { grants: 0, credits: 0, creditsShort: 0 };
  const plan = itemKind === "plan" ? (await currentPlan(tx, environmentId, to.id)).plan : null;
  const message = await formatMove(tx, purchase, { from, to, taken, note, isPlanOver, plan });
  return {
    plan: { from: from.id, to: to.id, ...taken, plan, refundedBy: null, message },
    receipt,
    moved: true,
  };
}

/** Finds the purchase that `id` names. A purchase that moved before is found under its ref if the person has it now. */
async function requireMovable(
  tx: Writer,
  environmentId: number,
  id: string,
  to: PersonRow,
): Promise<Purchase> {
  const named = await requirePurchase(tx, environmentId, id);
  if (named.kind === "refund")
    throw new Refusal(
      "invalid_input",
      `${id} is a refund, and only a purchase moves: name the purchase ${named.refunds}.`,
    );
  if (named.movedTo !== null) {
    const current = await findPurchase(tx, environmentId, "purchase", named.ref);
    if (current?.personId === to.id) return current;
    throw new Refusal(
      "invalid_input",
      `${id} moved to ${named.movedTo} before: name the receipt that this person has now, which relay receipts list --ref shows.`,
    );
  }
  if (!named.confirmation) return named;
  throw new Refusal(
    "invalid_input",
    `${id} only confirms the plan ${named.item}, and nothing was paid: move the payment of the plan instead.`,
  );
}

/** Reports whether the withdrawal ended the person's subscription of the plan. */
function endsPlan({ before, after }: Success, item: string): boolean {
  const [was, is] = [before as PlanState, after as PlanState];
  return was.plan === item && was.subscription !== null && was.subscription !== is.subscription;
}

/** The plan of a person before and after a withdrawal. */
type PlanState = Pick<Awaited<ReturnType<typeof readPlanState>>, "plan" | "subscription">;

async function findProcessorCustomer(tx: Writer, { environmentId, data }: Purchase): Promise<string | null> {
  const id = data.granted?.subscription;
  if (id === undefined) return null;
  return (await SUBSCRIPTION.find(tx, { environmentId, id }))?.processorCustomerId ?? null;
}

/** The parts of a purchase that the first person still had. */
interface Remainder {
  isPlanOver: boolean;
  /** The processor's customer of the plan. */
  customer: string | null;
  /** The grants and credits that the move took back. */
  taken: TakenBack | undefined;
}

/** Makes the purchase for the new person, with what it still gave the first one. */
async function sellAgain(
  tx: Writer,
  sale: SaleContext,
  purchase: Purchase,
  { isPlanOver, customer, taken }: Remainder,
): Promise<Outcome> {
  const { item, ref, amountMinor, currency, data } = purchase;
  const payment: Payment = {
    ...{ ref, amountMinor, currency },
    ...(data.given === undefined ? {} : { given: data.given }),
  };
  if (purchase.itemKind === "plan")
    return await sellPlanAgain(tx, sale, item, payment, { isPlanOver, customer });
  const { entitlement } = readGiven(purchase);
  const product = { name: item, key: entitlement, credits: taken?.credits ?? 0, ended: taken?.grants === 0 };
  return await sellProduct(tx, sale, product, payment);
}

async function sellPlanAgain(
  tx: Writer,
  sale: SaleContext,
  item: string,
  payment: Payment,
  { isPlanOver, customer }: Pick<Remainder, "isPlanOver" | "customer">,
): Promise<Outcome> {
  if (isPlanOver) return await sellSpentPlan(tx, sale, item, payment);
  const { relayName, eventId } = sale;
  const active = await findActiveSubscription(tx, sale.environmentId, sale.personId);
  if (active !== null)
    throw new Refusal(
      "invalid_input",
      `The new person is on the plan ${active.plan}, and one plan is active at a time: end that plan first, with relay people end ${sale.personId} ${active.plan}.`,
    );
  const outcome =
    relayName !== null && eventId !== null
      ? await sellByRelay(tx, { ...sale, relayName, eventId }, item, payment)
      : await sellPlan(tx, sale, item, payment, customer);
  const { plan } = await currentPlan(tx, sale.environmentId, sale.personId);
  if (plan === item) return outcome;
  throw new Refusal(
    "invalid_input",
    `The plan ${item} cannot move, because the new person's plan was canceled or paid for after this payment arrived: give them the plan with relay people grant ${sale.personId} ${item}.`,
  );
}
