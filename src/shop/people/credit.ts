/**
 * Credits: an append-only ledger. Each line holds the balance after it, so the last line is the current balance; a single writer keeps this
 * consistent. A line with a once-key applies once per person and key. The balance never falls below zero. Relays only add credits.
 */
import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import { MAX_CREDIT_LINE, MAX_ONCE_KEY_CHARS, MAX_REASON_CHARS } from "../../base/limit.ts";
import { makePage, type Page, type PageRequest, readSeq } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { eventText, oneOf, show, textOrNull, time } from "../../base/schema.ts";
import { breaksOneLine, breaksPlainText, countChars } from "../../base/text.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, given, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { requireActingPerson } from "./person.ts";

const creditSource = oneOf(["relay", "purchase", "refund", "hand"]);

export const CREDIT = defineTable({
  name: "credit",
  key: ["seq"],
  columns: {
    seq: given(),
    id: text(),
    environmentId: integer(),
    personId: text(),
    amount: integer(),
    /** The balance after this line. */
    balance: integer(),
    reason: text(),
    source: text<Static<typeof creditSource>>(),
    relayName: orNull(text()),
    eventId: orNull(text()),
    /** `ref:<ref>`, `key:<key>`, `purchase:<id>`, `refund:<id>`; null: the line applies every time. */
    onceKey: orNull(text()),
    createdAt: integer(),
  },
});
type CreditRow = RowOf<typeof CREDIT>;

/** A ledger line as the API shows it; `key` is the caller's idempotency key. */
export const creditView = Type.Object({
  id: Type.String(),
  amount: Type.Integer(),
  balance: Type.Integer(),
  reason: eventText,
  source: creditSource,
  relay: textOrNull,
  eventId: textOrNull,
  key: textOrNull,
  createdAt: time,
});
export type CreditView = Static<typeof creditView>;

export function viewCredit(row: CreditRow): CreditView {
  const key = row.onceKey?.startsWith("key:") ? row.onceKey.slice("key:".length) : null;
  return show(creditView, { ...row, relay: row.relayName, key });
}

/** A line to add. `amount` is an integer other than 0; a negative one spends. */
export type CreditLine = Omit<CreditRow, "seq" | "id" | "balance" | "createdAt"> & { nowMs: number };

/**
 * Adds a line, or returns the first line of the same once-key with `applied: false`. Does not check the person. Throws `credits_short`, and
 * `invalid_input` if the key was used for another amount.
 */
export async function addCredits(
  tx: Writer,
  line: CreditLine,
): Promise<{ line: CreditRow; applied: boolean }> {
  if (!Number.isInteger(line.amount) || line.amount === 0 || Math.abs(line.amount) > MAX_CREDIT_LINE) {
    throw new Refusal(
      "invalid_input",
      `\`amount\` is not valid: use an integer from ${-MAX_CREDIT_LINE} to ${MAX_CREDIT_LINE}, not 0.`,
    );
  }
  const first = await findCreditByKey(tx, line.personId, line.onceKey);
  if (first !== null) {
    if (first.amount === line.amount) return { line: first, applied: false };
    throw new Refusal(
      "invalid_input",
      `The key was used before for the amount ${first.amount}: use a new key for another amount.`,
    );
  }
  const balance = (await findBalance(tx, line.environmentId, line.personId)) + line.amount;
  if (balance < 0) {
    throw new Refusal(
      "credits_short",
      `The person has ${balance - line.amount} credits, fewer than the ${-line.amount} to spend: spend less, or add credits first, with relay people credits.`,
    );
  }
  if (!Number.isSafeInteger(balance)) {
    throw new Refusal(
      "invalid_input",
      "`amount` would make the balance too large to count: add fewer credits.",
    );
  }
  return { line: await insertLine(tx, line, balance), applied: true };
}

interface ManualCredit extends Change {
  personId: string;
  /** An integer other than 0; a negative one spends. */
  amount: number;
  reason: string;
  /** The caller's idempotency key: the same key applies once. */
  key: string;
}

/**
 * Adds credits through the API, the dashboard or a command, audited. A suspended person neither gains nor spends. Throws `not_found`,
 * `person_suspended`, `credits_short` and `invalid_input`.
 */
