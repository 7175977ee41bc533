/**
 * The master key of a restored database: whether the one at hand opens its secrets, and putting a given one into a directory that has none.
 * It never replaces a key: two files cannot change in one step, and a key that is gone is gone with all it sealed.
 */
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { partOf, placeFile, syncFile } from "../ground/durable-file.ts";
import { trySealed } from "../relay/sealed-sample.ts";
import { findMasterKey, masterKeyFile, readKey } from "../secret/master-key.ts";
import { Sealer } from "../secret/seal.ts";
import { openDatabaseFile } from "../store/database-file.ts";
import { BackupRefused } from "./backup-refused.ts";

interface KeyRequest {
  /** The database that is to be restored. */
  database: string;
  dataDir: string;
  keyFile: string | null;
  masterKey: string | null;
}

/**
 * Makes sure that the secrets in the database open with the key that the server will use. Answers the key that has to be put into the
 * directory first, or null. Throws BackupRefused where the key is missing or another one.
 */
export async function requireFittingKey(request: KeyRequest): Promise<Uint8Array | null> {
  const { dataDir, keyFile, masterKey } = request;
  const given = keyFile === null ? null : readGivenKey(keyFile);
  const there = await findMasterKey(dataDir, masterKey);
  if (given !== null && there !== null && !Buffer.from(given).equals(there)) {
    throw new BackupRefused(
      `${masterKey === null ? masterKeyFile(dataDir) : "RELAY_MASTER_KEY"} is another key than ${keyFile}: move it away first if nothing needs it any more.`,
    );
  }
  const key = given ?? there;
  using database = openDatabaseFile(request.database);
  const state = await trySealed(database, key === null ? null : new Sealer(key));
  if (state === "foreign") throw new BackupRefused(refuseKey(request, key !== null));
  return there === null ? given : null;
}

/** Puts the key into a directory that has none. */
export function placeKey(dataDir: string, key: Uint8Array): void {
  const file = masterKeyFile(dataDir);
  const part = partOf(file);
  try {
    writeFileSync(part, `${Buffer.from(key).toString("hex")}\n`, { mode: 0o600, flag: "wx" });
    chmodSync(part, 0o600);
    syncFile(part);
    if (!placeFile(part, file, { replace: false })) {
      throw new BackupRefused(`${file} was made by another command just now: try again.`);
    }
  } finally {
    rmSync(part, { force: true });
  }
}

function readGivenKey(file: string): Uint8Array {
  if (!existsSync(file)) throw new BackupRefused(`There is no file ${file}: check its path.`);
  return readKey(readFileSync(file, "utf8"), file);
}

function refuseKey({ dataDir, keyFile }: KeyRequest, found: boolean): string {
  if (keyFile !== null)
    return `The key in ${keyFile} does not open this backup's secrets: name the one that was kept with it.`;
  const what = found ? "is not the one this backup's secrets were sealed under" : "is missing";
  return `The master key of ${dataDir} ${what}: put the master.key kept with the backup there, or name it with --key <file>.`;
}
