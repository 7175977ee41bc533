/** Finds out whether a master key is the one that a database's secrets were sealed under. It shows no secret and writes nothing. */
import type { Sealer } from "../secret/seal.ts";
import type { Reader } from "../store/port.ts";
import { processorSecretContext, receiverSecretContext, signingSecretContext } from "./relay-row.ts";

interface Sealed {
  bytes: Uint8Array;
  context: string;
}

/** `none`: nothing is sealed in it. `opens`: the newest secret of each kind opens. `foreign`: one does not. */
export type SealedState = "none" | "opens" | "foreign";

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
    ...(await newest("relay", "secret", receiverSecretContext)),
    ...(await newest("relay", "signing_secret", signingSecretContext)),
    ...(await newest("environment", "processor_secret", processorSecretContext)),
  ];
}
