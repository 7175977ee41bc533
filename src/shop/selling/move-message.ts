/** Formats the plan of a purchase's move in sentences. */
import type { Reader } from "../../store/port.ts";
import type { PersonRow } from "../people/person.ts";
import { readGiven } from "./product-sale.ts";
import type { Purchase, TakenBack } from "./purchase.ts";
import { findActiveSubscription } from "./subscription.ts";

export interface MovedPeople {
  from: PersonRow;
  to: PersonRow;
}

interface Move extends MovedPeople {
  taken: TakenBack;
  /** An additional message of the new sale. */
  note: string;
  /** True if the payment kept the first person on no plan. */
  isPlanOver: boolean;
  /** The new person's plan after the move. */
  plan: string | null;
}

/** Formats a move that was made in this transaction. */
export async function formatMove(tx: Reader, purchase: Purchase, move: Move): Promise<string> {
  const { from, to, taken, note } = move;
  const sentences = [
    `Moves the purchase of ${formatPurchase(purchase)} from ${from.email} to ${to.email}.`,
    ...(purchase.itemKind === "product"
      ? [formatProduct(readGiven(purchase).entitlement, taken), note]
      : [await formatPlan(tx, purchase, move)]),
    "Its ref stays, so a later refund finds it. No money moves.",
  ];
  return sentences.filter((sentence) => sentence !== "").join(" ");
}

export function formatPurchase({ itemKind, item, ref }: Purchase): string {
  return `${itemKind === "plan" ? `the plan ${item}` : item} (ref ${ref})`;
}

function formatProduct(entitlement: string, { grants, credits, creditsShort }: TakenBack): string {
  const access =
    grants === 0
      ? `Its access to ${entitlement} ended before, so no access moves.`
      : `Its access to ${entitlement} moves.`;
  if (credits + creditsShort === 0) return access;
  if (creditsShort === 0) return `${access} Its ${credits} credits move.`;
  return `${access} ${credits} of its credits move. ${creditsShort} credits are spent and do not move.`;
}

async function formatPlan(
  tx: Reader,
  { environmentId, item }: Purchase,
  { from, to, isPlanOver, plan }: Move,
): Promise<string> {
  const next = `A later payment that names ${from.email} goes to ${from.email} again: change the address at the provider too.`;
  const now = `${to.email} is on ${plan ?? "no plan"} then.`;
  if (!isPlanOver) return `The plan ${item} ends for ${from.email}. ${now} ${next}`;
  const active = await findActiveSubscription(tx, environmentId, from.id);
  const why =
    active?.plan === item
      ? `${from.email} stays on ${item}, because another payment keeps it`
      : `This payment keeps ${from.email} on no plan now`;
  return `${why}, so only the receipt moves.`;
}
