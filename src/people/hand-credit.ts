/**
 * Credits by API or dashboard: adding and spending with an idempotency key. A suspended person neither gains nor spends.
 */
import { MAX_ONCE_KEY_CHARS, MAX_REASON_CHARS } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import { breaksOneLine, breaksPlainText, countChars } from "../ground/text.ts";
import type { Writer } from "../store/port.ts";
import { addCredits, type CreditRow } from "./credit.ts";
import { requireActingPerson } from "./person.ts";

interface HandCredit {
  environmentId: number;
  personId: string;
  /** An integer other than 0; negative spends. */
  amount: number;
  reason: string;
  /** The caller's idempotency key: the same key twice applies once. */
  key: string;
  nowMs: number;
}

/** Refuses with `not_found`, `person_suspended`, `credits_short` and `invalid_input`. */
export async function addCreditsByHand(
  tx: Writer,
  credit: HandCredit,
): Promise<{ line: CreditRow; applied: boolean }> {
  const { environmentId, personId, amount, reason, key, nowMs } = credit;
  if (key === "" || countChars(key) > MAX_ONCE_KEY_CHARS || breaksOneLine(key) !== null) {
    throw new Refusal(
      "invalid_input",
      `\`key\` is not valid: use 1 to ${MAX_ONCE_KEY_CHARS} characters on one line.`,
    );
  }
  if (countChars(reason) > MAX_REASON_CHARS || breaksPlainText(reason) !== null) {
    throw new Refusal(
      "invalid_input",
      `\`reason\` is not valid: use at most ${MAX_REASON_CHARS} characters of plain text.`,
    );
  }
  await requireActingPerson(tx, environmentId, personId);
  return addCredits(tx, {
    environmentId,
    personId,
    amount,
    reason,
    source: "hand",
    relayName: null,
    eventId: null,
    onceKey: `key:${key}`,
    nowMs,
  });
}
