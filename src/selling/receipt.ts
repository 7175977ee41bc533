/**
 * Payments the app's own processor took, told by the app's server with a secret key: a receipt that gives the product or plan as a relay's
 * sale does, or the refund of one. Where a collection is mapped to receipts, each is also written there as a record, so that record-change
 * relays hear of it. It never refunds what a relay fulfilled.
 */
import { findEnvironmentById, settingsSection } from "../account/environment.ts";
import { type JsonObject, writeJson } from "../ground/json.ts";
import { MAX_REF_CHARS } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import { breaksOneLine, countChars, utf8Bytes } from "../ground/text.ts";
import { requireActingPerson } from "../people/person.ts";
import { findCollection, listFields } from "../records/collection.ts";
import { writeRecordIn } from "../records/record.ts";
import type { Reader, Store, Writer } from "../store/port.ts";
import { writeAudit } from "../watch/audit.ts";
import type { Occasion, SaleOutcome } from "./occasion.ts";
import { requirePlan } from "./plan.ts";
import { sellPlan } from "./plan-sale.ts";
import { requireProduct } from "./product.ts";
import { refundPurchase, sellProduct } from "./product-sale.ts";
import { findPurchase, type PurchaseView, requirePurchaseView } from "./purchase.ts";

/** The settings' section that maps receipts to a collection: `{ "collection": "payments" }`. */
export const RECEIPTS_SECTION = "receipts";

export interface ReceiptInput {
  /** `purchase` when absent; `refund` takes back a product bought under the same ref. */
  kind?: "purchase" | "refund" | undefined;
  /** The processor's unique payment identifier. */
  ref: string;
  /** The person's id. */
  person: string;
  /** Exactly one of product and plan. */
  product?: string | undefined;
  plan?: string | undefined;
  /** In the currency's smallest unit: an integer from 0. */
  amountMinor?: number | undefined;
  /** Three letters (ISO 4217). */
  currency?: string | undefined;
  /** For a plan: the processor's customer, which marks the subscription as billed by it. */
  processorCustomerId?: string | undefined;
  data?: JsonObject | undefined;
}

interface ReceiptChange {
  environmentId: number;
  /** Who told of it, for the audit: `key:<id>`, `owner:<email>`. What it gives is attributed to the receipt itself. */
  by: string;
  nowMs: number;
}

const MAX_CUSTOMER_ID_CHARS = 200;
const MAX_DATA_BYTES = 16 * 1024;

/**
 * Records a receipt; `created: false` for one recorded before (the same ref, person and item). Refuses with `invalid_input`, `not_found`,
 * `person_suspended`, `ref_used` (audited) and `data_invalid` (the mapped collection refuses the record).
 */
export async function recordReceipt(
  store: Store,
  change: ReceiptChange,
  input: ReceiptInput,
): Promise<{ receipt: PurchaseView; created: boolean }> {
  const written = await store.write("receipt", (tx) => writeReceipt(tx, change, input));
  if ("refused" in written) throw written.refused;
  return written;
}

/** As `recordReceipt`, but answers `ref_used` instead of throwing it, so that its audit row is kept. */
async function writeReceipt(
  tx: Writer,
  change: ReceiptChange,
  input: ReceiptInput,
): Promise<{ receipt: PurchaseView; created: boolean } | { refused: Refusal }> {
  const { environmentId, nowMs } = change;
  checkReceipt(input);
  await requireActingPerson(tx, environmentId, input.person);
  const occasion: Occasion = {
    environmentId,
    personId: input.person,
    relayName: null,
    eventId: null,
    by: "receipt",
    nowMs,
  };
  const kind = input.kind ?? "purchase";
  const outcome = kind === "refund" ? await refund(tx, occasion, input) : await sell(tx, occasion, input);
  if (outcome.outcome === "failed") return { refused: new Refusal("ref_used", outcome.message) };
  const row = await findPurchase(tx, environmentId, kind, input.ref);
  if (row === null) throw new Error("A receipt was written and is not there.");
  const receipt = await requirePurchaseView(tx, environmentId, row.id);
  const created = outcome.outcome === "done";
  if (created) {
    await writeReceiptRecord(tx, occasion, receipt);
    await auditReceipt(tx, change, receipt, outcome);
  }
  return { receipt, created };
}

