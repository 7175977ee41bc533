/**
 * What every sale and every taking back is made of: for whom and on whose behalf it happens, and the ref under which a purchase is known for
 * good. A ref of another purchase is refused and audited, never shared; neither that nor an unresolved ref heals by waiting: both are final.
 * Source: the specification's "`ref` rules", "Relay-sold products and plans".
 */

import { newId } from "../../base/id.ts";
import type { Json } from "../../base/json.ts";
import { MAX_REF_CHARS } from "../../base/limit.ts";
import { type Failure, failFinally, failForNow, type Outcome } from "../../base/outcome.ts";
import type { ResultCode } from "../../base/result-code.ts";
import { countChars } from "../../base/text.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { findPerson } from "../people/person.ts";
import type { CatalogItems, ItemKind, ItemRow } from "./catalog-item.ts";
import { findPurchase, PURCHASE, type Purchase, type PurchaseData } from "./purchase.ts";

export interface SaleContext {
  environmentId: number;
  personId: string;
  /** The relay that runs, by name; null when a payment receipt came in. */
  relayName: string | null;
  eventId: string | null;
  /** The event's number; without an event, the newest event's. */
  arrival: number;
  /** In words, for what is ended: `relay:<name>`, `receipt`, `owner:<email>`. */
  by: string;
  nowMs: number;
}

/** The sale that a relay makes. */
export type RelaySale = SaleContext & { relayName: string; eventId: string };

/** What an action's run tells of its sale; the shape is a part of the action contract's. */
interface Run {
  environmentId: number;
  nowMs: number;
  relay: { name: string };
  event: { id: string; arrival: number };
  person: { id: string } | null;
}

/**
 * The sale of an action's run, its person as they stand in this transaction: the failure `person_suspended` (final) for one who is
 * suspended, `person_not_found` for one erased since the attempt began.
 */
export async function readRelaySale(
  tx: Reader,
  run: Run,
): Promise<{ sale: RelaySale } | { failure: Failure }> {
  const { relay, environmentId, nowMs } = run;
  if (run.person === null) throw new Error("An action that needs a person ran without one.");
  const person = await findPerson(tx, environmentId, run.person.id);
  if (person === null) {
    const message = "The event's person was erased since, so nothing was done.";
    return { failure: failForNow("person_not_found", message) };
  }
  if (person.status === "suspended") {
    const message = `The person is suspended: make them active again in the dashboard or with relay people activate ${person.id}, then replay the event.`;
    return { failure: failFinally("person_suspended", message) };
  }
  const { id: eventId, arrival } = run.event;
  const by = `relay:${relay.name}`;
  return {
    sale: { environmentId, personId: person.id, relayName: relay.name, eventId, arrival, by, nowMs },
  };
}

/**
 * The ref to act under. `written`: the definition's text, undefined when absent; `render` answers null where a path names nothing
 * that identifies. Only an absent ref falls back to `rly:<eventId>`; a written one that resolves to nothing fails with `ref_unresolved`, finally.
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
      : `\`ref\` is longer than ${MAX_REF_CHARS} characters on this event: name the payment's identifier alone, then replay.`;
  return { failure: failFinally("ref_unresolved", message) };
}

/** The purchase under the ref when it is this person's of this item; null when the ref is free; a failure when it is another's. */
export async function claimRef(
  tx: Writer,
  sale: SaleContext,
  itemKind: ItemKind,
  item: string,
  ref: string,
): Promise<{ own: Purchase | null } | { failure: Failure }> {
  const purchase = await findPurchase(tx, sale.environmentId, "purchase", ref);
  if (purchase === null || isSamePurchase(purchase, sale, itemKind, item)) return { own: purchase };
  await auditRefusedRef(tx, sale, { itemKind, item, ref, purchase: purchase.id, code: "ref_used" });
  const whose = purchase.personId === sale.personId ? "another purchase" : "another person's purchase";
  const message = `\`ref\` already belongs to ${whose} (${purchase.id}), which relay receipts list shows: use the provider's unique payment identifier.`;
  return { failure: failFinally("ref_used", message) };
}

