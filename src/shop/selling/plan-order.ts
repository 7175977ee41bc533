/**
 * Whose plan it is, out of what arrived, whatever order it ran in: payments and cancellations are followed in the order of arrival, and what comes
 * out is the person's plan. So events that waited, were retried or are replayed leave the plan that the undisturbed order leaves.
 * - A payment puts the person on its plan.
 * - A cancellation ends the plan that the person is on then. Under the ref of a payment it does so only if no payment of that plan under another ref
 *   arrived between that payment and the cancellation. A ref that is no payment of the plan ends it, and so does no ref.
 * - `grant_plan` without a ref on the plan that the person has is a confirmation, and no payment.
 * - A subscription that the card processor bills is never ended by a cancellation.
 * Source: decisions section 3, "Order, corrections and refunds"; the specification's "Actions" (grant_plan, revoke_plan).
 */

/** A payment or a confirmation, as its receipt has it. */
export interface PlanPayment {
  /** Of the receipt. */
  id: string;
  plan: string;
  ref: string;
  /** The event's number; without an event, that of the newest event then. */
  arrival: number;
  /** null: of a receipt. */
  eventId: string | null;
  /** null: the app's own processor bills it. */
  relayName: string | null;
  /** Whether it only confirms; null: that is to be found out. */
  confirms: boolean | null;
}

export interface PlanCancellation {
  plan: string;
  /** Empty: the action named none. */
  ref: string;
  arrival: number;
  eventId: string;
}

/** What the order of arrival comes to. */
export interface PlanOrder {
  /** The newest payment or confirmation of the plan that the person is on; null: on none. */
  standing: PlanPayment | null;
  /** The newest cancellation that ended a plan; null: none did. */
  ended: PlanCancellation | null;
  /** The receipts that only confirm, by id. */
  confirmations: ReadonlySet<string>;
  /** Of a cancellation that ended nothing because another payment keeps the plan: that payment. */
  keepers: ReadonlyMap<PlanCancellation, PlanPayment>;
}

type Fact = { paid: PlanPayment } | { canceled: PlanCancellation };

/**
 * Follows the facts, which may be given in any order. They must begin with a payment that is no confirmation, or with the person's first. Payments
 * before that one matter only as far as a cancellation names their refs.
 */
export function derivePlanOrder(
  payments: readonly PlanPayment[],
  cancellations: readonly PlanCancellation[],
): PlanOrder {
  const confirmations = new Set<string>();
  const keepers = new Map<PlanCancellation, PlanPayment>();
  /** Payments so far by ref, and the newest of each plan. */
  const [paid, newest] = [new Map<string, PlanPayment>(), new Map<string, PlanPayment>()];
  let standing: PlanPayment | null = null;
  let ended: PlanCancellation | null = null;
  for (const fact of inOrder(payments, cancellations)) {
    if ("paid" in fact) {
      const { paid: payment } = fact;
      if (payment.confirms ?? (standing?.plan === payment.plan && !hasOwnRef(payment)))
        confirmations.add(payment.id);
      else newest.set(payment.plan, payment);
      paid.set(payment.ref, payment);
      standing = payment;
      continue;
    }
    const { canceled } = fact;
    if (standing === null || standing.plan !== canceled.plan || isByProcessor(standing)) continue;
    const keeper = newest.get(canceled.plan);
    const own = paid.get(canceled.ref);
    if (own?.plan === canceled.plan && keeper !== undefined && keeper.ref !== own.ref)
      keepers.set(canceled, keeper);
    else [standing, ended] = [null, canceled];
  }
  return { standing, ended, confirmations, keepers };
}

/** Whether the relay wrote a ref, instead of the one that stands for none. */
export function hasOwnRef({ ref, eventId }: Pick<PlanPayment, "ref" | "eventId">): boolean {
  return eventId === null || ref !== `rly:${eventId}`;
}

function isByProcessor({ relayName }: PlanPayment): boolean {
  return relayName === null;
}

/** By arrival. Of the same number, the event's payment comes first and a receipt, which was recorded after the event arrived, last. */
function inOrder(payments: readonly PlanPayment[], cancellations: readonly PlanCancellation[]): Fact[] {
  const facts = [
    ...payments.map((paid) => ({ paid, arrival: paid.arrival, turn: isByProcessor(paid) ? 2 : 0 })),
    ...cancellations.map((canceled) => ({ canceled, arrival: canceled.arrival, turn: 1 })),
  ];
  return facts.sort((one, other) => one.arrival - other.arrival || one.turn - other.turn);
}
