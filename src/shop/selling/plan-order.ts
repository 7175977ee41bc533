/**
 * Derives a person's plan from payments and cancellations in the order in which their events arrived, even if they ran in another order. So events
 * that waited, were retried or are replayed lead to the same plan as an undisturbed order.
 * - A payment puts the person on its plan.
 * - A cancellation ends the plan that the person has then. If it names the ref of a payment, it ends the plan only if no payment of that plan
 *   under another ref arrived between the two. A cancellation without a ref, or with a ref of no payment of the plan, ends the plan.
 * - `grant_plan` without a ref on the plan that the person has is a confirmation and not a payment.
 * - A cancellation never ends a subscription that the card processor bills.
 * Source: decisions section 3, "Order, corrections and refunds"; the specification's "Actions" (grant_plan, revoke_plan).
 */

/** A payment or confirmation, as its receipt stores it. */
export interface PlanPayment {
  /** The receipt's id. */
  id: string;
  plan: string;
  ref: string;
  /** The event's number; without an event, the number of the newest event at that time. */
  arrival: number;
  /** null: a receipt without an event. */
  eventId: string | null;
  /** null: the app's own processor bills it. */
  relayName: string | null;
  /** True if it is only a confirmation; null: this file must derive it. */
  confirms: boolean | null;
}

export interface PlanCancellation {
  plan: string;
  /** The payment's ref; empty if the action named none. */
  ref: string;
  arrival: number;
  eventId: string;
}

/** The result of following payments and cancellations in order of arrival. */
export interface PlanOrder {
  /** The newest payment or confirmation of the person's plan; null: no plan. */
  current: PlanPayment | null;
  /** The newest cancellation that ended a plan; null: none did. */
  ended: PlanCancellation | null;
  /** The ids of receipts that are only confirmations. */
  confirmations: ReadonlySet<string>;
  /** The payment that keeps a plan, for each cancellation that ended no plan because of it. */
  keepers: ReadonlyMap<PlanCancellation, PlanPayment>;
}

type Fact = { paid: PlanPayment } | { canceled: PlanCancellation };

/**
 * Derives the plan from payments and cancellations, given in any order. The first must be a payment that is not a confirmation, or the
 * person's first. Earlier payments matter only if a cancellation names their refs.
 */
export function derivePlanOrder(
  payments: readonly PlanPayment[],
  cancellations: readonly PlanCancellation[],
): PlanOrder {
  const confirmations = new Set<string>();
  const keepers = new Map<PlanCancellation, PlanPayment>();
  /** Payments so far by ref, and the newest of each plan. */
  const [paid, newest] = [new Map<string, PlanPayment>(), new Map<string, PlanPayment>()];
  let current: PlanPayment | null = null;
  let ended: PlanCancellation | null = null;
  for (const fact of inOrder(payments, cancellations)) {
    if ("paid" in fact) {
      const { paid: payment } = fact;
      if (payment.confirms ?? (current?.plan === payment.plan && !hasOwnRef(payment)))
        confirmations.add(payment.id);
      else newest.set(payment.plan, payment);
      paid.set(payment.ref, payment);
      current = payment;
      continue;
    }
    const { canceled } = fact;
    if (current === null || current.plan !== canceled.plan || isByProcessor(current)) continue;
    const keeper = newest.get(canceled.plan);
    const own = paid.get(canceled.ref);
    if (own?.plan === canceled.plan && keeper !== undefined && keeper.ref !== own.ref)
      keepers.set(canceled, keeper);
    else [current, ended] = [null, canceled];
  }
  return { current, ended, confirmations, keepers };
}

/** Reports whether the relay named a ref, rather than using the default ref of the event. */
export function hasOwnRef({ ref, eventId }: Pick<PlanPayment, "ref" | "eventId">): boolean {
  return eventId === null || ref !== `rly:${eventId}`;
}

function isByProcessor({ relayName }: PlanPayment): boolean {
  return relayName === null;
}

/**
 * Sorts by arrival. For the same number, the event's payment is first, its cancellation second, and a receipt, which was recorded after the
 * event arrived, last.
 */
function inOrder(payments: readonly PlanPayment[], cancellations: readonly PlanCancellation[]): Fact[] {
  const facts = [
    ...payments.map((paid) => ({ paid, arrival: paid.arrival, turn: isByProcessor(paid) ? 2 : 0 })),
    ...cancellations.map((canceled) => ({ canceled, arrival: canceled.arrival, turn: 1 })),
  ];
  return facts.sort((one, other) => one.arrival - other.arrival || one.turn - other.turn);
}