function auditReceipt(
  tx: Writer,
  { environmentId, by, nowMs }: ReceiptChange,
  receipt: PurchaseView,
  { before, after }: Exclude<SaleOutcome, { outcome: "failed" }>,
): Promise<void> {
  const action = receipt.kind === "refund" ? "receipt.refunded" : "receipt.recorded";
  const target = `purchase:${receipt.id}`;
  return writeAudit(tx, { environmentId, atMs: nowMs, actor: by, action, target, before, after });
}

async function sell(tx: Writer, occasion: Occasion, input: ReceiptInput): Promise<SaleOutcome> {
  const { ref, amountMinor = null, currency = null, data: given, processorCustomerId = null } = input;
  const payment = { ref, amountMinor, currency, ...(given === undefined ? {} : { given }) };
  if (input.product !== undefined) {
    const product = await requireProduct(tx, occasion.environmentId, input.product);
    return sellProduct(tx, occasion, product, payment);
  }
  const plan = await requirePlan(tx, occasion.environmentId, input.plan ?? "");
  return sellPlan(tx, occasion, plan.name, payment, processorCustomerId);
}

async function refund(tx: Writer, occasion: Occasion, input: ReceiptInput): Promise<SaleOutcome> {
  const purchase = await findPurchase(tx, occasion.environmentId, "purchase", input.ref);
  const theirs = purchase?.personId === occasion.personId && purchase.origin === "payment";
  if (purchase !== null && theirs && purchase.itemKind === "product" && purchase.item === input.product) {
    return refundPurchase(tx, occasion, purchase);
  }
  throw new Refusal(
    "not_found",
    "No card purchase of this product by this person is recorded under this ref; the list of purchases shows them.",
  );
}

function checkReceipt(input: ReceiptInput): void {
  refuseUnless(
    input.ref.trim() === input.ref && input.ref !== "" && countChars(input.ref) <= MAX_REF_CHARS,
    `\`ref\` is empty, has outer spaces or is longer than ${MAX_REF_CHARS} characters: send the processor's payment identifier.`,
  );
  refuseUnless(
    breaksOneLine(input.ref) === null,
    "`ref` is not one line of plain text: send it as it is shown.",
  );
  refuseUnless(
    (input.product === undefined) !== (input.plan === undefined),
    "`product` and `plan` exclude each other: send exactly one of them.",
  );
  refuseUnless(
    input.kind !== "refund" || input.product !== undefined,
    "`kind` refund is for products: end a plan's subscription instead.",
  );
  refuseUnless(
    input.amountMinor === undefined || (Number.isSafeInteger(input.amountMinor) && input.amountMinor >= 0),
    "`amountMinor` is not valid: send an integer from 0, in the currency's smallest unit.",
  );
  refuseUnless(
    input.currency === undefined || /^[A-Z]{3}$/.test(input.currency),
    "`currency` is not valid: send three capital letters such as EUR.",
  );
  refuseUnless(
    input.processorCustomerId === undefined ||
      (input.plan !== undefined && countChars(input.processorCustomerId) <= MAX_CUSTOMER_ID_CHARS),
    `\`processorCustomerId\` goes with a plan only, at most ${MAX_CUSTOMER_ID_CHARS} characters: leave it out for a product.`,
  );
  refuseUnless(
    input.data === undefined || utf8Bytes(writeJson(input.data)) <= MAX_DATA_BYTES,
    `\`data\` would take more than ${MAX_DATA_BYTES} bytes: keep larger things in a record.`,
  );
}

function refuseUnless(holds: boolean, message: string): void {
  if (!holds) throw new Refusal("invalid_input", message);
}

/** The record of a receipt holds those of its facts that the mapped collection has fields for. */
async function writeReceiptRecord(tx: Writer, occasion: Occasion, receipt: PurchaseView): Promise<void> {
  const collection = await findMappedCollection(tx, occasion.environmentId);
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
    environmentId: occasion.environmentId,
    data,
    ownerId: null,
    recipientId: occasion.personId,
    by: occasion.by,
    nowMs: occasion.nowMs,
  });
}

async function findMappedCollection(tx: Reader, environmentId: number) {
  const environment = await findEnvironmentById(tx, environmentId);
  const name = environment === null ? undefined : settingsSection(environment, RECEIPTS_SECTION).collection;
  return typeof name === "string" ? findCollection(tx, environmentId, name) : null;
}