export async function addCreditsManually(
  tx: Writer,
  { key, by, ...credit }: ManualCredit,
): Promise<{ line: CreditRow; applied: boolean }> {
  if (key === "" || countChars(key) > MAX_ONCE_KEY_CHARS || breaksOneLine(key) !== null) {
    throw new Refusal(
      "invalid_input",
      `\`key\` is not valid: use 1 to ${MAX_ONCE_KEY_CHARS} characters on one line.`,
    );
  }
  if (countChars(credit.reason) > MAX_REASON_CHARS || breaksPlainText(credit.reason) !== null) {
    throw new Refusal(
      "invalid_input",
      `\`reason\` is not valid: use at most ${MAX_REASON_CHARS} characters of plain text.`,
    );
  }
  await requireActingPerson(tx, credit.environmentId, credit.personId);
  const origin = { source: "hand", relayName: null, eventId: null } as const;
  const added = await addCredits(tx, { ...credit, ...origin, onceKey: `key:${key}` });
  if (added.applied) {
    const { id, amount, balance, environmentId, personId } = added.line;
    await writeAudit(tx, {
      ...{ environmentId, by, nowMs: credit.nowMs },
      action: "credits.changed",
      target: `person:${personId}`,
      before: { balance: balance - amount },
      after: { balance, amount, credit: id },
    });
  }
  return added;
}

/**
 * Takes back up to `amount` credits, at most what the person still has, so the line may be 0. Returns the first line of the same once-key if
 * there is one.
 */
export async function refundCredits(
  tx: Writer,
  line: Omit<CreditLine, "source">,
): Promise<{ line: CreditRow; applied: boolean }> {
  const first = await findCreditByKey(tx, line.personId, line.onceKey);
  if (first !== null) return { line: first, applied: false };
  const balance = await findBalance(tx, line.environmentId, line.personId);
  const taken = Math.min(balance, Math.max(0, line.amount));
  const row = await insertLine(tx, { ...line, amount: 0 - taken, source: "refund" }, balance - taken);
  return { line: row, applied: true };
}

/** Finds the line of a once-key. */
export async function findCreditByKey(
  tx: Reader,
  personId: string,
  onceKey: string | null,
): Promise<CreditRow | null> {
  if (onceKey === null) return null;
  return CREDIT.get(tx, "WHERE person_id = $personId AND once_key = $onceKey", { personId, onceKey });
}

/** Finds the balance; 0 for a person without a line. */
export async function findBalance(tx: Reader, environmentId: number, personId: string): Promise<number> {
  const last = await tx.get<{ balance: number }>(
    `SELECT balance FROM credit WHERE person_id = $personId AND environment_id = $environmentId
     ORDER BY seq DESC LIMIT 1`,
    { environmentId, personId },
  );
  return last?.balance ?? 0;
}

/** Lists one page of the ledger, newest first, with the balance. */
export async function listCredits(
  tx: Reader,
  { environmentId, personId }: { environmentId: number; personId: string },
  request: PageRequest,
): Promise<{ balance: number } & Page<CreditView>> {
  const before = readSeq(request.after) ?? Number.MAX_SAFE_INTEGER;
  const rows = await CREDIT.all(
    tx,
    `WHERE person_id = $personId AND environment_id = $environmentId AND seq < $before
     ORDER BY seq DESC LIMIT $limit`,
    { environmentId, personId, before, limit: request.limit + 1 },
  );
  const page = makePage(rows, request, (row) => row.seq, viewCredit);
  return { balance: await findBalance(tx, environmentId, personId), ...page };
}

async function insertLine(tx: Writer, line: CreditLine, balance: number): Promise<CreditRow> {
  const { environmentId, personId, amount, reason, source, relayName, eventId, onceKey, nowMs } = line;
  const row = {
    id: newId("crd", nowMs),
    environmentId,
    personId,
    amount,
    balance,
    reason,
    source,
    relayName,
    eventId,
    onceKey,
    createdAt: nowMs,
  };
  return { ...row, ...(await CREDIT.insertGiven(tx, row)) };
}
