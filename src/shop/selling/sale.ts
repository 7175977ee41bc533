/**
 * The parts of every sale and refund: its context, and the ref that identifies a purchase permanently. A ref of another purchase is rejected
 * and audited. Neither that nor an unresolved ref is fixed by waiting, so both are permanent failures. Source: the specification's "`ref`
 * rules", "Relay-sold products and plans".
 */

import type { ResultCode } from "../../base/code/result-code.ts";
import { newId } from "../../base/id.ts";
import type { Json } from "../../base/json.ts";
import { MAX_REF_CHARS } from "../../base/limit.ts";
import { type Failure, failFinally, failForNow, type Outcome } from "../../base/outcome.ts";
import { countChars } from "../../base/text.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findPerson } from "../people/person.ts";
import type { CatalogItems, ItemKind, ItemRow } from "./catalog-item.ts";
import { findMovedPurchase, findPurchase, PURCHASE, type Purchase, type PurchaseData } from "./purchase.ts";

export interface SaleContext {
  environmentId: number;
  personId: string;
  /** The name of the relay that runs; null: a payment receipt. */
  relayName: string | null;
  eventId: string | null;
  /** The event's number; without an event, the number of the newest event. */
  arrival: number;
  /** The place of the granted access in the order of arrival, if it is not that of the sale: a move by hand keeps live access. */
  grantArrival?: number;
  /** The formatted actor for what ends: `relay:<name>`, `receipt`, `owner:<email>`. */
  by: string;
  nowMs: number;
}

/** A sale by a relay. */
export type RelaySale = SaleContext & { relayName: string; eventId: string };

/** The facts that an action's run knows of its sale; the shape is a part of the action contract's. */
interface Run {
  environmentId: number;
  nowMs: number;
  relay: { name: string };
  event: { id: string; arrival: number };
  person: { id: string } | null;
}

/**
 * Reads the sale of an action's run, with the person as of this transaction. Fails with `person_suspended` (permanent), or `person_not_found`
 * if the person was erased since the attempt began.
 */
export async function readRelaySale(
  tx: Reader,
  run: Run,
): Promise<{ sale: RelaySale } | { failure: Failure }> {
  const { relay, environmentId, nowMs } = run;
  if (run.person === null) throw new Error("An action that needs a person ran without one.");
  const person = await findPerson(tx, environmentId, run.person.id);
  if (person === null) {
    const message = "The event's person was erased later, so nothing was done.";
    return { failure: failForNow("person_not_found", message) };
  }
  if (person.status === "suspended") {
    const message = `The person is suspended: make them active again with relay people activate ${person.id}, then replay the event.`;
    return { failure: failFinally("person_suspended", message) };
  }
  const { id: eventId, arrival } = run.event;
  const by = `relay:${relay.name}`;
  return {
    sale: { environmentId, personId: person.id, relayName: relay.name, eventId, arrival, by, nowMs },
  };
}

/**
 * Resolves the ref. `written`: the definition's text, or undefined. `render` returns null if a path resolves to nothing that identifies. Only
 * an absent ref falls back to `rly:<eventId>`; a written one that resolves to nothing fails permanently with `ref_unresolved`.
 */
export function resolveRef(
  written: string | undefined,
  render: (text: string) => string | null,
  eventId: string,
): { ref: string } | { failure: Failure } {
  if (written === undefined) return { ref: `rly:${eventId}` };
  const ref = render(written)?.trim() ?? "";
  if (ref !== "" && countChars(ref) <= MAX_REF_CHARS) return { ref };
  const message =
    ref === ""
      ? "`ref` resolves to no text or number on this event: name a path to the payment's identifier that every such event carries, then replay."
      : `\`ref\` is longer than ${MAX_REF_CHARS} characters on this event: name only the payment's identifier, then replay.`;
  return { failure: failFinally("ref_unresolved", message) };
}

/**
 * Finds the purchase of this person and item under the ref, also if it moved to another person; null if the ref is free. Fails if the ref
 * belongs to another purchase.
 */
export async function claimRef(
  tx: Writer,
  sale: SaleContext,
  itemKind: ItemKind,
  item: string,
  ref: string,
): Promise<{ previous: Purchase | null } | { failure: Failure }> {
  const purchase = await findPurchase(tx, sale.environmentId, "purchase", ref);
  if (purchase === null || (await isTheirPurchase(tx, sale, purchase, itemKind, item)))
    return { previous: purchase };
  await auditRefusedRef(tx, sale, { itemKind, item, ref, purchase: purchase.id, code: "ref_used" });
  const owner = purchase.personId === sale.personId ? "another purchase" : "another person's purchase";
  const message = `\`ref\` already belongs to ${owner} (${purchase.id}), which relay receipts list shows: use the provider's unique payment identifier.`;
  return { failure: failFinally("ref_used", message) };
}

/**
 * Reports whether the sale's person has this purchase of the item, or had it before it moved. The provider still names the person who had it,
 * and means the purchase under the ref.
 */
export async function isTheirPurchase(
  tx: Reader,
  sale: SaleContext,
  purchase: Purchase,
  itemKind: ItemKind,
  item: string,
): Promise<boolean> {
  if (purchase.itemKind !== itemKind || purchase.item !== item) return false;
  if (purchase.personId === sale.personId) return true;
  const moved = await findMovedPurchase(tx, sale, purchase.ref);
  return moved !== null && moved.itemKind === itemKind && moved.item === item;
}

