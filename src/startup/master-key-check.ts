/**
 * The master key of a start: the one this database's secrets were sealed under, or a first one for a database that has sealed nothing. It
 * never shows a secret, and never makes a key in the place of one that is missing.
 */
import type { ServiceConfig } from "../config.ts";
import { Refusal } from "../ground/refusal.ts";
import { keepProof, trySealed } from "../relay/sealed-sample.ts";
import { findMasterKey, loadMasterKey, masterKeyFile } from "../secret/master-key.ts";
import { Sealer } from "../secret/seal.ts";
import type { Store } from "../store/port.ts";

/** Refuses with `invalid_input` a key that is missing, another one than the database's, or no key at all. */
export async function openSealer(
  store: Store,
  { dataDir, masterKey }: Pick<ServiceConfig, "dataDir" | "masterKey">,
): Promise<Sealer> {
  const found = await findMasterKey(dataDir, masterKey);
  const state = await store.read((tx) => trySealed(tx, found === null ? null : new Sealer(found)));
  if (state === "foreign") {
    const file = masterKeyFile(dataDir);
    throw new Refusal(
      "invalid_input",
      found === null
        ? `${file} is missing, and this database's secrets were sealed under it: put the key back that was kept with it, or name it in RELAY_MASTER_KEY.`
        : `${masterKey === null ? file : "RELAY_MASTER_KEY"} is not the master key that this database's secrets were sealed under: put the one back that was kept with it.`,
    );
  }
  const sealer = new Sealer(found ?? (await loadMasterKey(dataDir, masterKey)));
  await keepProof(store, sealer);
  return sealer;
}
