/**
 * One secret, one environment: a call to a receiver URL names no environment, so no secret may verify calls of one relay name in two
 * environments of an app. Here stands every way in which a secret comes to verify, once, for all who store one. Compared by keyed digest;
 * nothing is opened. Source: decisions, section 2.
 */
import { type Environment, type KeptProcessorSecret, setProcessorSecret } from "../account/environment.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Reader, Writer } from "../store/port.ts";
import type { KeptSecret } from "./receiver-secret.ts";
import type { RelayContext } from "./relay-context.ts";

/** What verifies at ?1: a relay's own secret, the one before it while they overlap, and the environment's for the scheme processor. */
const VERIFYING = `
  SELECT environment_id AS environmentId, name, secret_digest AS digest FROM relay WHERE secret_digest IS NOT NULL
  UNION ALL SELECT environment_id, name, previous_secret_digest FROM relay WHERE previous_secret_until > ?1
  UNION ALL SELECT environment_id, relay.name, processor_secret_digest FROM relay
    JOIN environment ON environment.id = relay.environment_id WHERE secret_kind = 'processor'`;

type Place = Pick<RelayContext, "environment" | "nowMs">;

/** Refuses with `invalid_input` a secret that another environment's relay of this name verifies with; for `processor`, its processor's. */
export async function refuseKeptElsewhere(
  tx: Reader,
  context: Place,
  name: string,
  kept: Pick<KeptSecret, "kind" | "digest">,
): Promise<void> {
  const { id } = context.environment;
  const digest = kept.kind === "processor" ? await findProcessorDigest(tx, id) : kept.digest;
  if (digest !== null) await refuseDigestElsewhere(tx, context, name, digest);
}

/**
 * Stores the environment's processor secret, or removes it with null. Refuses with `invalid_input` one that is another environment's, or
 * that verifies there under the name of any relay that would verify with it here.
 */
export async function keepProcessorSecret(
  tx: Writer,
  { environment, nowMs }: Place,
  secret: KeptProcessorSecret | null,
): Promise<void> {
  const sql = "SELECT name FROM relay WHERE environment_id = ?1 AND secret_kind = 'processor' ORDER BY name";
  const relays = secret === null ? [] : await tx.all<{ name: string }>(sql, environment.id);
  await setProcessorSecret(tx, environment, secret, nowMs);
  if (secret === null) return;
  for (const { name } of relays) await refuseDigestElsewhere(tx, { environment, nowMs }, name, secret.digest);
}

/** Relay names, with their app, that one secret verifies in two environments: from before this was refused. */
export async function listSharedSecrets(tx: Reader, nowMs: number): Promise<string[]> {
  const sql = `WITH verifying AS (${VERIFYING}), placed AS (
      SELECT environmentId, environment.app_id AS appId, verifying.name AS name, digest FROM verifying
      JOIN environment ON environment.id = environmentId WHERE digest IS NOT NULL)
    SELECT DISTINCT one.appId || '/' || one.name AS name FROM placed AS one JOIN placed AS other
      ON other.appId = one.appId AND other.name = one.name AND other.digest = one.digest
        AND other.environmentId > one.environmentId
    ORDER BY 1`;
  return (await tx.all<{ name: string }>(sql, nowMs)).map(({ name }) => name);
}

async function findProcessorDigest(tx: Reader, environmentId: number): Promise<Uint8Array | null> {
  const sql = "SELECT processor_secret_digest AS digest FROM environment WHERE id = ?1";
  return (await tx.get<{ digest: Uint8Array | null }>(sql, environmentId))?.digest ?? null;
}

async function refuseDigestElsewhere(
  tx: Reader,
  { environment, nowMs }: { environment: Pick<Environment, "id" | "appId">; nowMs: number },
  name: string,
  digest: Uint8Array,
): Promise<void> {
  const sql = `SELECT environment.name AS name FROM (${VERIFYING}) AS verifying
    JOIN environment ON environment.id = verifying.environmentId
    WHERE environment.app_id = ?2 AND environment.id <> ?3 AND verifying.name = ?4 AND verifying.digest = ?5 LIMIT 1`;
  const other = await tx.get<{ name: string }>(sql, nowMs, environment.appId, environment.id, name, digest);
  if (other === null) return;
  throw new Refusal(
    "invalid_input",
    `The secret is already the one of ${other.name} for the relay ${name}, and the secret alone decides which environment receives: make a webhook endpoint of its own for this environment at the sender and paste that one's secret.`,
  );
}
