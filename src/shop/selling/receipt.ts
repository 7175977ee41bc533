/**
 * Receipts of payments that the app's own processor took, sent by the app's server with a secret key. A receipt grants the product or plan as
 * a relay's sale does, or refunds one. If a collection is mapped to receipts, each is also written there as a record, which triggers
 * record-change relays. It never refunds what a relay fulfilled, and accepts payments of suspended people.
 */
import { type Static, Type } from "typebox";
import { type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { DAY_MS, MAX_REF_CHARS } from "../../base/limit.ts";
import type { Outcome, Success } from "../../base/outcome.ts";
import { Refusal, type Warning } from "../../base/refusal.ts";
import { fields } from "../../base/schema.ts";
import { breaksOneLine, countChars, utf8Bytes } from "../../base/text.ts";
import { findEnvironmentById, readSettingsSection } from "../../platform/account/environment.ts";
import { raiseAlert } from "../../platform/audit/alert.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { findNewestArrival } from "../people/access-order.ts";
import { requirePerson } from "../people/person.ts";
import { findCollection, listFields } from "../records/collection.ts";
import { writeRecordIn } from "../records/record.ts";
import { plans } from "./plan.ts";
import { sellPlan } from "./plan-sale.ts";
import { products } from "./product.ts";
import { refundPurchase, sellProduct } from "./product-sale.ts";
import { findPurchase, type PurchaseView, purchaseKind, requirePurchaseView } from "./purchase.ts";
import { isTheirPurchase, type SaleContext } from "./sale.ts";

/** The settings section that maps receipts to a collection: `{ "collection": "payments" }`. */
export const RECEIPTS_SECTION = "receipts";

/** The body of the receipts route, with exactly one of product and plan. */
export const receiptBody = fields({
  /** `purchase` by default; `refund` takes back a product bought under the same ref. */
  kind: Type.Optional(purchaseKind),
  ref: Type.String({ description: "the processor's unique payment identifier" }),
  person: Type.String({ description: "a person's id" }),
  product: Type.Optional(Type.String()),
  plan: Type.Optional(Type.String()),
  amountMinor: Type.Optional(Type.Integer({ description: "an integer in the currency's smallest unit" })),
  /** Three letters (ISO 4217). */
  currency: Type.Optional(Type.String()),
  /** The processor's customer id for a plan, which marks the subscription as billed by the processor. */
  processorCustomerId: Type.Optional(Type.String()),
  data: Type.Optional(Type.Record(Type.String(), Type.Unsafe<Json>({}))),
});
export type ReceiptInput = Static<typeof receiptBody>;

const MAX_CUSTOMER_ID_CHARS = 200;
const MAX_DATA_BYTES = 16 * 1024;

/**
 * Records a receipt. `created: false`: it was recorded before (same ref, person and item). Throws `invalid_input`, `not_found`, `ref_used`
 * (audited) and `data_invalid` (the mapped collection rejects the record).
 */
export async function recordReceipt(
  store: Store,
  change: Change,
  input: ReceiptInput,
): Promise<{ receipt: PurchaseView; created: boolean }> {
  const written = await store.write("receipt", (tx) => writeReceipt(tx, change, input), change.environmentId);
  if ("refused" in written) throw written.refused;
  return written;
}

/** Records a receipt, but returns `ref_used` instead of throwing it, so that its audit row is committed. */
async function writeReceipt(
  tx: Writer,
  change: Change,
  input: ReceiptInput,
): Promise<{ receipt: PurchaseView; created: boolean } | { refused: Refusal }> {
  const { environmentId, nowMs } = change;
  checkReceipt(input);
  const person = await requirePerson(tx, environmentId, input.person);
  const sale: SaleContext = {
    environmentId,
    personId: input.person,
    relayName: null,
    eventId: null,
    arrival: await findNewestArrival(tx),
    by: "receipt",
    nowMs,
  };
  const kind = input.kind ?? "purchase";
  const outcome = kind === "refund" ? await refund(tx, sale, input) : await sell(tx, sale, input);
  if (outcome.outcome === "failed") return { refused: new Refusal("ref_used", outcome.message) };
  const row = await findPurchase(tx, environmentId, kind, input.ref);
  if (row === null) throw new Error("A receipt was written and is not there.");
  const receipt = await requirePurchaseView(tx, environmentId, row.id);
  const created = outcome.outcome === "done";
  if (created) {
    await writeReceiptRecord(tx, sale, receipt);
    await auditReceipt(tx, change, receipt, outcome);
    if (kind === "purchase" && person.status === "suspended") await alertSuspended(tx, change, receipt);
  }
  return { receipt, created };
}

/** Alerts the owner of a suspended person's payment, which is recorded because the money was taken; one alert a day for each person, with a count. */
function alertSuspended(
  tx: Writer,
  { environmentId, nowMs }: Change,
  { person, itemKind, item, ref }: PurchaseView,
): Promise<void> {
  const sentence = `A payment of the ${itemKind} ${item} (ref ${ref}) was recorded for a suspended person, who cannot use it: run relay people activate ${person}, or refund the payment.`;
  const burst = { target: `person:${person}`, burstMs: DAY_MS, nowMs };
  return raiseAlert(tx, { environmentId, code: "sale_suspended", message: sentence, ...burst });
}

function auditReceipt(
  tx: Writer,
  change: Change,
  receipt: PurchaseView,
  { before, after }: Success,
): Promise<void> {
  const action = receipt.kind === "refund" ? "receipt.refunded" : "receipt.recorded";
  const target = `purchase:${receipt.id}`;
  return writeAudit(tx, { ...change, action, target, before, after });
}

async function sell(tx: Writer, sale: SaleContext, input: ReceiptInput): Promise<Outcome> {
  const { ref, amountMinor = null, currency = null, data: given, processorCustomerId = null } = input;
  const payment = { ref, amountMinor, currency, ...(given === undefined ? {} : { given }) };
  if (input.product !== undefined) {
    const product = await products.require(tx, sale.environmentId, input.product);
    return sellProduct(tx, sale, product, payment);
  }
  const plan = await plans.require(tx, sale.environmentId, input.plan ?? "");
  return sellPlan(tx, sale, plan.name, payment, processorCustomerId);
}

async function refund(tx: Writer, sale: SaleContext, input: ReceiptInput): Promise<Outcome> {
  const purchase = await findPurchase(tx, sale.environmentId, "purchase", input.ref);
  const item = input.product ?? "";
  if (purchase?.origin === "payment" && (await isTheirPurchase(tx, sale, purchase, "product", item)))
    return refundPurchase(tx, { ...sale, personId: purchase.personId }, purchase);
  throw new Refusal(
    "not_found",
    "No card purchase of this product by this person is recorded under this ref; relay receipts list shows the refs.",
  );
}

function checkReceipt(input: ReceiptInput): void {
  requireInput(
    input.ref.trim() === input.ref && input.ref !== "" && countChars(input.ref) <= MAX_REF_CHARS,
    `\`ref\` is empty, has outer spaces or is longer than ${MAX_REF_CHARS} characters: send the processor's payment identifier.`,
  );
  requireInput(
    breaksOneLine(input.ref) === null,
    "`ref` is not one line of plain text: send it exactly as the processor shows it.",
  );
  requireInput(
    (input.product === undefined) !== (input.plan === undefined),
    "`product` and `plan` exclude each other: send exactly one of them.",
  );
  requireInput(
    input.kind !== "refund" || input.product !== undefined,
    "`kind` refund is for products: end a plan's subscription instead.",
  );
  requireInput(
    input.amountMinor === undefined || (Number.isSafeInteger(input.amountMinor) && input.amountMinor >= 0),
    "`amountMinor` is not valid: send an integer from 0, in the currency's smallest unit.",
  );
  requireInput(
    input.currency === undefined || /^[A-Z]{3}$/.test(input.currency),
    "`currency` is not valid: send three capital letters such as EUR.",
  );
  requireInput(
    input.processorCustomerId === undefined ||
      (input.plan !== undefined && countChars(input.processorCustomerId) <= MAX_CUSTOMER_ID_CHARS),
    `\`processorCustomerId\` goes with a plan only, at most ${MAX_CUSTOMER_ID_CHARS} characters: leave it out for a product.`,
  );
  requireInput(
    input.data === undefined || utf8Bytes(writeJson(input.data)) <= MAX_DATA_BYTES,
    `\`data\` would take more than ${MAX_DATA_BYTES} bytes: store larger values in a record.`,
  );
}

function requireInput(holds: boolean, message: string): void {
  if (!holds) throw new Refusal("invalid_input", message);
}

/** Writes the record of a receipt, with the facts that the mapped collection has fields for. */
export async function writeReceiptRecord(
  tx: Writer,
  sale: SaleContext,
  receipt: PurchaseView,
): Promise<void> {
  const collection = await findMappedCollection(tx, sale.environmentId);
  if (collection === null) return;
  const facts: JsonObject = {
    ...receipt.data,
    receipt: receipt.id,
    kind: receipt.kind,
    ref: receipt.ref,
    person: receipt.person,
    [receipt.itemKind]: receipt.item,
    amountMinor: receipt.amountMinor,
    currency: receipt.currency,
  };
  const fields = listFields(collection);
  const data = Object.fromEntries(
    Object.entries(facts).filter(([name, value]) => fields.has(name) && value !== null),
  );
  await writeRecordIn(tx, collection, {
    environmentId: sale.environmentId,
    data,
    ownerId: null,
    recipientId: receipt.person,
    by: sale.by,
    eventId: sale.eventId,
    nowMs: sale.nowMs,
    allowSuspended: true,
  });
}

async function findMappedCollection(tx: Reader, environmentId: number) {
  const name = await findMappedName(tx, environmentId);
  return name === null ? null : findCollection(tx, environmentId, name);
}

async function findMappedName(tx: Reader, environmentId: number): Promise<string | null> {
  const environment = await findEnvironmentById(tx, environmentId);
  const name =
    environment === null ? undefined : readSettingsSection(environment, RECEIPTS_SECTION).collection;
  return typeof name === "string" ? name : null;
}

/**
 * Warns if receipts are mapped to a missing collection, or to the missing collection `named`: then no record is written and no relay is
 * triggered.
 */
export async function listReceiptWarnings(
  tx: Reader,
  environmentId: number,
  named: string | null = null,
): Promise<Warning[]> {
  const name = await findMappedName(tx, environmentId);
  if (name === null || (named !== null && named !== name)) return [];
  if ((await findCollection(tx, environmentId, name)) !== null) return [];
  const message = `\`receipts.collection\` is ${name}, and this environment has no collection of this name, so receipts are stored but no records are written: create the collection, or name one that exists.`;
  return [{ code: "reference_missing", field: "receipts.collection", message }];
}
