/**
 * Sign-ins that wait for a second factor. The browser gets a random token after the first proof, and sends it back with the factor. A token works
 * for ten minutes and ends after a few refused codes.
 */
import { hashToken, newToken } from "../../base/id.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, type RowOf, text } from "../../store/table.ts";

/** The first proof of a sign-in. */
export type FirstProof = "password" | "reset link";

const PENDING = defineTable({
  name: "pending_signin",
  key: ["tokenHash"],
  columns: {
    tokenHash: bytes(),
    ownerId: text(),
    how: text<FirstProof>(),
    failed: integer(),
    expiresAt: integer(),
  },
});

type PendingSignin = RowOf<typeof PENDING> & { email: string };

const LIFE_MS = 10 * MINUTE_MS;
const MAX_FAILED = 5;
/** The most pending sign-ins of one person. A new one replaces the oldest. */
const MAX_PENDING = 5;
const TOKEN_CHARS = 43;

/** Begins a sign-in that waits for a second factor. Returns its token, which only the browser keeps. */
export async function beginPendingSignin(
  tx: Writer,
  { ownerId, how, nowMs }: { ownerId: string; how: FirstProof; nowMs: number },
): Promise<{ token: string; expiresAt: number }> {
  const token = newToken(TOKEN_CHARS);
  const expiresAt = nowMs + LIFE_MS;
  await tx.run(
    `DELETE FROM pending_signin WHERE owner_id = ?1 AND token_hash IN (
       SELECT token_hash FROM pending_signin WHERE owner_id = ?1 ORDER BY expires_at DESC, token_hash LIMIT 100 OFFSET ?2)`,
    ownerId,
    MAX_PENDING - 1,
  );
  await PENDING.insert(tx, { tokenHash: hashToken(token), ownerId, how, failed: 0, expiresAt });
  return { token, expiresAt };
}

/** Finds the live sign-in of a token. Throws `unauthenticated` for one that ended. */
export async function requirePendingSignin(tx: Reader, token: string, nowMs: number): Promise<PendingSignin> {
  const sql = `SELECT ${PENDING.columnsOf("pending_signin")}, email FROM pending_signin JOIN owner ON owner.id = owner_id
    WHERE token_hash = ?1 AND expires_at > ?2`;
  const found = await tx.get<PendingSignin>(sql, hashToken(token), nowMs);
  if (found !== null) return found;
  throw new Refusal(
    "unauthenticated",
    "This sign-in has ended, after ten minutes or five refused codes: sign in again from the start.",
  );
}

/** Counts a refused code. The last one ends the sign-in. */
export async function countRefusedCode(tx: Writer, { tokenHash, failed }: PendingSignin): Promise<void> {
  if (failed + 1 >= MAX_FAILED) await PENDING.delete(tx, { tokenHash });
  else await tx.run("UPDATE pending_signin SET failed = failed + 1 WHERE token_hash = ?1", tokenHash);
}

/** Uses the sign-in up. Returns false if another request used it first. */
export async function usePendingSignin(tx: Writer, { tokenHash }: PendingSignin): Promise<boolean> {
  return (await tx.run("DELETE FROM pending_signin WHERE token_hash = ?1", tokenHash)) > 0;
}

export async function endPendingSignins(tx: Writer, ownerId: string): Promise<void> {
  await tx.run("DELETE FROM pending_signin WHERE owner_id = ?1", ownerId);
}

/** Deletes expired sign-ins. The daily maintenance calls it. */
export async function deletePendingSignins(tx: Writer, nowMs: number): Promise<void> {
  await tx.run("DELETE FROM pending_signin WHERE expires_at <= ?1", nowMs);
}
