/**
 * The local secrets file `service/.secrets.json`: the secrets the service made in local development, by relay name, and those that servers made at a sync, kept out of version
 * control. It is written whole or not at all, one change after the other; it never leaves this machine, and sync never reads it.
 * Source: the specification's "Secrets"; decisions, section 1.
 */
import { lstat, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeOwnFile } from "../../base/durable-file.ts";
import { isJsonObject } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";

export interface LocalSecrets {
  receiverSecret?: string;
  signingSecret?: string;
}

export const SECRETS_FILE = ".secrets.json";
const IGNORE_FILE_NAME = ".gitignore";
const MAX_FILE_BYTES = 1024 * 1024;

/** By relay. */
type Secrets = Map<string, LocalSecrets>;

/** The secrets of local development, and those that servers made when files were synced to them, by `<address>/<app>/<environment>`. */
interface Held {
  local: Secrets;
  servers: Map<string, Secrets>;
}

/** What a relay's name never holds. */
const IN_ADDRESS = "://";

/** What the file holds for every relay here; nothing when there is no file. Refuses with `invalid_input` a file that cannot be read. */
export async function readLocalSecrets(serviceDir: string): Promise<Secrets> {
  const text = await readIfThere(join(serviceDir, SECRETS_FILE));
  return text === null ? new Map() : parseSecrets(text).local;
}

/** The same of what a server made, at the first of these places that the file names. */
export async function readServerSecrets(serviceDir: string, places: readonly string[]): Promise<Secrets> {
  const text = await readIfThere(join(serviceDir, SECRETS_FILE));
  const { servers } = text === null ? { servers: new Map<string, Secrets>() } : parseSecrets(text);
  return places.map((place) => servers.get(place)).find((held) => held !== undefined) ?? new Map();
}

/** The last change under way for each directory, so that two never read the same state. */
const underWay = new Map<string, Promise<void>>();

/** Sets the given secrets of a relay and keeps its others; creates the file, and its line in .gitignore, where there is none. */
export function setLocalSecrets(serviceDir: string, relayName: string, secrets: LocalSecrets): Promise<void> {
  return change(serviceDir, ({ local }) => put(local, relayName, secrets));
}

/** As `setLocalSecrets`, what a server made for its relays. */
export function setServerSecrets(
  serviceDir: string,
  server: string,
  secrets: ReadonlyMap<string, LocalSecrets>,
): Promise<void> {
  return change(serviceDir, ({ servers }) => {
    const held: Secrets = servers.get(server) ?? new Map();
    for (const [name, made] of secrets) put(held, name, made);
    servers.set(server, held);
  });
}

function put(held: Secrets, name: string, secrets: LocalSecrets): void {
  held.set(name, { ...held.get(name), ...secrets });
}

async function change(serviceDir: string, edit: (held: Held) => void): Promise<void> {
  const set = () => changeNow(serviceDir, edit);
  const work = (underWay.get(serviceDir) ?? Promise.resolve()).then(set, set);
  underWay.set(serviceDir, work);
  try {
    await work;
  } finally {
    if (underWay.get(serviceDir) === work) underWay.delete(serviceDir);
  }
}

async function changeNow(serviceDir: string, edit: (held: Held) => void): Promise<void> {
  const path = join(serviceDir, SECRETS_FILE);
  const before = await readIfThere(path);
  const held: Held = before === null ? { local: new Map(), servers: new Map() } : parseSecrets(before);
  edit(held);
  if (before === null) {
    await mkdir(serviceDir, { recursive: true });
    await keepOutOfGit(serviceDir, SECRETS_FILE);
  }
  const servers = sorted(held.servers).map(([server, secrets]) => [
    server,
    Object.fromEntries(sorted(secrets)),
  ]);
  const all = Object.fromEntries([...sorted(held.local), ...servers]);
  const text = `${JSON.stringify(all, null, 2)}\n`;
  if (text !== before) writeOwnFile(path, text, { replace: true });
}

function sorted<Value>(map: ReadonlyMap<string, Value>): [name: string, Value][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1));
}

function parseSecrets(text: string): Held {
  const held: Held = { local: new Map(), servers: new Map() };
  for (const [name, entry] of Object.entries(parseObject(text))) {
    if (!isJsonObject(entry)) throw unreadable();
    if (!name.includes(IN_ADDRESS)) held.local.set(name, readEntry(entry));
    else
      held.servers.set(name, new Map(Object.entries(entry).map(([relay, one]) => [relay, readEntry(one)])));
  }
  return held;
}

function readEntry(entry: unknown): LocalSecrets {
  if (!isJsonObject(entry)) throw unreadable();
  const secrets: LocalSecrets = {};
  for (const field of ["receiverSecret", "signingSecret"] as const) {
    const value = entry[field];
    if (value === undefined) continue;
    if (typeof value !== "string") throw unreadable();
    secrets[field] = value;
  }
  return secrets;
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

/** Adds a file of the service directory to its .gitignore. */
export async function keepOutOfGit(serviceDir: string, file: string): Promise<void> {
  const path = join(serviceDir, IGNORE_FILE_NAME);
  const text = (await readIfThere(path)) ?? "";
  if (text.split(/\r?\n/).includes(file)) return;
  // What a link names may lie anywhere, and whoever placed the link may have meant a file that is not theirs to change.
  if (await isLink(path)) {
    throw new Refusal(
      "invalid_input",
      `${path} is a link, and nothing is written through one: add the line ${file} to the file it names, or remove the link.`,
    );
  }
  const gap = text === "" || text.endsWith("\n") ? "" : "\n";
  // The second line covers a draft that a crash left behind.
  await writeFile(path, `${text}${gap}${file}\n${file}.*\n`);
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
