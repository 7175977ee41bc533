/**
 * The last common content of a folder's files and each server, by server and environment. A three-way merge needs this base to tell which
 * side changed. The file belongs to this folder and stays out of version control. Losing it loses only that knowledge.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { writeOwnFile } from "../../base/durable-file.ts";
import { isJsonObject, type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { addToGitignore } from "../../platform/secret/local-secrets.ts";
import { readJsonFile } from "./json-file.ts";

const MERGE_BASE_FILE = ".synced.json";

/** Content by target, such as `relay:checkout`. */
export type MergeBase = Map<string, Json>;

/** `server`: `https://relay.example.com/shop/development`. An unreadable file counts as empty. */
export async function readMergeBase(serviceDir: string, server: string): Promise<MergeBase> {
  const known = (await readAll(serviceDir))[server];
  return new Map(isJsonObject(known) ? Object.entries(known) : []);
}

/** Replaces what is stored for that server. */
export async function writeMergeBase(serviceDir: string, server: string, memory: MergeBase): Promise<void> {
  const before = await readAll(serviceDir);
  const sorted = [...memory].sort(([one], [other]) => (one < other ? -1 : 1));
  const after = { ...before, [server]: Object.fromEntries(sorted) };
  if (writeJson(after) === writeJson(before)) return;
  await mkdir(serviceDir, { recursive: true });
  await addToGitignore(serviceDir, MERGE_BASE_FILE);
  writeOwnFile(join(serviceDir, MERGE_BASE_FILE), `${writeJson(after, 2)}\n`, { replace: true });
}

async function readAll(serviceDir: string): Promise<JsonObject> {
  const file = await readJsonFile(join(serviceDir, MERGE_BASE_FILE));
  return file.ok && isJsonObject(file.value) ? file.value : {};
}
