/**
 * Receipts: one immutable row a purchase, unique by its ref in the environment, and one row beside it when it is refunded. Nothing but its place in
 * the order of arrival, and to whom it moved, is ever changed, and nothing removed here. What a purchase grants is written in the same transaction (sale.ts).
 */
import { type Static, Type } from "typebox";
import type { JsonObject } from "../../base/json.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, show, orNull as shownOrNull, textOrNull, time } from "../../base/schema.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, flag, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import type { ItemKind } from "./catalog-item.ts";

const PURCHASE_KINDS = ["purchase", "refund"] as const;
export const purchaseKind = oneOf(PURCHASE_KINDS);
type PurchaseKind = Static<typeof purchaseKind>;
/** As receipts are shown and listed: `confirmation` is no purchase. */
export const RECEIPT_KINDS = [...PURCHASE_KINDS, "confirmation"] as const;
export const receiptKind = oneOf(RECEIPT_KINDS);

/** What a refund takes back. */
export const takenBackView = Type.Object({
  /** Grants that end. */
  grants: Type.Integer(),
  credits: Type.Integer(),
  /** Credits that were given and spent. */
  creditsShort: Type.Integer(),
});
export type TakenBack = Static<typeof takenBackView>;

/** What stands in a receipt's JSON. */
export interface PurchaseData {
  /** What the purchase gave: what a refund takes back, exactly. */
  granted?: { entitlement: string; grant?: string; credits: number; subscription?: string };
  /** Of a refund. */
  takenBack?: TakenBack;
  /** What the caller of the receipts route added. */
  given?: JsonObject;
}

export const PURCHASE = defineTable({
  name: "purchase",
  key: ["id"],
  columns: {
    id: text(),
    environmentId: integer(),
    kind: text<PurchaseKind>(),
    ref: text(),
    itemKind: text<ItemKind>(),
    item: text(),
    personId: text(),
    /** `relay`: fulfilled by one; `payment`: the app's own processor took it. */
    origin: text<"relay" | "payment">(),
    relayName: orNull(text()),
    eventId: orNull(text()),
    /** On a refund, the purchase it takes back. */
    refunds: orNull(text()),
    /** In the currency's smallest unit. */
    amountMinor: orNull(integer()),
    currency: orNull(text()),
    data: json<PurchaseData>(),
    createdAt: integer(),
    /** Its place in the order of arrival, as a grant's; of a plan 0 where it counts no more: plan-history.ts. */
    arrival: integer(),
    /** Whether it confirms a plan that the person had, and is no payment: plan-order.ts. */
    confirmation: flag(),
    /** Of a purchase that was taken back to be made for another person, and of that refund: the new person's id. Its ref is the new purchase's. */
    movedTo: orNull(text()),
  },
});
export type Purchase = RowOf<typeof PURCHASE>;

export const purchaseView = Type.Object({
  id: Type.String(),
  kind: receiptKind,
  ref: Type.String(),
  itemKind: oneOf(["product", "plan"]),
  item: Type.String(),
  person: Type.String(),
  /** Null once they are erased. */
  personEmail: textOrNull,
  origin: oneOf(["relay", "payment"]),
  relay: textOrNull,
  eventId: textOrNull,
  refunds: textOrNull,
  /** On a purchase, the refund that took it back. */
  refundedBy: textOrNull,
  /** The person's id to whom the purchase moved: it was taken back here, and made there under the same ref. */
  movedTo: textOrNull,
  amountMinor: shownOrNull(Type.Integer()),
  currency: textOrNull,
  granted: Type.Unsafe<PurchaseData["granted"] | null>({}),
  takenBack: Type.Unsafe<PurchaseData["takenBack"] | null>({}),
  data: Type.Unsafe<JsonObject>({}),
  createdAt: time,
});
export type PurchaseView = Static<typeof purchaseView>;

/** The purchase, or the refund, under this ref; null when there is none. One that moved is not under its ref any more. */
export function findPurchase(
  tx: Reader,
  environmentId: number,
  kind: PurchaseKind,
  ref: string,
): Promise<Purchase | null> {
  const rest = "WHERE environment_id = $environmentId AND kind = $kind AND ref = $ref AND moved_to IS NULL";
  return PURCHASE.get(tx, rest, { environmentId, kind, ref });
}

/** The refund that took the purchase back; null: none did. */
export function findRefundOf(
  tx: Reader,
  { environmentId, ref, id }: Pick<Purchase, "environmentId" | "ref" | "id">,
): Promise<Purchase | null> {
  const rest = "WHERE environment_id = $environmentId AND kind = 'refund' AND ref = $ref AND refunds = $id";
  return PURCHASE.get(tx, rest, { environmentId, ref, id });
}

