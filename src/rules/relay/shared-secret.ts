/**
 * Keeps secrets apart: a receiver URL names no environment, so no secret may verify one relay name in two environments of an app. Every function that
 * stores a secret checks this here, by keyed digests, without opening a secret. Source: decisions, section 2.
 */
import { Refusal } from "../../base/refusal.ts";
import {
  type Environment,
  type SealedProcessorSecret,
  setProcessorSecret,
} from "../../platform/account/environment.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { RelayContext, RelayRow } from "./relay.ts";

/**
 * Everything that verifies at $nowMs: a relay's own secret, the previous one during an overlap, and the environment's for the scheme
 * processor.
 */
const VERIFYING = `
  SELECT environment_id AS environmentId, name, secret_digest AS digest FROM relay WHERE secret_digest IS NOT NULL
  UNION ALL SELECT environment_id, name, previous_secret_digest FROM relay WHERE previous_secret_until > $nowMs
  UNION ALL SELECT environment_id, relay.name, processor_secret_digest FROM relay
    JOIN environment ON environment.id = relay.environment_id WHERE secret_kind = 'processor'`;

type SecretScope = Pick<RelayContext, "environment" | "nowMs">;

/**
 * Throws `invalid_input` for a secret that another environment's relay of this name verifies with. For `processor` it checks the
 * environment's own secret.
 */
export async function requireUnsharedSecret(
  tx: Reader,
  context: SecretScope,
  name: string,
  { secretKind, secretDigest }: Pick<RelayRow, "secretKind" | "secretDigest">,
): Promise<void> {
  const { id } = context.environment;
  const digest = secretKind === "processor" ? await findProcessorDigest(tx, id) : secretDigest;
  if (digest !== null) await requireUnsharedDigest(tx, context, name, digest);
}

/**
 * Stores the environment's processor secret, or removes it with null. Throws `invalid_input` for a secret of another environment, or one
 * that verifies the same relay name there.
 */
export async function storeProcessorSecret(
  tx: Writer,
  { environment, nowMs }: SecretScope,
  secret: SealedProcessorSecret | null,
): Promise<void> {
  const sql = "SELECT name FROM relay WHERE environment_id = ?1 AND secret_kind = 'processor' ORDER BY name";
  const relays = secret === null ? [] : await tx.all<{ name: string }>(sql, environment.id);
  await setProcessorSecret(tx, environment, secret, nowMs);
  if (secret === null) return;
  for (const { name } of relays) await requireUnsharedDigest(tx, { environment, nowMs }, name, secret.digest);
}

/** Lists relay names, with their app, that one secret verifies in two environments. Rows from before this rule can be so. */
export async function listSharedSecrets(tx: Reader, nowMs: number): Promise<string[]> {
  const sql = `WITH verifying AS (${VERIFYING}), placed AS (
      SELECT environmentId, environment.app_id AS appId, verifying.name AS name, digest FROM verifying
      JOIN environment ON environment.id = environmentId WHERE digest IS NOT NULL)
    SELECT DISTINCT one.appId || '/' || one.name AS name FROM placed AS one JOIN placed AS other
      ON other.appId = one.appId AND other.name = one.name AND other.digest = one.digest
        AND other.environmentId > one.environmentId
    ORDER BY 1`;
  return (await tx.all<{ name: string }>(sql, { nowMs })).map(({ name }) => name);
}

/** Finds the keyed digest of the environment's processor secret; null where none is stored. */
export async function findProcessorDigest(tx: Reader, environmentId: number): Promise<Uint8Array | null> {
  const sql = "SELECT processor_secret_digest AS digest FROM environment WHERE id = ?1";
  return (await tx.get<{ digest: Uint8Array | null }>(sql, environmentId))?.digest ?? null;
}

async function requireUnsharedDigest(
  tx: Reader,
  { environment, nowMs }: { environment: Pick<Environment, "id" | "appId">; nowMs: number },
  name: string,
  digest: Uint8Array,
): Promise<void> {
  const sql = `SELECT environment.name AS name FROM (${VERIFYING}) AS verifying
    JOIN environment ON environment.id = verifying.environmentId
    WHERE environment.app_id = $appId AND environment.id <> $id AND verifying.name = $name AND verifying.digest = $digest LIMIT 1`;
  const { id, appId } = environment;
  const other = await tx.get<{ name: string }>(sql, { nowMs, appId, id, name, digest });
  if (other === null) return;
  throw new Refusal(
    "invalid_input",
    `The relay ${name} in ${other.name} already uses this secret, and only the secret decides which environment receives a request. Create a separate webhook endpoint for this environment at the sender, and paste its secret.`,
  );
}