/** Audits a rejected ref once per event and ref, however often the event is retried. */
export async function auditRefusedRef(
  tx: Writer,
  { environmentId, personId, relayName, eventId, by, nowMs }: SaleContext,
  refused: { itemKind: ItemKind; item: string; ref: string; purchase: string; code: ResultCode },
): Promise<void> {
  const target = `ref:${refused.ref}`;
  if (eventId !== null) {
    const sql = `SELECT 1 AS found FROM audit WHERE environment_id = $environmentId AND target = $target
      AND event_id IS NULL AND action = 'ref_refused' AND instr(after, $eventId) > 0 LIMIT 1`;
    if ((await tx.get(sql, { environmentId, target, eventId })) !== null) return;
  }
  await writeAudit(tx, {
    environmentId,
    nowMs,
    by,
    action: "ref_refused",
    target,
    after: { ...refused, person: personId, relay: relayName, eventId },
  });
}

/**
 * Finds the item, if the relay that runs sells it. A purchase under this ref stays valid even if another relay sells the item now: `previous`.
 * Otherwise fails permanently.
 */
export async function findSoldHere<Row extends ItemRow>(
  tx: Reader,
  sale: RelaySale,
  items: CatalogItems<Row, unknown>,
  name: string,
  ref: string,
): Promise<{ item: Row } | { previous: Purchase } | { failure: Failure }> {
  const { kind, codes } = items;
  const item = await items.find(tx, sale.environmentId, name);
  if (item?.soldThrough?.kind === "relay" && item.soldThrough.relay === sale.relayName) return { item };
  const purchase = await findPurchase(tx, sale.environmentId, "purchase", ref);
  if (purchase !== null && (await isTheirPurchase(tx, sale, purchase, kind, name)))
    return { previous: purchase };
  if (item === null) return { failure: failUnknown(items, name) };
  const message = `\`${kind}\` names ${name}, which is not sold through the relay ${sale.relayName}: name that relay in the ${kind}'s soldThrough, with relay catalog set ${kind} ${name}.`;
  return { failure: failFinally(codes.notSoldHere, message) };
}

export function failUnknown(
  { kind, codes }: Pick<CatalogItems<ItemRow, unknown>, "kind" | "codes">,
  name: string,
): Failure {
  const message = `\`${kind}\` names ${name}, which is not a ${kind} in this environment: create it with relay catalog set ${kind}, or name one that exists.`;
  return failFinally(codes.unknown, message);
}

/** The payment of a sale. */
export interface Payment extends Pick<PurchaseData, "given"> {
  ref: string;
  amountMinor?: number | null;
  currency?: string | null;
}

/** The item of a sale, and the functions that sell its kind. */
interface Selling {
  itemKind: ItemKind;
  item: string;
  /** Reads what the person holds, for the audit. */
  readState(): Promise<Record<string, Json>>;
  /** Grants the item, under the id of the receipt that follows. */
  grantItem(purchaseId: string): Promise<SaleGrant>;
  skip(previous: Purchase): Promise<Outcome> | Outcome;
}

/** The goods that a sale granted. */
export interface SaleGrant {
  granted: NonNullable<PurchaseData["granted"]>;
  /** An additional message of the result. */
  message?: string | null;
  /** True if a plan's purchase is a confirmation and not a payment. */
  confirmation?: boolean;
}

/**
 * Sells an item and writes its receipt. Calls `skip` if this person bought it under this ref before; fails with `ref_used` if the ref belongs
 * to another purchase.
 */
export async function sell(
  tx: Writer,
  sale: SaleContext,
  { given, ...payment }: Payment,
  { itemKind, item, readState, grantItem, skip }: Selling,
): Promise<Outcome> {
  const claim = await claimRef(tx, sale, itemKind, item, payment.ref);
  if ("failure" in claim) return claim.failure;
  if (claim.previous !== null) return skip(claim.previous);
  const before = await readState();
  const id = newPurchaseId(sale);
  const { granted, message = null, confirmation = false } = await grantItem(id);
  const data = { granted, ...(given === undefined ? {} : { given }) };
  await recordPurchase(tx, sale, id, { kind: "purchase", itemKind, item, ...payment, data, confirmation });
  const after = {
    ...(await readState()),
    purchase: id,
    ref: payment.ref,
    ...(confirmation ? { confirmation } : {}),
  };
  return { outcome: "done", ...(message === null ? {} : { message }), before, after };
}

/** Creates a receipt id, because grants refer to the receipt before it is written. */
export function newPurchaseId({ nowMs }: SaleContext): string {
  return newId("prc", nowMs);
}

type Recorded = Pick<Purchase, "kind" | "ref" | "itemKind" | "item" | "data"> &
  Partial<Pick<Purchase, "origin" | "refunds" | "amountMinor" | "currency" | "confirmation">>;

/** Writes the receipt of a sale or refund. Throws UniqueViolation if the ref is taken: call `claimRef` first. */
export async function recordPurchase(
  tx: Writer,
  { environmentId, personId, relayName, eventId, arrival, nowMs }: SaleContext,
  id: string,
  recorded: Recorded,
): Promise<void> {
  const { refunds = null, amountMinor = null, currency = null, confirmation = false, ...rest } = recorded;
  await PURCHASE.insert(tx, {
    id,
    environmentId,
    personId,
    origin: relayName === null ? "payment" : "relay",
    relayName,
    eventId,
    refunds,
    amountMinor,
    currency,
    confirmation,
    ...rest,
    movedTo: null,
    arrival,
    createdAt: nowMs,
  });
}
