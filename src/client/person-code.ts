/**
 * E-mailed sign-in codes: six digits, ten minutes, five tries, one live code an address. The store holds a keyed digest alone. It
 * decides whether a code is right, never who the person is.
 */
import { randomInt, timingSafeEqual } from "node:crypto";
import { CODE_DIGITS, CODE_LIFE_MS, MAX_CODE_TRIES } from "../ground/limit.ts";
import { toEmailKey } from "../people/email-address.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Writer } from "../store/port.ts";

/** Whose code: an address of one environment. */
export interface CodeHolder {
  environmentId: number;
  email: string;
}

/** A new code, each as likely as any other. */
export function makeCode(): string {
  return String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, "0");
}

/** Keeps the code as the address's only one, and forgets every code that has ended. Answers when it ends. */
export async function keepCode(
  tx: Writer,
  sealer: Sealer,
  holder: CodeHolder,
  code: string,
  nowMs: number,
): Promise<number> {
  const expiresAt = nowMs + CODE_LIFE_MS;
  await tx.run("DELETE FROM person_code WHERE expires_at <= ?1", nowMs);
  await tx.run(
    `INSERT INTO person_code (environment_id, email_key, code_digest, expires_at) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (environment_id, email_key)
     DO UPDATE SET code_digest = excluded.code_digest, wrong_tries = 0, expires_at = excluded.expires_at`,
    holder.environmentId,
    toEmailKey(holder.email),
    digestCode(sealer, holder, code),
    expiresAt,
  );
  return expiresAt;
}

/**
 * Whether the code is the address's live one, which it then uses up. A wrong try is counted, and the fifth ends the code; so the caller
 * must let the transaction commit, whatever the answer.
 */
export async function redeemCode(
  tx: Writer,
  sealer: Sealer,
  holder: CodeHolder,
  code: string,
  nowMs: number,
): Promise<boolean> {
  const { environmentId } = holder;
  const emailKey = toEmailKey(holder.email);
  const given = digestCode(sealer, holder, code);
  const kept = await tx.get<{ digest: Uint8Array; wrongTries: number }>(
    `SELECT code_digest AS digest, wrong_tries AS wrongTries FROM person_code
     WHERE environment_id = ?1 AND email_key = ?2 AND expires_at > ?3`,
    environmentId,
    emailKey,
    nowMs,
  );
  if (kept === null) return false;
  const right = timingSafeEqual(given, kept.digest);
  if (right || kept.wrongTries + 1 >= MAX_CODE_TRIES) {
    await tx.run(
      "DELETE FROM person_code WHERE environment_id = ?1 AND email_key = ?2",
      environmentId,
      emailKey,
    );
  } else {
    await tx.run(
      "UPDATE person_code SET wrong_tries = wrong_tries + 1 WHERE environment_id = ?1 AND email_key = ?2",
      environmentId,
      emailKey,
    );
  }
  return right;
}

/** Bound to environment and address, so that a digest says nothing about any other. */
function digestCode(sealer: Sealer, { environmentId, email }: CodeHolder, code: string): Uint8Array {
  return sealer.digest(`person code\n${environmentId}\n${toEmailKey(email)}\n${code}`);
}
