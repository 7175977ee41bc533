/** The database itself: whether it is whole, whose schema it has, and whether the master key opens its secrets. */
import { trySealed } from "../relay/sealed-sample.ts";
import { findMasterKey } from "../secret/master-key.ts";
import { Sealer } from "../secret/seal.ts";
import { findFaults } from "../store/database-check.ts";
import { SCHEMA_VERSION } from "../store/migrate.ts";
import type { Reader } from "../store/port.ts";
import { type Finding, failure, fine, type Patient, worry } from "./finding.ts";

const RESTORE = "stop the server and restore a backup with relay restore <file>";

export function checkSchema(schema: number | null): Finding {
  if (schema === null) {
    return failure(
      "schema",
      "The database is none of this service's.",
      "name the right data directory with --data-dir",
    );
  }
  if (schema > SCHEMA_VERSION) {
    const message = `The database has schema ${schema}, this executable knows ${SCHEMA_VERSION}.`;
    return failure("schema", message, "use the newer version that wrote it, or restore a backup");
  }
  if (schema < SCHEMA_VERSION) {
    const message = `The database has schema ${schema}, this executable brings ${SCHEMA_VERSION}.`;
    return worry("schema", message, "start the server with this executable: it keeps a copy, then migrates");
  }
  return fine("schema", `Schema ${schema}, as this executable knows it.`);
}

export async function checkWhole(tx: Reader, { quick }: Patient): Promise<Finding> {
  const faults = await findFaults(tx, { quick });
  if (faults.length === 0) {
    return fine(
      "database",
      quick ? "Whole, as far as a quick look tells." : "Whole: read through without a fault.",
    );
  }
  return failure("database", `Damaged: ${faults.join("; ")}.`, RESTORE);
}

export async function checkKey(tx: Reader, { dataDir, masterKey }: Patient): Promise<Finding> {
  let key: Uint8Array | null;
  try {
    key = await findMasterKey(dataDir, masterKey);
  } catch (error) {
    return failure("master key", (error as Error).message, "put the key back that this data was sealed with");
  }
  const state = await trySealed(tx, key === null ? null : new Sealer(key));
  const where = masterKey === null ? "master.key" : "RELAY_MASTER_KEY";
  if (state === "opens") return fine("master key", `${where} opens the secrets.`);
  if (state === "none") {
    return fine(
      "master key",
      key === null ? "None yet, and no secret needs one." : `${where} is there; no secret is sealed yet.`,
    );
  }
  return key === null
    ? failure(
        "master key",
        "There is no master key, so no secret can be opened.",
        "put master.key back, or set RELAY_MASTER_KEY",
      )
    : failure(
        "master key",
        `${where} is not the key the secrets were sealed under.`,
        "put the key back that came with this database",
      );
}
