/**
 * Credits: an append-only ledger. Each line holds the balance after it, so the last line is the balance; one writer at a time keeps that
 * true. A line with a once-key applies once per person and key. The balance never falls below zero. Relays add and never spend.
 */
import { toIso } from "../ground/clock.ts";
import { newId } from "../ground/id.ts";
import { MAX_CREDIT_LINE } from "../ground/limit.ts";
import { makePage, type Page, type PageRequest, readSeq } from "../ground/page.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";

type CreditSource = "relay" | "purchase" | "refund" | "hand";

export interface CreditRow {
  seq: number;
  id: string;
  amount: number;
  /** After this line. */
  balance: number;
  reason: string;
  source: CreditSource;
  relayName: string | null;
  eventId: string | null;
  onceKey: string | null;
  createdAt: number;
}

interface CreditView {
  id: string;
  amount: number;
  balance: number;
  reason: string;
  source: CreditSource;
  relay: string | null;
  eventId: string | null;
  key: string | null;
  createdAt: string;
}

const COLUMNS = `seq, id, amount, balance, reason, source, relay_name AS relayName, event_id AS eventId,
  once_key AS onceKey, created_at AS createdAt`;

/** A ledger line as the API shows one; `key` is the caller's own idempotency key. */
export function viewCredit(row: CreditRow): CreditView {
  return {
    id: row.id,
    amount: row.amount,
    balance: row.balance,
    reason: row.reason,
    source: row.source,
    relay: row.relayName,
    eventId: row.eventId,
    key: row.onceKey?.startsWith("key:") ? row.onceKey.slice("key:".length) : null,
    createdAt: toIso(row.createdAt),
  };
}

export interface CreditLine {
  environmentId: number;
  personId: string;
  /** An integer other than 0; negative spends. */
  amount: number;
  reason: string;
  source: CreditSource;
  relayName: string | null;
  eventId: string | null;
  /** `ref:<ref>`, `key:<key>`, `purchase:<id>`, `refund:<id>`; null applies every time. */
  onceKey: string | null;
  nowMs: number;
}

/**
 * Adds a line, or answers the first line of the same once-key with `applied: false`.
 * Refuses with `credits_short`, and with `invalid_input` where the key was used for another amount. It asks nothing about the person.
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
      `The person has ${balance - line.amount} credits, fewer than the ${-line.amount} to spend: spend less, or add credits first.`,
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

/**
 * Takes back up to `amount` credits, never more than the person still has: a refund of credits already spent takes what is left.
 * The line may read 0. Same once-key: the first line.
 */
export async function takeBackCredits(
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

/** The line a once-key stands for, or null. */
export async function findCreditByKey(
  tx: Reader,
  personId: string,
  onceKey: string | null,
): Promise<CreditRow | null> {
  if (onceKey === null) return null;
  return tx.get<CreditRow>(
    `SELECT ${COLUMNS} FROM credit WHERE person_id = ?1 AND once_key = ?2`,
    personId,
    onceKey,
  );
}

/** 0 for someone without a line. */
export async function findBalance(tx: Reader, environmentId: number, personId: string): Promise<number> {
  const last = await tx.get<{ balance: number }>(
    "SELECT balance FROM credit WHERE person_id = ?1 AND environment_id = ?2 ORDER BY seq DESC LIMIT 1",
    personId,
    environmentId,
  );
  return last?.balance ?? 0;
}

/** The ledger with its balance, newest first. */
export async function listCredits(
  tx: Reader,
  at: { environmentId: number; personId: string },
  request: PageRequest,
): Promise<{ balance: number } & Page<CreditView>> {
  const rows = await tx.all<CreditRow>(
    `SELECT ${COLUMNS} FROM credit
     WHERE person_id = ?1 AND environment_id = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4`,
    at.personId,
    at.environmentId,
    readSeq(request.after) ?? Number.MAX_SAFE_INTEGER,
    request.limit + 1,
  );
  const page = makePage(rows, request, (row) => row.seq, viewCredit);
  return { balance: await findBalance(tx, at.environmentId, at.personId), ...page };
}

async function insertLine(tx: Writer, line: CreditLine, balance: number): Promise<CreditRow> {
  const row = await tx.get<CreditRow>(
    `INSERT INTO credit
       (id, environment_id, person_id, amount, balance, reason, source, relay_name, event_id, once_key, created_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) RETURNING ${COLUMNS}`,
    newId("crd", line.nowMs),
    line.environmentId,
    line.personId,
    line.amount,
    balance,
    line.reason,
    line.source,
    line.relayName,
    line.eventId,
    line.onceKey,
    line.nowMs,
  );
  if (row === null) throw new Error("The store answered nothing to an INSERT … RETURNING.");
  return row;
}
