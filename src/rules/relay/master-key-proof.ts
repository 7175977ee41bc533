/**
 * Checks that a database's secrets are sealed under the current master key. A wrong key is detected before anything is sealed with it.
 */
import { Refusal } from "../../base/refusal.ts";
import { findMasterKey, loadMasterKey, masterKeyFile } from "../../platform/secret/master-key.ts";
import { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, Store } from "../../store/port.ts";
import { processorSecretContext, receiverSecretContext, signingSecretContext } from "./relay.ts";

interface Sealed {
  bytes: Uint8Array;
  context: string;
}

/** `none`: nothing is sealed in the database. `opens`: the newest secret of each kind opens. `foreign`: one does not. */
type SealedState = "none" | "opens" | "foreign";

/** Tests the key on the newest secret of each kind. A null key only checks whether anything is sealed; then the result is `foreign`. */
export async function testMasterKey(tx: Reader, sealer: Sealer | null): Promise<SealedState> {
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

/** Finds what the master key sealed when the database got its first key. A database of an earlier schema has no such table. */
async function findProof(tx: Reader): Promise<Sealed[]> {
  if ((await tx.get("SELECT 1 FROM schema_migration WHERE number >= 11")) === null) return [];
  const rows = await tx.all<{ bytes: Uint8Array }>("SELECT sealed AS bytes FROM master_key_proof");
  return rows.map(({ bytes }) => ({ bytes, context: PROOF }));
}

/** Binds the database to the master key unless it is bound, so that a wrong key is detected later. */
async function recordProof(store: Store, sealer: Sealer): Promise<void> {
  if ((await store.read(findProof)).length > 0) return;
  await store.write("app", (tx) =>
    tx.run(
      "INSERT INTO master_key_proof (one, sealed) VALUES (1, ?1) ON CONFLICT DO NOTHING",
      sealer.seal(PROOF, PROOF),
    ),
  );
}

/** `masterKey` is the value of RELAY_MASTER_KEY. */
interface MasterKeySource {
  dataDir: string;
  masterKey: string | null;
}

/** Opens the data directory's sealer, and makes a first key where nothing is sealed yet. Throws as `requireMasterKey` does. */
export async function openSealer(store: Store, place: MasterKeySource): Promise<Sealer> {
  const found = await store.read((tx) => requireMasterKey(tx, place));
  const sealer = new Sealer(found ?? (await loadMasterKey(place.dataDir, place.masterKey)));
  await recordProof(store, sealer);
  // Another node may have bound the database to a different key at the same time.
  await store.read((tx) => requireMasterKey(tx, place));
  return sealer;
}

/** Returns the key, or null where none exists yet. Throws `invalid_input` for a missing key, or one that does not fit the database. */
export async function requireMasterKey(
  tx: Reader,
  { dataDir, masterKey }: MasterKeySource,
): Promise<Uint8Array | null> {
  const found = await findMasterKey(dataDir, masterKey);
  const state = await testMasterKey(tx, found === null ? null : new Sealer(found));
  if (state === "foreign") {
    const file = masterKeyFile(dataDir);
    throw new Refusal(
      "invalid_input",
      found === null
        ? `${file} is missing, and it is needed to open the secrets of this database: restore the key file from its backup, or set RELAY_MASTER_KEY to the key.`
        : `${masterKey === null ? file : "RELAY_MASTER_KEY"} is not the master key of this database, so its secrets cannot be opened: restore the key that belongs to this database. If this is another installation, give it its own database.`,
    );
  }
  return found;
}
