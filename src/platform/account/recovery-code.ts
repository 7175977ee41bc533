/**
 * Recovery codes: ten codes that replace a lost second factor, each once. They are shown when they are made and stored only as digests under the
 * server's key, so that a reader of the database cannot try codes against them.
 */
import { newToken } from "../../base/id.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, orNull, text } from "../../store/table.ts";
import type { Sealer } from "../secret/seal.ts";
import type { CodeResult } from "./totp.ts";

const RECOVERY_CODE = defineTable({
  name: "recovery_code",
  key: ["ownerId", "codeDigest"],
  columns: { ownerId: text(), codeDigest: bytes(), usedAt: orNull(integer()) },
});

const CODES = 10;
/** Has no vowels, so that codes spell no words, and no letters that look like digits. Ten letters hold 43 bits. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const CODE_CHARS = 10;

function digestCode(sealer: Sealer, ownerId: string, code: string): Uint8Array {
  const letters = code
    .toUpperCase()
    .replace(/[^A-Z]/g, "")
    .slice(0, 2 * CODE_CHARS);
  return sealer.digest(`recovery code\n${ownerId}\n${letters}`);
}

/** Replaces the person's recovery codes and returns the new ones. */
export async function replaceRecoveryCodes(tx: Writer, sealer: Sealer, ownerId: string): Promise<string[]> {
  const codes = Array.from({ length: CODES }, () => {
    const letters = newToken(CODE_CHARS, LETTERS);
    return `${letters.slice(0, CODE_CHARS / 2)}-${letters.slice(CODE_CHARS / 2)}`;
  });
  await deleteRecoveryCodes(tx, ownerId);
  for (const code of codes)
    await RECOVERY_CODE.insert(tx, { ownerId, codeDigest: digestCode(sealer, ownerId, code), usedAt: null });
  return codes;
}

/** Accepts a recovery code of the person, once. */
export async function useRecoveryCode(
  tx: Writer,
  { ownerId, code, sealer, nowMs }: { ownerId: string; code: string; sealer: Sealer; nowMs: number },
): Promise<CodeResult> {
  const codeDigest = digestCode(sealer, ownerId, code);
  // The condition decides between two requests with one code.
  const sql =
    "UPDATE recovery_code SET used_at = ?3 WHERE owner_id = ?1 AND code_digest = ?2 AND used_at IS NULL";
  if ((await tx.run(sql, ownerId, codeDigest, nowMs)) > 0) return "right";
  return (await RECOVERY_CODE.find(tx, { ownerId, codeDigest })) === null ? "wrong" : "used";
}

/** Counts the unused codes of the person. */
export async function countRecoveryCodes(tx: Reader, ownerId: string): Promise<number> {
  const sql = "SELECT count(*) AS count FROM recovery_code WHERE owner_id = ?1 AND used_at IS NULL";
  return (await tx.get<{ count: number }>(sql, ownerId))?.count ?? 0;
}

export async function deleteRecoveryCodes(tx: Writer, ownerId: string): Promise<void> {
  await tx.run("DELETE FROM recovery_code WHERE owner_id = ?1", ownerId);
}
