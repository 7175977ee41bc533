/**
 * Emailed sign-in codes: six digits, valid for ten minutes, several at a time. The store holds only a keyed digest. This file checks codes;
 * code-mail.ts mails them, and person-signin.ts decides who signs in.
 *
 * A new code ends no earlier one, and a wrong guess costs only the guesser: a code allows five wrong tries from the network that requested it
 * and three from all others together.
 *
 * Guessing stays hopeless. A code is compared with at most 5 + 3 = 8 wrong ones, and an address gets at most 10 codes an hour (more only where
 * its person signed in before). With 80 comparisons an hour, each right once in 1,000,000, an attacker with any number of networks expects one
 * hit in 12,500 hours, and has an even chance after 8,664 hours: a year in which the person gets ten mails an hour. All addresses of an
 * environment together get 100 codes an hour, which allow 800 comparisons.
 */
import { randomBytes, randomInt, timingSafeEqual } from "node:crypto";
import { CODE_DIGITS, CODE_LIFE_MS, MAX_CODE_TRIES, MAX_FOREIGN_CODE_TRIES } from "../../base/limit.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Writer } from "../../store/port.ts";
import { bytes, defineTable, given, integer, type RowOf, text } from "../../store/table.ts";
import { toEmailKey } from "../people/person.ts";

/** The address of a code, and the network that requests or enters it. */
export interface CodeHolder {
  environmentId: number;
  email: string;
  network: string;
}

const PERSON_CODE = defineTable({
  name: "person_code",
  key: ["id"],
  columns: {
    id: given(),
    environmentId: integer(),
    emailKey: text(),
    codeDigest: bytes(),
    networkDigest: bytes(),
    wrongTries: integer(),
    /** Wrong tries from networks that did not request it. */
    foreignTries: integer(),
    expiresAt: integer(),
  },
});

/** Generates a code; all are equally likely. */
export function makeCode(): string {
  return String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, "0");
}

/** Stores a code in addition to the address's others, and deletes expired codes. Null stores one that cannot be entered. Returns its expiry. */
export async function storeCode(
  tx: Writer,
  sealer: Sealer,
  holder: CodeHolder,
  code: string | null,
  nowMs: number,
): Promise<number> {
  const expiresAt = nowMs + CODE_LIFE_MS;
  await tx.run("DELETE FROM person_code WHERE expires_at <= ?1", nowMs);
  await PERSON_CODE.insert(tx, {
    environmentId: holder.environmentId,
    emailKey: toEmailKey(holder.email),
    codeDigest: digestCode(sealer, holder, code ?? randomBytes(CODE_DIGITS * 4).toString("hex")),
    networkDigest: digestNetwork(sealer, holder),
    wrongTries: 0,
    foreignTries: 0,
    expiresAt,
  });
  return expiresAt;
}

/**
 * Checks a code; a right one uses up all codes of the address. A wrong try is counted on each compared code, so the caller must commit the
 * transaction in any case.
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
  const digest = digestCode(sealer, holder, code);
  const network = digestNetwork(sealer, holder);
  const live = "WHERE environment_id = $environmentId AND email_key = $emailKey AND expires_at > $nowMs";
  const codes = await PERSON_CODE.all(tx, live, { environmentId, emailKey, nowMs });
  const isOwn = (one: RowOf<typeof PERSON_CODE>): boolean => timingSafeEqual(one.networkDigest, network);
  const open = codes.filter((one) =>
    isOwn(one) ? one.wrongTries < MAX_CODE_TRIES : one.foreignTries < MAX_FOREIGN_CODE_TRIES,
  );
  if (open.filter((one) => timingSafeEqual(one.codeDigest, digest)).length > 0) {
    const sql = "DELETE FROM person_code WHERE environment_id = ?1 AND email_key = ?2";
    await tx.run(sql, environmentId, emailKey);
    return true;
  }
  for (const one of open) {
    const tries = isOwn(one) ? { wrongTries: one.wrongTries + 1 } : { foreignTries: one.foreignTries + 1 };
    await PERSON_CODE.change(tx, one, tries);
  }
  return false;
}

/** Digests a network for an address. Equal inputs give equal digests, which reveal neither. */
export function digestNetwork(sealer: Sealer, { environmentId, email, network }: CodeHolder): Uint8Array {
  return sealer.digest(`person network\n${environmentId}\n${toEmailKey(email)}\n${network}`);
}

/** Binds the digest to environment and address, so that it says nothing about others. */
function digestCode(
  sealer: Sealer,
  { environmentId, email }: Pick<CodeHolder, "environmentId" | "email">,
  code: string,
): Uint8Array {
  return sealer.digest(`person code\n${environmentId}\n${toEmailKey(email)}\n${code}`);
}
