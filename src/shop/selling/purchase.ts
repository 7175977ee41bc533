/**
 * Receipts: one row per purchase, unique by its ref in the environment, and another row for its refund. Only the place in the order of arrival
 * and the person it moved to ever change; rows are never removed. Grants are written in the same transaction (sale.ts).
 */
import { type Static, Type } from "typebox";
import type { JsonObject } from "../../base/json.ts";
import type { Page, PageRequest } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { oneOf, payloadJson, show, orNull as shownOrNull, textOrNull, time } from "../../base/schema.ts";
import { equals, walkPage } from "../../store/index-scan.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, flag, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import type { ItemKind } from "./catalog-item.ts";

const PURCHASE_KINDS = ["purchase", "refund"] as const;
export const purchaseKind = oneOf(PURCHASE_KINDS);
type PurchaseKind = Static<typeof purchaseKind>;
/** Kinds for display and filters; a `confirmation` is not a purchase. */
export const RECEIPT_KINDS = [...PURCHASE_KINDS, "confirmation"] as const;
export const receiptKind = oneOf(RECEIPT_KINDS);

/** The grants and credits that a refund takes back. */
export const takenBackView = Type.Object({
  /** Grants that end. */
  grants: Type.Integer(),
  credits: Type.Integer(),
  /** Credits that were granted and are spent. */
  creditsShort: Type.Integer(),
});
export type TakenBack = Static<typeof takenBackView>;

/** The JSON of a receipt. */
export interface PurchaseData {
  /** The goods that the purchase granted, which a refund takes back exactly. */
  granted?: { entitlement: string; grant?: string; credits: number; subscription?: string };
  /** The grants and credits that a refund took back; absent on a purchase. */
  takenBack?: TakenBack;
  /** Additional data from the caller of the receipts route. */
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
    /** `relay`: a relay fulfilled it. `payment`: the app's own processor took it. */
    origin: text<"relay" | "payment">(),
    relayName: orNull(text()),
    eventId: orNull(text()),
    /** The refunded purchase, on a refund. */
    refunds: orNull(text()),
    /** Amount in the currency's smallest unit. */
    amountMinor: orNull(integer()),
    currency: orNull(text()),
    data: json<PurchaseData>(),
    createdAt: integer(),
    /** The purchase's place in the order of arrival, as of a grant. A plan's 0 means that the purchase does not count: plan-history.ts. */
    arrival: integer(),
    /** True if it confirms the person's plan and is not a payment: plan-order.ts. */
    confirmation: flag(),
    /** The id of the person to whom the purchase moved, also on its refund. The ref then belongs to the new purchase. */
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
  /** Null once the person is erased. */
  personEmail: textOrNull,
  origin: oneOf(["relay", "payment"]),
  relay: textOrNull,
  eventId: textOrNull,
  refunds: textOrNull,
  /** The refund of a purchase. */
  refundedBy: textOrNull,
  /** The id of the person to whom the purchase moved: it was taken back here and made there under the same ref. */
  movedTo: textOrNull,
  amountMinor: shownOrNull(Type.Integer()),
  currency: textOrNull,
  granted: Type.Unsafe<PurchaseData["granted"] | null>({}),
  takenBack: Type.Unsafe<PurchaseData["takenBack"] | null>({}),
  data: Type.Unsafe<JsonObject>(payloadJson),
  createdAt: time,
});
export type PurchaseView = Static<typeof purchaseView>;

/** Finds the purchase or refund under this ref. A moved purchase no longer has its ref. */
export function findPurchase(
  tx: Reader,
  environmentId: number,
  kind: PurchaseKind,
  ref: string,
): Promise<Purchase | null> {
  const rest = "WHERE environment_id = $environmentId AND kind = $kind AND ref = $ref AND moved_to IS NULL";
  return PURCHASE.get(tx, rest, { environmentId, kind, ref });
}

/** Finds the purchase that the person had under this ref before it moved to another person. */
export function findMovedPurchase(
  tx: Reader,
  { environmentId, personId }: Pick<Purchase, "environmentId" | "personId">,
  ref: string,
): Promise<Purchase | null> {
  const rest = `INDEXED BY purchase_by_ref WHERE environment_id = $environmentId AND ref = $ref AND person_id = $personId
    AND kind = 'purchase' AND moved_to IS NOT NULL ORDER BY id DESC LIMIT 1`;
  return PURCHASE.get(tx, rest, { environmentId, ref, personId });
}

/** SQL of a purchase that was neither refunded nor moved. A confirmation is not a purchase. */
export const LIVE_PURCHASE = `kind = 'purchase' AND confirmation = 0 AND moved_to IS NULL
  AND NOT EXISTS (SELECT 1 FROM purchase AS refund WHERE refund.environment_id = purchase.environment_id AND refund.kind = 'refund'
    AND refund.ref = purchase.ref AND refund.refunds = purchase.id)`;

/** Finds the refund of a purchase. */
export function findRefundOf(
  tx: Reader,
  { environmentId, ref, id }: Pick<Purchase, "environmentId" | "ref" | "id">,
): Promise<Purchase | null> {
  const rest = "WHERE environment_id = $environmentId AND kind = 'refund' AND ref = $ref AND refunds = $id";
  return PURCHASE.get(tx, rest, { environmentId, ref, id });
}

/** Marks a purchase and its refund as moved, which leaves their ref to the new person's purchase. */
export async function markMoved(
  tx: Writer,
  { environmentId, ref }: Pick<Purchase, "environmentId" | "ref">,
  movedTo: string,
): Promise<void> {
  const sql =
    "UPDATE purchase SET moved_to = $movedTo, arrival = 0 WHERE environment_id = $environmentId AND ref = $ref AND moved_to IS NULL";
  await tx.run(sql, { environmentId, ref, movedTo });
}

/** Finds a purchase or refund by id. Throws `not_found`. */
export function requirePurchase(tx: Reader, environmentId: number, id: string): Promise<Purchase> {
  return PURCHASE.require(tx, { environmentId, id }, NO_RECEIPT);
}

const NO_RECEIPT =
  "No receipt with this id exists in this environment: relay people show <address> lists the receipts of a person.";

/** Sets the place of a purchase in the order of arrival, when an earlier event has the same ref or it no longer counts. */
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
  /** The ref of a receipt, which its refund has too. */
  ref?: string | undefined;
  person?: string | undefined;
  kind?: Static<typeof receiptKind> | undefined;
}

const MAX_SKIPPED_CONFIRMATIONS = 100;

/** SQL of each kind, and of the default list without a ref. */
const FITS = {
  purchase: { sql: "kind = 'purchase' AND confirmation = 0", values: [] },
  refund: { sql: "kind = 'refund'", values: [] },
  confirmation: { sql: "confirmation = 1", values: [] },
  all: { sql: "confirmation = 0", values: [] },
} as const;

/** Lists receipts and refunds, newest first; confirmations only by kind or ref. */
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
  // Skips this many confirmations for a full page; more of them make the page short.
  const look = kind === undefined ? { look: request.limit + MAX_SKIPPED_CONFIRMATIONS } : {};
  const step = { ...look, ...request };
  return await walkPage<Purchase, PurchaseView, PurchaseNames>(tx, PURCHASE, step, walk, viewPurchase);
}

/** Finds a receipt or refund as the API shows it. Throws `not_found`. */
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
