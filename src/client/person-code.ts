/**
 * E-mailed sign-in codes: six digits, ten minutes, several valid together. The store holds a keyed digest alone. It decides whether a code
 * is right, never who the person is.
 *
 * Whoever asks for a code ends no other one, and whoever types wrong ones burns only what they may: a code takes five wrong tries from the
 * network that asked for it, and three from all others together, so that a stranger leaves the five of the person's own network alone.
 *
 * Guessing stays hopeless: a code is compared at most 5 + 3 = 8 times with a wrong one, and an address gets at most 10 codes an hour
 * (further ones only where its person signed in before). So of 80 comparisons an hour, each right once in 1,000,000, an attacker with any
 * number of networks expects one in 12,500 hours, and has an even chance after 8,664 hours: a year, in which the person gets ten mails an
 * hour. On all addresses of an environment together the 100 codes of an hour allow 800 comparisons.
 */
import { randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { CODE_DIGITS, CODE_LIFE_MS, MAX_CODE_TRIES, MAX_FOREIGN_CODE_TRIES } from "../ground/limit.ts";
import { toEmailKey } from "../people/email-address.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Writer } from "../store/port.ts";

/** Whose code, and from which network it is asked for or typed. */
export interface CodeHolder {
  environmentId: number;
  email: string;
  network: string;
}

interface KeptCode {
  id: number;
  digest: Uint8Array;
  network: Uint8Array;
  wrongTries: number;
  foreignTries: number;
}

/** A new code, each as likely as any other. */
export function makeCode(): string {
  return String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, "0");
}

/** Keeps the code beside the address's others, and forgets every code that has ended. Null keeps one that nobody can type. Answers its end. */
export async function keepCode(
  tx: Writer,
  sealer: Sealer,
  holder: CodeHolder,
  code: string | null,
  nowMs: number,
): Promise<number> {
  const expiresAt = nowMs + CODE_LIFE_MS;
  await tx.run("DELETE FROM person_code WHERE expires_at <= ?1", nowMs);
  await tx.run(
    `INSERT INTO person_code (environment_id, email_key, code_digest, network_digest, expires_at)
     VALUES (?1, ?2, ?3, ?4, ?5)`,
    holder.environmentId,
    toEmailKey(holder.email),
    digestCode(sealer, holder, code ?? randomBytes(CODE_DIGITS * 4).toString("hex")),
    digestNetwork(sealer, holder),
    expiresAt,
  );
  return expiresAt;
}

/**
 * Whether the code is one of the address's live ones, all of which it then uses up. A wrong try is counted on each code it was compared
 * with; so the caller must let the transaction commit, whatever the answer.
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
  const network = digestNetwork(sealer, holder);
  const kept = await tx.all<KeptCode>(
    `SELECT id, code_digest AS digest, network_digest AS network, wrong_tries AS wrongTries, foreign_tries AS foreignTries
     FROM person_code WHERE environment_id = ?1 AND email_key = ?2 AND expires_at > ?3`,
    environmentId,
    emailKey,
    nowMs,
  );
  const isOwn = (one: KeptCode): boolean => timingSafeEqual(one.network, network);
  const open = kept.filter((one) =>
    isOwn(one) ? one.wrongTries < MAX_CODE_TRIES : one.foreignTries < MAX_FOREIGN_CODE_TRIES,
  );
  if (open.filter((one) => timingSafeEqual(one.digest, given)).length > 0) {
    const sql = "DELETE FROM person_code WHERE environment_id = ?1 AND email_key = ?2";
    await tx.run(sql, environmentId, emailKey);
    return true;
  }
  for (const one of open) {
    const column = isOwn(one) ? "wrong_tries" : "foreign_tries";
    await tx.run(`UPDATE person_code SET ${column} = ${column} + 1 WHERE id = ?1`, one.id);
  }
  return false;
}

/** Of a network as an address's person uses it: the same address and network give the same, and nothing is learned of either. */
export function digestNetwork(sealer: Sealer, { environmentId, email, network }: CodeHolder): Uint8Array {
  return sealer.digest(`person network\n${environmentId}\n${toEmailKey(email)}\n${network}`);
}

/** Bound to environment and address, so that a digest says nothing about any other. */
function digestCode(
  sealer: Sealer,
  { environmentId, email }: Pick<CodeHolder, "environmentId" | "email">,
  code: string,
): Uint8Array {
  return sealer.digest(`person code\n${environmentId}\n${toEmailKey(email)}\n${code}`);
}
