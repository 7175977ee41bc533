/** Finds out whether a master key is the one that a database's secrets were sealed under. It shows no secret. */
import type { Sealer } from "../secret/seal.ts";
import type { Reader, Store } from "../store/port.ts";
import { processorSecretContext, receiverSecretContext, signingSecretContext } from "./relay-row.ts";

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
export async function keepProof(store: Store, sealer: Sealer): Promise<void> {
  if ((await store.read(findProof)).length > 0) return;
  await store.write("app", (tx) =>
    tx.run(
      "INSERT INTO master_key_proof (one, sealed) VALUES (1, ?1) ON CONFLICT DO NOTHING",
      sealer.seal(PROOF, PROOF),
    ),
  );
}
