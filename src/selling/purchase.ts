/**
 * Receipts: one immutable row a purchase, unique by its ref in the environment, and one row beside it when it is refunded. Nothing is
 * ever changed or removed here. What a purchase grants is written by product-sale.ts and plan-sale.ts in the same transaction.
 */
import { toIso } from "../ground/clock.ts";
import { newId } from "../ground/id.ts";
import { isJsonObject, type JsonObject, parseJson, writeJson } from "../ground/json.ts";
import type { Page, PageRequest } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import { equals, walkPage } from "../store/walk.ts";
import type { ItemKind } from "./catalog-name.ts";
import type { Occasion } from "./occasion.ts";

type PurchaseKind = "purchase" | "refund";

export interface Purchase {
  id: string;
  kind: PurchaseKind;
  ref: string;
  itemKind: ItemKind;
  item: string;
  personId: string;
  /** `relay`: fulfilled by one; `payment`: the app's own processor took it. */
  origin: "relay" | "payment";
  relayName: string | null;
  eventId: string | null;
  /** On a refund, the purchase it takes back. */
  refunds: string | null;
  /** In the currency's smallest unit. */
  amountMinor: number | null;
  currency: string | null;
  data: PurchaseData;
  createdAt: number;
}

/** What stands in a receipt's JSON. */
export interface PurchaseData {
  /** What the purchase gave: what a refund takes back, exactly. */
  granted?: { entitlement: string; grant: string; credits: number; subscription?: string };
  /** What a refund took back; `creditsShort` had been spent already. */
  takenBack?: { grants: number; credits: number; creditsShort: number };
  /** What the caller of the receipts route added. */
  given?: JsonObject;
}

export interface PurchaseView {
  id: string;
  kind: PurchaseKind;
  ref: string;
  itemKind: ItemKind;
  item: string;
  person: string;
  origin: "relay" | "payment";
  relay: string | null;
  eventId: string | null;
  refunds: string | null;
  /** On a purchase, the refund that took it back. */
  refundedBy: string | null;
  amountMinor: number | null;
  currency: string | null;
  granted: PurchaseData["granted"] | null;
  takenBack: PurchaseData["takenBack"] | null;
  data: JsonObject;
  createdAt: string;
}

type PurchaseRow = Omit<Purchase, "data"> & { data: string; refundedBy: string | null };

const COLUMNS = `p.id, p.kind, p.ref, p.item_kind AS itemKind, p.item, p.person_id AS personId, p.origin,
  p.relay_name AS relayName, p.event_id AS eventId, p.refunds, p.amount_minor AS amountMinor, p.currency, p.data,
  p.created_at AS createdAt`;
const REFUNDED_BY = `CASE WHEN p.kind = 'purchase' THEN (SELECT r.id FROM purchase r
  WHERE r.environment_id = p.environment_id AND r.kind = 'refund' AND r.ref = p.ref) END AS refundedBy`;

/** The purchase, or the refund, under this ref; null when there is none. */
export async function findPurchase(
  tx: Reader,
  environmentId: number,
  kind: PurchaseKind,
  ref: string,
): Promise<Purchase | null> {
  const sql = `SELECT ${COLUMNS} FROM purchase p WHERE p.environment_id = ?1 AND p.kind = ?2 AND p.ref = ?3`;
  const row = await tx.get<PurchaseRow>(sql, environmentId, kind, ref);
  return row === null ? null : toPurchase(row);
}

/** What a new receipt holds beside its occasion. */
export interface NewPurchase {
  kind: PurchaseKind;
  ref: string;
  itemKind: ItemKind;
  item: string;
  refunds?: string;
  amountMinor?: number | null;
  currency?: string | null;
  data: PurchaseData;
}

/** A fresh receipt id, for what is granted under it before the receipt itself is written. */
export function newPurchaseId(occasion: Occasion): string {
  return newId("prc", occasion.nowMs);
}

/** Writes the receipt. Throws UniqueViolation when the ref is taken: ask `claimRef` first. */
export async function insertPurchase(
  tx: Writer,
  occasion: Occasion,
  id: string,
  purchase: NewPurchase,
): Promise<void> {
  await tx.run(
    `INSERT INTO purchase (id, environment_id, kind, ref, item_kind, item, person_id, origin, relay_name, event_id, refunds,
       amount_minor, currency, data, created_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)`,
    id,
    occasion.environmentId,
    purchase.kind,
    purchase.ref,
    purchase.itemKind,
    purchase.item,
    occasion.personId,
    occasion.relayName === null ? "payment" : "relay",
    occasion.relayName,
    occasion.eventId,
    purchase.refunds ?? null,
    purchase.amountMinor ?? null,
    purchase.currency ?? null,
    writeJson(purchase.data),
    occasion.nowMs,
  );
}

interface PurchaseFilter {
  /** The ref of a receipt, which its refund bears too. */
  ref?: string | undefined;
  person?: string | undefined;
  kind?: PurchaseKind | undefined;
}

/** Receipts and refunds, newest first. */
export async function listPurchases(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
  filter: PurchaseFilter = {},
): Promise<Page<PurchaseView>> {
  const { person, kind, ref } = filter;
  const index = ref !== undefined ? "by_ref" : person !== undefined ? "by_person_id" : "by_environment";
  return await walkPage<PurchaseRow, PurchaseView>(
    tx,
    {
      from: `purchase p INDEXED BY purchase_${index}`,
      columns: `${COLUMNS}, ${REFUNDED_BY}`,
      key: "p.id",
      led: [
        equals("p.environment_id", environmentId),
        equals("p.ref", ref),
        ref === undefined ? equals("p.person_id", person) : undefined,
      ],
      fits: [equals("p.kind", kind), ref === undefined ? undefined : equals("p.person_id", person)],
      cost: "octet_length(p.data)",
      after: request.after,
      limit: request.limit,
    },
    (row) => viewPurchase(toPurchase(row), row.refundedBy),
  );
}

/** One receipt or refund as the API shows it. Refuses with `not_found`. */
export async function requirePurchaseView(
  tx: Reader,
  environmentId: number,
  id: string,
): Promise<PurchaseView> {
  const sql = `SELECT ${COLUMNS}, ${REFUNDED_BY} FROM purchase p WHERE p.environment_id = ?1 AND p.id = ?2`;
  const row = await tx.get<PurchaseRow>(sql, environmentId, id);
  if (row !== null) return viewPurchase(toPurchase(row), row.refundedBy);
  throw new Refusal("not_found", "No receipt with this id exists here; the list of purchases shows them.");
}

function viewPurchase(purchase: Purchase, refundedBy: string | null): PurchaseView {
  const { personId, relayName, data, createdAt, ...rest } = purchase;
  return {
    ...rest,
    person: personId,
    relay: relayName,
    refundedBy,
    granted: data.granted ?? null,
    takenBack: data.takenBack ?? null,
    data: data.given ?? {},
    createdAt: toIso(createdAt),
  };
}

function toPurchase({ refundedBy: _, ...row }: PurchaseRow): Purchase {
  const data = parseJson(row.data);
  return { ...row, data: isJsonObject(data) ? (data as PurchaseData) : {} };
}
