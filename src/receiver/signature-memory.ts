/**
 * Signatures that are accepted once: recipes whose signed text is not the raw body. Remembered by environment, relay NAME and the hash of
 * the signed text, in the transaction of the event row. Source: recipes, "Signatures accepted once".
 */
import { createHash } from "node:crypto";
import type { Reader, Store, Writer } from "../store/port.ts";
import type { Verified } from "../verify/contract.ts";

/** A margin past the window, for clocks that differ. */
const MARGIN_MS = 60_000;

export interface OnceUse {
  environmentId: number;
  relayName: string;
  signedText: Uint8Array;
  body: Uint8Array;
  /** When the call's timestamp leaves the window; null where it carries none: remembered as long as the secret. */
  expiresAtMs: number | null;
}

export type EarlierUse = { sameBody: true; eventId: string | null } | { sameBody: false };

/** The one use of a call's signature; null where the signature may come again. */
export function useOnce(
  { environmentId, name: relayName }: { environmentId: number; name: string },
  { onceText, expiresAtMs }: Verified,
  body: Uint8Array,
): OnceUse | null {
  return onceText === null ? null : { environmentId, relayName, signedText: onceText, body, expiresAtMs };
}

/** How this signature was used before, or null for its first use. */
export async function findEarlierUse(tx: Reader, use: OnceUse): Promise<EarlierUse | null> {
  const row = await tx.get<{ bodyHash: Uint8Array; eventId: string | null }>(
    `SELECT body_hash AS bodyHash, event_id AS eventId FROM signature_memory
     WHERE environment_id = ?1 AND relay_name = ?2 AND signed_text_hash = ?3`,
    use.environmentId,
    use.relayName,
    sha256(use.signedText),
  );
  if (row === null) return null;
  return Buffer.compare(row.bodyHash, sha256(use.body)) === 0
    ? { sameBody: true, eventId: row.eventId }
    : { sameBody: false };
}

/** Spends the signature. `eventId` is null when the call was ignored by `when`. */
export async function spendSignature(tx: Writer, use: OnceUse, eventId: string | null): Promise<void> {
  await tx.run(
    `INSERT INTO signature_memory (environment_id, relay_name, signed_text_hash, body_hash, event_id, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,
    use.environmentId,
    use.relayName,
    sha256(use.signedText),
    sha256(use.body),
    eventId,
    use.expiresAtMs === null ? null : use.expiresAtMs + MARGIN_MS,
  );
}

/** Spends the signature of a call that `when` ignores; one spent meanwhile stays as it is. */
export function spendIgnored(store: Store, use: OnceUse): Promise<void> {
  return store.write("app", async (tx) => {
    if ((await findEarlierUse(tx, use)) === null) await spendSignature(tx, use, null);
  });
}

function sha256(bytes: Uint8Array): Uint8Array {
  return createHash("sha256").update(bytes).digest();
}
