/**
 * Deletes the remembered signatures of retired secrets. Retiring a secret writes one row, whatever the number of its signatures. A day later, small
 * steps delete them.
 */
import { SIGNATURE_MEMORY_AFTER_DELETE_MS } from "../../base/limit.ts";
import { RELAY, secretMark } from "../../rules/relay/relay.ts";
import type { Writer } from "../../store/port.ts";

/** The rows of one transaction. */
const BATCH_ROWS = 250;

interface RetiredSecret {
  environmentId: number;
  relayName: string;
  /** Identifies the secret; empty for signatures that name none. */
  secret: Uint8Array;
  /** The hash up to which the relay's signatures were checked. */
  cursor: Uint8Array;
}

const SECRETS = RELAY.pick("secretKind", "secretDigest", "previousSecretDigest", "previousSecretUntil");

/**
 * Finds until when the signatures of a retired secret must be kept after all; null deletes them. During an update, a node of the previous version
 * may have stored the secret again without a note.
 */
async function findKeptUntil(
  tx: Writer,
  { environmentId, relayName, secret }: RetiredSecret,
  nowMs: number,
): Promise<number | null> {
  const named = "WHERE environment_id = $environmentId AND name = $relayName";
  const relay = await SECRETS.get(tx, named, { environmentId, relayName });
  if (relay === null) return null;
  const { secretKind, secretDigest, previousSecretDigest, previousSecretUntil } = relay;
  const isGiven = secretKind === "pasted" || secretKind === "public_key";
  // Signatures that name no secret may belong to any pasted secret.
  if (secret.length === 0) return isGiven ? Number.POSITIVE_INFINITY : null;
  if (Bun.deepEquals(secretMark(secretDigest), secret)) return Number.POSITIVE_INFINITY;
  if (!Bun.deepEquals(secretMark(previousSecretDigest), secret)) return null;
  const untilMs = (previousSecretUntil ?? 0) + SIGNATURE_MEMORY_AFTER_DELETE_MS;
  return untilMs > nowMs ? untilMs : null;
}

/** Checks some signatures of a secret that was retired long enough ago. Returns whether there may be more. */
export async function forgetSignatures(tx: Writer, nowMs: number): Promise<boolean> {
  const retired = await tx.get<RetiredSecret>(
    `SELECT environment_id AS environmentId, relay_name AS relayName, secret, cursor FROM retired_secret
     WHERE until <= ?1 ORDER BY until LIMIT 1`,
    nowMs,
  );
  if (retired === null) return false;
  const { environmentId, relayName, secret, cursor } = retired;
  const own = "WHERE environment_id = $environmentId AND relay_name = $relayName AND secret = $secret";
  const keptUntil = await findKeptUntil(tx, retired, nowMs);
  if (keptUntil !== null) {
    const [sql, until] =
      keptUntil === Number.POSITIVE_INFINITY
        ? [`DELETE FROM retired_secret ${own}`, {}]
        : [`UPDATE retired_secret SET until = $until ${own}`, { until: keptUntil }];
    await tx.run(sql, { environmentId, relayName, secret, ...until });
    return true;
  }
  const seen = await tx.all<{ hash: Uint8Array; secret: Uint8Array | null; until: number | null }>(
    `SELECT signed_text_hash AS hash, secret, until FROM signature_memory
     WHERE environment_id = ?1 AND relay_name = ?2 AND signed_text_hash > ?3 ORDER BY signed_text_hash LIMIT ${BATCH_ROWS}`,
    environmentId,
    relayName,
    cursor,
  );
  const old = seen.filter((row) =>
    row.secret === null ? secret.length === 0 && row.until === null : Bun.deepEquals(row.secret, secret),
  );
  await tx.postEach(
    "DELETE FROM signature_memory WHERE environment_id = $environmentId AND relay_name = $relayName AND signed_text_hash = $hash",
    old.map(({ hash }) => ({ environmentId, relayName, hash })),
  );
  const last = seen.length === BATCH_ROWS ? seen.at(-1) : undefined;
  if (last === undefined)
    await tx.run(`DELETE FROM retired_secret ${own}`, { environmentId, relayName, secret });
  else
    await tx.run(`UPDATE retired_secret SET cursor = $hash ${own}`, {
      environmentId,
      relayName,
      secret,
      hash: last.hash,
    });
  return true;
}
