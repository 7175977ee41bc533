/**
 * The master key: 32 bytes from the environment variable or from the file master.key in the data directory. The file is created once,
 * atomically, and never overwritten. Source: decisions, sections 1 and 6.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileErrorCode, writeOwnFile } from "../../base/durable-file.ts";
import { Refusal } from "../../base/refusal.ts";
import { decodeText } from "../../base/text.ts";

const FILE_NAME = "master.key";
const KEY_BYTES = 32;

/**
 * Loads the master key, and creates the file if there is none. `fromEnvironment` (RELAY_MASTER_KEY) takes precedence. Throws `invalid_input`
 * for a key of the wrong length.
 */
export async function loadMasterKey(dataDir: string, fromEnvironment: string | null): Promise<Uint8Array> {
  if (fromEnvironment !== null) return readKey(fromEnvironment, "RELAY_MASTER_KEY");
  const path = masterKeyFile(dataDir);
  const found = await readIfThere(path);
  if (found !== null) return readKey(found, path);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  // Another process may have created the file first; then its key is used.
  writeKeyFile(path, crypto.getRandomValues(new Uint8Array(KEY_BYTES)), { replace: false });
  return readKey(await readFile(path, "utf8"), path);
}

/** Finds the master key without creating one. */
export async function findMasterKey(
  dataDir: string,
  fromEnvironment: string | null,
): Promise<Uint8Array | null> {
  if (fromEnvironment !== null) return readKey(fromEnvironment, "RELAY_MASTER_KEY");
  const path = masterKeyFile(dataDir);
  const found = await readIfThere(path);
  return found === null ? null : readKey(found, path);
}

/** Returns the path of the key file. */
export function masterKeyFile(dataDir: string): string {
  return join(dataDir, FILE_NAME);
}

/** Parses a key. `source` names the text in the error (`invalid_input`). */
export function readKey(text: string, source: string): Uint8Array {
  const bare = text.trim();
  const key = decodeText(bare, "hex") ?? decodeText(bare, "base64");
  if (key?.length === KEY_BYTES) return key;
  throw new Refusal(
    "invalid_input",
    `${source} is not a master key: it must be ${KEY_BYTES} bytes as ${KEY_BYTES * 2} hex characters or as base64; restore the key of this data.`,
  );
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const code = fileErrorCode(error);
    if (code === "ENOENT") return null;
    // A container's mount of a missing file creates a directory.
    throw new Refusal(
      "invalid_input",
      `${path} cannot be read (${code}): it must be the key file of this data, and the server's user must be able to read it.`,
    );
  }
}

/** Writes a key as hex, atomically. Returns false if a file exists that may not be replaced. */
export function writeKeyFile(file: string, key: Uint8Array, options: { replace: boolean }): boolean {
  return writeOwnFile(file, `${Buffer.from(key).toString("hex")}\n`, options);
}
