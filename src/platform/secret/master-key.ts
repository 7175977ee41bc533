/**
 * The master key: 32 bytes from the environment, or from the file master.key in the data directory, made there the first time, whole or
 * not at all and never over one that exists. It never changes a key. Source: decisions, sections 1 and 6.
 */
import { randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileErrorCode, writeOwnFile } from "../../base/durable-file.ts";
import { Refusal } from "../../base/refusal.ts";
import { decodeText } from "../../base/text.ts";

const FILE_NAME = "master.key";
const KEY_BYTES = 32;

/** The 32 bytes of the master key; `fromEnvironment` (RELAY_MASTER_KEY) wins over the file. Refuses with `invalid_input` a wrong length. */
export async function loadMasterKey(dataDir: string, fromEnvironment: string | null): Promise<Uint8Array> {
  if (fromEnvironment !== null) return readKey(fromEnvironment, "RELAY_MASTER_KEY");
  const path = masterKeyFile(dataDir);
  const found = await readIfThere(path);
  if (found !== null) return readKey(found, path);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  // Another process may have been first, and then its key stands.
  writeKeyFile(path, randomBytes(KEY_BYTES), { replace: false });
  return readKey(await readFile(path, "utf8"), path);
}

/** As `loadMasterKey`, but makes none: null where there is none. */
export async function findMasterKey(
  dataDir: string,
  fromEnvironment: string | null,
): Promise<Uint8Array | null> {
  if (fromEnvironment !== null) return readKey(fromEnvironment, "RELAY_MASTER_KEY");
  const path = masterKeyFile(dataDir);
  const found = await readIfThere(path);
  return found === null ? null : readKey(found, path);
}

/** Where the data directory keeps it. */
export function masterKeyFile(dataDir: string): string {
  return join(dataDir, FILE_NAME);
}

/** The key that a text says; `source` names the text in the refusal (`invalid_input`). */
export function readKey(text: string, source: string): Uint8Array {
  const bare = text.trim();
  const key = decodeText(bare, "hex") ?? decodeText(bare, "base64");
  if (key?.length === KEY_BYTES) return key;
  throw new Refusal(
    "invalid_input",
    `${source} is not a master key: it must be ${KEY_BYTES} bytes as ${KEY_BYTES * 2} hex characters or as base64; restore the one this data was sealed with.`,
  );
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const code = fileErrorCode(error);
    if (code === "ENOENT") return null;
    // A container's mount of a file that is not there makes a folder.
    throw new Refusal(
      "invalid_input",
      `${path} cannot be read (${code}): it must be a file that the server's user may read, the one this data was sealed with.`,
    );
  }
}

/** Writes a key as hex, whole or not at all. Answers false where a file stands there already that may not be replaced. */
export function writeKeyFile(file: string, key: Uint8Array, options: { replace: boolean }): boolean {
  return writeOwnFile(file, `${Buffer.from(key).toString("hex")}\n`, options);
}
