/** Forgets signatures accepted once whose time is over. Those without one live as long as their secret; this never touches them. */
import type { Writer } from "../store/port.ts";

const BATCH_SIZE = 500;

/** Deletes some of them; answers whether there may be more. */
export async function forgetSignatures(tx: Writer, nowMs: number): Promise<boolean> {
  const forgotten = await tx.run(
    `DELETE FROM signature_memory WHERE (environment_id, relay_name, signed_text_hash) IN (
       SELECT environment_id, relay_name, signed_text_hash FROM signature_memory
       WHERE until IS NOT NULL AND until <= ?1 ORDER BY until LIMIT ?2)`,
    nowMs,
    BATCH_SIZE,
  );
  return forgotten === BATCH_SIZE;
}
