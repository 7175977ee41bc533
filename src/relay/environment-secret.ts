/**
 * One secret, one environment: a call to a receiver URL names no environment, so no secret may verify calls of one relay name in two
 * environments of an app. Here stands every way in which a secret comes to verify, once, for all who store one. Compared by keyed digest;
 * nothing is opened. Source: decisions, section 2.
 */
import { type Environment, type KeptProcessorSecret, setProcessorSecret } from "../account/environment.ts";
import { Refusal } from "../ground/refusal.ts";
import { findMasterKey, loadMasterKey, masterKeyFile } from "../secret/master-key.ts";
import { Sealer } from "../secret/seal.ts";
import type { Reader, Store, Writer } from "../store/port.ts";
import {
  processorSecretContext,
  type RelayContext,
  type RelayRow,
  receiverSecretContext,
  signingSecretContext,
} from "./relay.ts";

/** What verifies at ?1: a relay's own secret, the one before it while they overlap, and the environment's for the scheme processor. */
const VERIFYING = `
  SELECT environment_id AS environmentId, name, secret_digest AS digest FROM relay WHERE secret_digest IS NOT NULL
  UNION ALL SELECT environment_id, name, previous_secret_digest FROM relay WHERE previous_secret_until > $nowMs
  UNION ALL SELECT environment_id, relay.name, processor_secret_digest FROM relay
    JOIN environment ON environment.id = relay.environment_id WHERE secret_kind = 'processor'`;

type Place = Pick<RelayContext, "environment" | "nowMs">;

/** Refuses with `invalid_input` a secret that another environment's relay of this name verifies with; for `processor`, its processor's. */
export async function refuseKeptElsewhere(
  tx: Reader,
  context: Place,
  name: string,
  { secretKind, secretDigest }: Pick<RelayRow, "secretKind" | "secretDigest">,
): Promise<void> {
  const { id } = context.environment;
  const digest = secretKind === "processor" ? await findProcessorDigest(tx, id) : secretDigest;
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
  return (await tx.all<{ name: string }>(sql, { nowMs })).map(({ name }) => name);
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
    WHERE environment.app_id = $appId AND environment.id <> $id AND verifying.name = $name AND verifying.digest = $digest LIMIT 1`;
  const { id, appId } = environment;
  const other = await tx.get<{ name: string }>(sql, { nowMs, appId, id, name, digest });
  if (other === null) return;
  throw new Refusal(
    "invalid_input",
    `The secret is already the one of ${other.name} for the relay ${name}, and the secret alone decides which environment receives: make a webhook endpoint of its own for this environment at the sender and paste that one's secret.`,
  );
}

interface Sealed {
  bytes: Uint8Array;
  context: string;
}

/** `none`: nothing is sealed in it. `opens`: the newest secret of each kind opens. `foreign`: one does not. */
type SealedState = "none" | "opens" | "foreign";

/** Tries the key on the newest secret of each kind; with null, whether anything is sealed at all (then `foreign`). */
export async function trySealed(tx: Reader, sealer: Sealer | null): Promise<SealedState> {
  const samples = await findSamples(tx);
  if (samples.length === 0) return "none";
  if (sealer === null) return "foreign";
  try {
    for (const { bytes, context } of samples) sealer.unseal(bytes, context);
    return "opens";
  } catch {
    return "foreign";
  }
}

async function findSamples(tx: Reader): Promise<Sealed[]> {
  const newest = async <Id>(
    table: string,
    column: string,
    context: (id: Id) => string,
  ): Promise<Sealed[]> => {
    const rows = await tx.all<{ id: Id; bytes: Uint8Array }>(
      `SELECT id, ${column} AS bytes FROM ${table} WHERE ${column} IS NOT NULL ORDER BY ${column}_set_at DESC LIMIT 1`,
    );
    return rows.map(({ id, bytes }) => ({ bytes, context: context(id) }));
  };
  return [
    ...(await findProof(tx)),
    ...(await newest("relay", "secret", receiverSecretContext)),
    ...(await newest("relay", "signing_secret", signingSecretContext)),
    ...(await newest("environment", "processor_secret", processorSecretContext)),
  ];
}

const PROOF = "master key proof";

/** What the master key sealed when the database had its first; a database of an earlier schema has no place for it. */
async function findProof(tx: Reader): Promise<Sealed[]> {
  const table = await tx.get(
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'master_key_proof'",
  );
  if (table === null) return [];
  const rows = await tx.all<{ bytes: Uint8Array }>("SELECT sealed AS bytes FROM master_key_proof");
  return rows.map(({ bytes }) => ({ bytes, context: PROOF }));
}

/** Binds the database to the master key, so that another one is known as such before anything is sealed; unless it is bound already. */
async function keepProof(store: Store, sealer: Sealer): Promise<void> {
  if ((await store.read(findProof)).length > 0) return;
  await store.write("app", (tx) =>
    tx.run(
      "INSERT INTO master_key_proof (one, sealed) VALUES (1, ?1) ON CONFLICT DO NOTHING",
      sealer.seal(PROOF, PROOF),
    ),
  );
}

/** `masterKey` is RELAY_MASTER_KEY's. */
interface KeyPlace {
  dataDir: string;
  masterKey: string | null;
}

/** The data directory's sealer; where nothing was sealed yet, a first key is made. Refuses as `requireMasterKey`. */
export async function openSealer(store: Store, place: KeyPlace): Promise<Sealer> {
  const found = await store.read((tx) => requireMasterKey(tx, place));
  const sealer = new Sealer(found ?? (await loadMasterKey(place.dataDir, place.masterKey)));
  await keepProof(store, sealer);
  return sealer;
}

/** The key, or null where none was made yet. Refuses with `invalid_input` a key that is missing, another one than the database's, or no key at all. */
export async function requireMasterKey(
  tx: Reader,
  { dataDir, masterKey }: KeyPlace,
): Promise<Uint8Array | null> {
  const found = await findMasterKey(dataDir, masterKey);
  const state = await trySealed(tx, found === null ? null : new Sealer(found));
  if (state === "foreign") {
    const file = masterKeyFile(dataDir);
    throw new Refusal(
      "invalid_input",
      found === null
        ? `${file} is missing, and this database's secrets were sealed under it: put the key back that was kept with it, or name it in RELAY_MASTER_KEY.`
        : `${masterKey === null ? file : "RELAY_MASTER_KEY"} is not the master key that this database's secrets were sealed under: put the one back that was kept with it.`,
    );
  }
  return found;
}
