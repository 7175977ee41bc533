/**
 * The stored history that plan-order.ts follows: a person's payments of plans (their receipts) and the cancellations of events. When a
 * subscription is ended by hand, its receipts no longer count (their arrival is 0), because a manual change takes precedence over what arrived
 * before.
 */
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, given, integer, text } from "../../store/table.ts";
import type { PlanCancellation, PlanPayment } from "./plan-order.ts";
import type { Purchase } from "./purchase.ts";
import type { SaleContext } from "./sale.ts";

/** One row for each event, plan and ref. Retention deletes a row once no earlier event is left. */
const PLAN_CANCELLATION = defineTable({
  name: "plan_cancellation",
  key: ["seq"],
  columns: {
    seq: given(),
    environmentId: integer(),
    personId: text(),
    plan: text(),
    /** The event's number. */
    arrival: integer(),
    /** The payment's ref; empty if the action named none. */
    ref: text(),
    eventId: text(),
    createdAt: integer(),
  },
});

type PlanOwner = Pick<SaleContext, "environmentId" | "personId">;

/** Records a cancellation, whether or not it ends a plan. A second one of the same event changes nothing. */
export async function recordCancellation(
  tx: Writer,
  { environmentId, personId, nowMs }: SaleContext,
  cancellation: PlanCancellation,
): Promise<void> {
  const row = { environmentId, personId, ...cancellation, createdAt: nowMs };
  await PLAN_CANCELLATION.insert(tx, row, "ON CONFLICT (person_id, arrival, plan, ref) DO NOTHING");
}

const OF_PERSON =
  "person_id = $personId AND environment_id = $environmentId AND kind = 'purchase' AND item_kind = 'plan'";

/** Reports whether a payment or cancellation of the person's plans arrived after the sale's event. */
export async function hasLaterArrival(
  tx: Reader,
  { environmentId, personId, arrival }: SaleContext,
): Promise<boolean> {
  const row = await tx.get<{ later: number }>(
    `SELECT EXISTS (SELECT 1 FROM purchase INDEXED BY purchase_of_plan
         WHERE ${OF_PERSON} AND arrival >= $arrival AND (arrival > $arrival OR event_id IS NULL))
       OR EXISTS (SELECT 1 FROM plan_cancellation INDEXED BY plan_cancellation_of_person
         WHERE person_id = $personId AND arrival > $arrival) AS later`,
    { environmentId, personId, arrival },
  );
  return row?.later === 1;
}

/** Reports whether the app's processor was paid for a plan after the sale's event arrived. */
export async function wasBilledSince(
  tx: Reader,
  { environmentId, personId, arrival }: SaleContext,
): Promise<boolean> {
  const sql = `SELECT 1 AS found FROM purchase INDEXED BY purchase_of_plan
    WHERE ${OF_PERSON} AND arrival >= $arrival AND arrival > 0 AND relay_name IS NULL LIMIT 1`;
  return (await tx.get(sql, { environmentId, personId, arrival })) !== null;
}

const PAYMENT = "id, item AS plan, ref, arrival, event_id AS eventId, relay_name AS relayName, confirmation";
type Stored = Omit<PlanPayment, "confirms"> & { confirmation: number };

/** `confirmed`: ids of receipts that are marked as confirmations and arrived after the sale's event. */
interface PlanHistory {
  payments: PlanPayment[];
  cancellations: PlanCancellation[];
  confirmed: ReadonlySet<string>;
}

/**
 * Reads the history that decides the person's plan: everything since the newest payment before this event that is not a confirmation, and the
 * payments that later cancellations name.
 */
