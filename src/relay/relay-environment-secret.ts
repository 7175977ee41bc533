/**
 * One secret, one environment: a call to a receiver URL names no environment, so that two environments of an app may not hold the same
 * secret for the same relay name, nor one that a rotation's overlap still lets verify. Compared by keyed digest; nothing is opened.
 * Source: decisions, section 2.
 */
import { Refusal } from "../ground/refusal.ts";
import type { Reader } from "../store/port.ts";
import type { KeptSecret } from "./receiver-secret.ts";
import type { RelayContext } from "./relay-context.ts";

/** Refuses with `invalid_input` a secret that another environment's relay of this name verifies with; for `processor`, its processor's. */
export async function refuseKeptElsewhere(
  tx: Reader,
  context: Pick<RelayContext, "environment" | "nowMs">,
  name: string,
  kept: Pick<KeptSecret, "kind" | "digest">,
): Promise<void> {
  const { id } = context.environment;
  const digest = kept.kind === "processor" ? await findProcessorDigest(tx, id) : kept.digest;
  if (digest !== null) await refuseDigestElsewhere(tx, context, name, digest);
}

async function findProcessorDigest(tx: Reader, environmentId: number): Promise<Uint8Array | null> {
  const sql = "SELECT processor_secret_digest AS digest FROM environment WHERE id = ?1";
  return (await tx.get<{ digest: Uint8Array | null }>(sql, environmentId))?.digest ?? null;
}

async function refuseDigestElsewhere(
  tx: Reader,
  { environment, nowMs }: Pick<RelayContext, "environment" | "nowMs">,
  name: string,
  digest: Uint8Array,
): Promise<void> {
  const sql = `SELECT environment.name AS name FROM relay JOIN environment ON environment.id = relay.environment_id
    WHERE environment.app_id = ?1 AND environment.id <> ?2 AND relay.name = ?3
      AND (relay.secret_digest = ?4 OR (relay.previous_secret_digest = ?4 AND relay.previous_secret_until > ?5)
        OR (relay.secret_kind = 'processor' AND environment.processor_secret_digest = ?4))
    LIMIT 1`;
  const other = await tx.get<{ name: string }>(sql, environment.appId, environment.id, name, digest, nowMs);
  if (other === null) return;
  throw new Refusal(
    "invalid_input",
    `The secret is already the one of ${other.name} for the relay ${name}, and the secret alone decides which environment receives: make a webhook endpoint of its own for this environment at the sender and paste that one's secret.`,
  );
}