/** The purchase and its refund leave their ref to the purchase of the person whom it moved to. */
export async function markMoved(
  tx: Writer,
  { environmentId, ref }: Pick<Purchase, "environmentId" | "ref">,
  movedTo: string,
): Promise<void> {
  const sql =
    "UPDATE purchase SET moved_to = $movedTo, arrival = 0 WHERE environment_id = $environmentId AND ref = $ref AND moved_to IS NULL";
  await tx.run(sql, { environmentId, ref, movedTo });
}

/** The purchase or refund of this id. Refuses with `not_found`. */
export function requirePurchase(tx: Reader, environmentId: number, id: string): Promise<Purchase> {
  return PURCHASE.require(tx, { environmentId, id }, NO_RECEIPT);
}

const NO_RECEIPT = "No receipt with this id exists here: relay people show <address> lists a person's.";

/** An event that arrived earlier brought the same ref: the purchase takes that place in the order of arrival. */
export async function setPurchaseArrival(tx: Writer, id: string, arrival: number): Promise<void> {
  await tx.run("UPDATE purchase SET arrival = ?2 WHERE id = ?1", id, arrival);
}

/** A row of `SHOWN`. */
type ShownPurchase = Purchase & PurchaseNames;
interface PurchaseNames {
  refundedBy: string | null;
  personEmail: string | null;
}

const SHOWN = `${PURCHASE.columnsOf("purchase")}, CASE WHEN purchase.kind = 'purchase' THEN (SELECT r.id FROM purchase r
  WHERE r.environment_id = purchase.environment_id AND r.kind = 'refund' AND r.ref = purchase.ref AND r.refunds = purchase.id) END AS refundedBy,
  (SELECT email FROM person WHERE person.id = purchase.person_id) AS personEmail`;

interface PurchaseFilter {
  /** The ref of a receipt, which its refund bears too. */
  ref?: string | undefined;
  person?: string | undefined;
  kind?: Static<typeof receiptKind> | undefined;
}

const MAX_SKIPPED_CONFIRMATIONS = 100;

/** SQL of each kind, and of all that a list shows where no ref is asked for. */
const FITS = {
  purchase: { sql: "kind = 'purchase' AND confirmation = 0", values: [] },
  refund: { sql: "kind = 'refund'", values: [] },
  confirmation: { sql: "confirmation = 1", values: [] },
  all: { sql: "confirmation = 0", values: [] },
} as const;

/** Receipts and refunds, newest first; confirmations only by their kind or their ref. */
export async function listPurchases(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  filter: PurchaseFilter = {},
): Promise<Page<PurchaseView>> {
  const { person, kind, ref } = filter;
  const index = ref !== undefined ? "by_ref" : person !== undefined ? "by_person_id" : "by_environment";
  const walk = {
    index: `purchase_${index}`,
    columns: SHOWN,
    key: "id",
    led: [
      equals("environment_id", environmentId),
      equals("ref", ref),
      ref === undefined ? equals("person_id", person) : undefined,
    ],
    fits: [
      kind !== undefined || ref === undefined ? FITS[kind ?? "all"] : undefined,
      ref === undefined ? undefined : equals("person_id", person),
    ],
    cost: "octet_length(data)",
  } as const;
  // As many confirmations are passed over for a whole page; more of them make it short.
  const look = kind === undefined ? { look: request.limit + MAX_SKIPPED_CONFIRMATIONS } : {};
  const step = { ...look, ...request };
  return await walkPage<Purchase, PurchaseView, PurchaseNames>(tx, PURCHASE, step, walk, viewPurchase);
}

/** One receipt or refund as the API shows it. Refuses with `not_found`. */
export async function requirePurchaseView(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<PurchaseView> {
  const sql = `SELECT ${SHOWN} FROM purchase WHERE environment_id = ?1 AND id = ?2`;
  const row = await tx.get<ShownPurchase>(sql, environmentId, id);
  if (row !== null) return viewPurchase(PURCHASE.read(row));
  throw new Refusal("not_found", NO_RECEIPT);
}

function viewPurchase(row: ShownPurchase): PurchaseView {
  const { granted = null, takenBack = null, given = {} } = row.data;
  const kind = row.confirmation ? ("confirmation" as const) : row.kind;
  const renamed = { kind, person: row.personId, relay: row.relayName, granted, takenBack, data: given };
  return show(purchaseView, { ...row, ...renamed });
}
