/**
 * What plan-order.ts follows, as the database has it: a person's payments of plans, which are their receipts, and the cancellations of events. The
 * receipts of a subscription that was ended by hand count no more (their arrival is 0): what is done by hand stands, whatever arrived before.
 */
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, given, integer, text } from "../../store/table.ts";
import type { PlanCancellation, PlanPayment } from "./plan-order.ts";
import type { Purchase } from "./purchase.ts";
import type { SaleContext } from "./sale.ts";

/** One row for each event, plan and ref. The retention deletes a row when no event is left that arrived before it. */
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
    /** Empty: the action named none. */
    ref: text(),
    eventId: text(),
    createdAt: integer(),
  },
});

type Whose = Pick<SaleContext, "environmentId" | "personId">;

/** Records the cancellation, whatever it ends; a second one of the same event changes nothing. */
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

/** Whether anything that decides on the person's plan arrived after the sale's event. */
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

/** Whether the app's own processor was paid for a plan after the sale's event arrived. */
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

/** `confirmed`: the receipts that are marked as confirmations and arrived later than the sale's event, by id. */
interface PlanHistory {
  payments: PlanPayment[];
  cancellations: PlanCancellation[];
  confirmed: ReadonlySet<string>;
}

/**
 * What decides on the person's plan from before this event on: everything since the newest payment that arrived before it and is no confirmation,
 * and the payments that the cancellations among it name.
 */
export async function readPlanHistory(
  tx: Reader,
  { environmentId, personId, arrival }: SaleContext,
): Promise<PlanHistory> {
  const whose = { environmentId, personId };
  const base = await tx.get<{ arrival: number }>(
    `SELECT arrival FROM purchase INDEXED BY purchase_of_plan
     WHERE ${OF_PERSON} AND arrival > 0 AND arrival < $arrival AND confirmation = 0 ORDER BY arrival DESC LIMIT 1`,
    { ...whose, arrival },
  );
  const from = { ...whose, from: base?.arrival ?? 1 };
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
  const before = await Promise.all([...named].map((ref) => findPayment(tx, whose, ref)));
  const stored = [...before.filter((one) => one !== null), ...since];
  const isLater = (one: Stored): boolean => one.arrival > arrival;
  return {
    payments: stored.map((one) => ({ ...one, confirms: isLater(one) ? null : one.confirmation === 1 })),
    cancellations,
    confirmed: new Set(stored.filter((one) => isLater(one) && one.confirmation === 1).map(({ id }) => id)),
  };
}

function findPayment(tx: Reader, whose: Whose, ref: string): Promise<Stored | null> {
  const sql = `SELECT ${PAYMENT} FROM purchase WHERE environment_id = $environmentId AND kind = 'purchase' AND ref = $ref
    AND item_kind = 'plan' AND person_id = $personId AND moved_to IS NULL`;
  return tx.get<Stored>(sql, { ...whose, ref });
}

/** The ref of a payment of the same plan that came after this one and was not taken back; null: there is none. */
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

/** Corrects the marks of the receipts that arrived later than the sale's event: whether each only confirms. */
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

/** The person's receipts of plans so far count no more: a hand ended what they paid for. */
export async function voidPayments(tx: Writer, whose: Whose): Promise<void> {
  await tx.run(`UPDATE purchase SET arrival = 0 WHERE ${OF_PERSON} AND arrival > 0`, { ...whose });
}

/** Rows that one step of the retention looks at. */
const STEP_ROWS = 250;

/** Deletes the oldest cancellations that no event is left to arrive before. Answers whether there may be more. */
export async function deleteSpentCancellations(tx: Writer): Promise<boolean> {
  const sql = `DELETE FROM plan_cancellation WHERE seq IN (SELECT seq FROM plan_cancellation WHERE seq > 0 ORDER BY seq LIMIT ?2)
    AND arrival < coalesce((SELECT min(seq) FROM event), ?1)`;
  return (await tx.run(sql, Number.MAX_SAFE_INTEGER, STEP_ROWS)) === STEP_ROWS;
}