export function isSamePurchase(
  purchase: Purchase,
  sale: SaleContext,
  itemKind: ItemKind,
  item: string,
): boolean {
  return purchase.personId === sale.personId && purchase.itemKind === itemKind && purchase.item === item;
}

/** One row a sale and ref, however often the event is tried again. */
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
 * The item that the relay which runs sells. What was paid under this ref before stays paid, wherever it is sold now: `own`. Fails finally
 * where there is neither.
 */
export async function findSoldHere<Row extends ItemRow>(
  tx: Reader,
  sale: RelaySale,
  items: CatalogItems<Row, unknown>,
  name: string,
  ref: string,
): Promise<{ item: Row } | { own: Purchase } | { failure: Failure }> {
  const { kind, codes } = items;
  const item = await items.find(tx, sale.environmentId, name);
  if (item?.soldThrough?.kind === "relay" && item.soldThrough.relay === sale.relayName) return { item };
  const purchase = await findPurchase(tx, sale.environmentId, "purchase", ref);
  if (purchase !== null && isSamePurchase(purchase, sale, kind, name)) return { own: purchase };
  if (item === null) return { failure: failUnknown(items, name) };
  const message = `\`${kind}\` names ${name}, which is not sold through the relay ${sale.relayName}: name that relay in the ${kind}'s soldThrough, in the dashboard or with relay catalog set ${kind} ${name}.`;
  return { failure: failFinally(codes.notSoldHere, message) };
}

export function failUnknown(
  { kind, codes }: Pick<CatalogItems<ItemRow, unknown>, "kind" | "codes">,
  name: string,
): Failure {
  const message = `\`${kind}\` names ${name}, which is no ${kind} here: create it in the dashboard or with relay catalog set, or name one that exists.`;
  return failFinally(codes.unknown, message);
}

/** What was paid, beside for what and by whom. */
export interface Payment extends Pick<PurchaseData, "given"> {
  ref: string;
  amountMinor?: number | null;
  currency?: string | null;
}

/** How one kind of item is sold. */
interface Selling {
  itemKind: ItemKind;
  item: string;
  /** What the person holds, for the audit's before and after. */
  readState(): Promise<Record<string, Json>>;
  /** Gives what was paid for, under the id of the receipt to come. */
  grantItem(purchaseId: string): Promise<SaleGrant>;
  skip(own: Purchase): Promise<Outcome> | Outcome;
}

/** What a sale gave. */
export interface SaleGrant {
  granted: NonNullable<PurchaseData["granted"]>;
  /** What the result says beside it. */
  message?: string | null;
  /** Of a plan: it was no payment. */
  confirmation?: boolean;
}

/** Any sale, with its receipt: `skip` when this person bought it under this ref before, `ref_used` when the ref is another purchase's. */
export async function sell(
  tx: Writer,
  sale: SaleContext,
  { given, ...payment }: Payment,
  { itemKind, item, readState, grantItem, skip }: Selling,
): Promise<Outcome> {
  const claim = await claimRef(tx, sale, itemKind, item, payment.ref);
  if ("failure" in claim) return claim.failure;
  if (claim.own !== null) return skip(claim.own);
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

/** A fresh receipt id, for what is granted under it before the receipt itself is written. */
export function newPurchaseId({ nowMs }: SaleContext): string {
  return newId("prc", nowMs);
}

type Recorded = Pick<Purchase, "kind" | "ref" | "itemKind" | "item" | "data"> &
  Partial<Pick<Purchase, "origin" | "refunds" | "amountMinor" | "currency" | "confirmation">>;

/** Writes the receipt of a sale or of its taking back. Throws UniqueViolation when the ref is taken: ask `claimRef` first. */
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
