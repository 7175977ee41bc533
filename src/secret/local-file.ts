/**
 * The local secrets file `service/.secrets.json`: the secrets the service made in local development, by relay name, kept out of version
 * control. It is written whole or not at all, one change after the other; it never leaves this machine, and sync never reads it.
 * Source: the specification's "Secrets"; decisions, section 1.
 */
import { lstat, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeOwnFile } from "../ground/durable-file.ts";
import { isJsonObject } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";

export interface LocalSecrets {
  receiverSecret?: string;
  signingSecret?: string;
}

export const SECRETS_FILE = ".secrets.json";
const IGNORE_FILE_NAME = ".gitignore";
const MAX_FILE_BYTES = 1024 * 1024;

/** What the file holds for every relay; nothing when there is no file. Refuses with `invalid_input` a file that cannot be read. */
export async function readLocalSecrets(serviceDir: string): Promise<Map<string, LocalSecrets>> {
  const text = await readIfThere(join(serviceDir, SECRETS_FILE));
  return text === null ? new Map() : parseSecrets(text);
}

/** The last change under way for each directory, so that two never read the same state. */
const underWay = new Map<string, Promise<void>>();

/** Sets the given secrets of a relay and keeps its others; creates the file, and its line in .gitignore, where there is none. */
export async function setLocalSecrets(
  serviceDir: string,
  relayName: string,
  secrets: LocalSecrets,
): Promise<void> {
  const set = () => setNow(serviceDir, relayName, secrets);
  const work = (underWay.get(serviceDir) ?? Promise.resolve()).then(set, set);
  underWay.set(serviceDir, work);
  try {
    await work;
  } finally {
    if (underWay.get(serviceDir) === work) underWay.delete(serviceDir);
  }
}

async function setNow(serviceDir: string, relayName: string, secrets: LocalSecrets): Promise<void> {
  const path = join(serviceDir, SECRETS_FILE);
  const before = await readIfThere(path);
  const all = before === null ? new Map<string, LocalSecrets>() : parseSecrets(before);
  all.set(relayName, { ...all.get(relayName), ...secrets });
  if (before === null) {
    await mkdir(serviceDir, { recursive: true });
    await ignoreFile(serviceDir);
  }
  const names = [...all.keys()].sort();
  const sorted = Object.fromEntries(names.map((name) => [name, all.get(name)]));
  const text = `${JSON.stringify(sorted, null, 2)}\n`;
  if (text !== before) writeOwnFile(path, text, { replace: true });
}

function parseSecrets(text: string): Map<string, LocalSecrets> {
  const all = new Map<string, LocalSecrets>();
  for (const [name, entry] of Object.entries(parseObject(text))) {
    if (!isJsonObject(entry)) throw unreadable();
    const secrets: LocalSecrets = {};
    for (const field of ["receiverSecret", "signingSecret"] as const) {
      const value = entry[field];
      if (value === undefined) continue;
      if (typeof value !== "string") throw unreadable();
      secrets[field] = value;
    }
    all.set(name, secrets);
  }
  return all;
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unreadable();
  }
  if (!isJsonObject(value)) throw unreadable();
  return value;
}

function unreadable(): Refusal {
  return new Refusal(
    "invalid_input",
    `${SECRETS_FILE} is not a JSON object of relay names with receiverSecret and signingSecret: mend it, or remove it and rotate the secrets.`,
  );
}

function unusable(path: string): Refusal {
  return new Refusal(
    "invalid_input",
    `${path} is no file of at most 1 MiB: remove what lies there, and rotate the secrets if it was they.`,
  );
}

async function ignoreFile(serviceDir: string): Promise<void> {
  const path = join(serviceDir, IGNORE_FILE_NAME);
  const text = (await readIfThere(path)) ?? "";
  if (text.split(/\r?\n/).includes(SECRETS_FILE)) return;
  // What a link names may lie anywhere, and whoever placed the link may have meant a file that is not theirs to change.
  if (await isLink(path)) {
    throw new Refusal(
      "invalid_input",
      `${path} is a link, and nothing is written through one: add the line ${SECRETS_FILE} to the file it names, or remove the link.`,
    );
  }
  const gap = text === "" || text.endsWith("\n") ? "" : "\n";
  // The second line covers a draft that a crash left behind.
  await writeFile(path, `${text}${gap}${SECRETS_FILE}\n${SECRETS_FILE}.*\n`);
}

async function isLink(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  return found?.isSymbolicLink() === true;
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    const found = await stat(path);
    // Opening a pipe waits for ever, and a device has no end.
    if (!found.isFile() || found.size > MAX_FILE_BYTES) throw unusable(path);
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