export async function readPlanHistory(
  tx: Reader,
  { environmentId, personId, arrival }: SaleContext,
): Promise<PlanHistory> {
  const person = { environmentId, personId };
  const base = await tx.get<{ arrival: number }>(
    `SELECT arrival FROM purchase INDEXED BY purchase_of_plan
     WHERE ${OF_PERSON} AND arrival > 0 AND arrival < $arrival AND confirmation = 0 ORDER BY arrival DESC LIMIT 1`,
    { ...person, arrival },
  );
  const from = { ...person, from: base?.arrival ?? 1 };
  const [since, cancellations] = await Promise.all([
    tx.all<Stored>(
      `SELECT ${PAYMENT} FROM purchase INDEXED BY purchase_of_plan WHERE ${OF_PERSON} AND arrival >= $from ORDER BY arrival, id`,
      from,
    ),
    tx.all<PlanCancellation>(
      `SELECT plan, ref, arrival, event_id AS eventId FROM plan_cancellation INDEXED BY plan_cancellation_of_person
       WHERE person_id = $personId AND environment_id = $environmentId AND arrival >= $from ORDER BY arrival, seq`,
      from,
    ),
  ]);
  const known = new Set(since.map(({ ref }) => ref));
  const named = new Set(cancellations.map(({ ref }) => ref).filter((ref) => ref !== "" && !known.has(ref)));
  const before = await Promise.all([...named].map((ref) => findPayment(tx, person, ref)));
  const stored = [...before.filter((one) => one !== null), ...since];
  const isLater = (one: Stored): boolean => one.arrival > arrival;
  return {
    payments: stored.map((one) => ({ ...one, confirms: isLater(one) ? null : one.confirmation === 1 })),
    cancellations,
    confirmed: new Set(stored.filter((one) => isLater(one) && one.confirmation === 1).map(({ id }) => id)),
  };
}

function findPayment(tx: Reader, person: PlanOwner, ref: string): Promise<Stored | null> {
  const sql = `SELECT ${PAYMENT} FROM purchase WHERE environment_id = $environmentId AND kind = 'purchase' AND ref = $ref
    AND item_kind = 'plan' AND person_id = $personId AND moved_to IS NULL`;
  return tx.get<Stored>(sql, { ...person, ref });
}

/** Finds the ref of a later payment of the same plan that was not refunded. */
export async function findLaterPayment(
  tx: Reader,
  { environmentId, personId, item, arrival, id }: Purchase,
): Promise<string | null> {
  const row = await tx.get<{ ref: string }>(
    `SELECT ref FROM purchase INDEXED BY purchase_of_plan
     WHERE ${OF_PERSON} AND arrival >= $arrival AND (arrival > $arrival OR id > $id) AND item = $item AND confirmation = 0
       AND NOT EXISTS (SELECT 1 FROM purchase AS refund
         WHERE refund.environment_id = purchase.environment_id AND refund.kind = 'refund' AND refund.ref = purchase.ref
           AND refund.refunds = purchase.id)
     ORDER BY arrival DESC, id DESC LIMIT 1`,
    { environmentId, personId, item, arrival, id },
  );
  return row?.ref ?? null;
}

/** Updates which of the later receipts are confirmations. */
export async function markConfirmations(
  tx: Writer,
  { payments, confirmed }: PlanHistory,
  confirmations: ReadonlySet<string>,
): Promise<void> {
  const changed = payments.filter(
    ({ id, confirms }) => confirms === null && confirmed.has(id) !== confirmations.has(id),
  );
  await tx.postEach(
    "UPDATE purchase SET confirmation = $confirmation WHERE id = $id",
    changed.map(({ id }) => ({ id, confirmation: confirmations.has(id) ? 1 : 0 })),
  );
}

/** Excludes the person's receipts of plans so far, because a manual change ended what they paid for. */
export async function voidPayments(tx: Writer, person: PlanOwner): Promise<void> {
  await tx.run(`UPDATE purchase SET arrival = 0 WHERE ${OF_PERSON} AND arrival > 0`, { ...person });
}

/** Rows that one step of retention reads. */
const STEP_ROWS = 250;

/** Deletes cancellations that no remaining event precedes. Returns whether there may be more. */
export async function deleteSpentCancellations(tx: Writer): Promise<boolean> {
  const sql = `DELETE FROM plan_cancellation WHERE seq IN (SELECT seq FROM plan_cancellation WHERE seq > 0 ORDER BY seq LIMIT ?2)
    AND arrival < coalesce((SELECT min(seq) FROM event), ?1)`;
  return (await tx.run(sql, Number.MAX_SAFE_INTEGER, STEP_ROWS)) === STEP_ROWS;
}
