/**
 * The local secrets file `service/.secrets.json`, excluded from version control: the secrets of local development by relay name, and those
 * that servers created at a sync. It is written atomically, one change after another, and sync never uploads it. Source: the specification's
 * "Secrets"; decisions, section 1.
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

/** Secrets by relay name. */
type Secrets = Map<string, LocalSecrets>;

/** The file's content: secrets of local development, and of servers by `<address>/<app>/<environment>`. */
interface SecretsFile {
  local: Secrets;
  servers: Map<string, Secrets>;
}

/** Part of every server key and of no relay name. */
const IN_ADDRESS = "://";

/** Reads the secrets of local development; empty if there is no file. Throws `invalid_input` for an unreadable file. */
export async function readLocalSecrets(serviceDir: string): Promise<Secrets> {
  const text = await readIfThere(join(serviceDir, SECRETS_FILE));
  return text === null ? new Map() : parseSecrets(text).local;
}

/** Reads the secrets that a server created, for the first of these places that the file names. */
export async function readServerSecrets(serviceDir: string, places: readonly string[]): Promise<Secrets> {
  const text = await readIfThere(join(serviceDir, SECRETS_FILE));
  const { servers } = text === null ? { servers: new Map<string, Secrets>() } : parseSecrets(text);
  return places.map((place) => servers.get(place)).find((contents) => contents !== undefined) ?? new Map();
}

/** The last pending change by directory, so that changes run one after another. */
const pendingEdits = new Map<string, Promise<void>>();

/** Sets the given secrets of a relay and keeps its others. Creates the file and its line in .gitignore if needed. */
export function setLocalSecrets(serviceDir: string, relayName: string, secrets: LocalSecrets): Promise<void> {
  return editFile(serviceDir, ({ local }) => mergeSecrets(local, relayName, secrets));
}

/** Sets the secrets that a server created for its relays, as `setLocalSecrets`. */
export function setServerSecrets(
  serviceDir: string,
  server: string,
  secrets: ReadonlyMap<string, LocalSecrets>,
): Promise<void> {
  return editFile(serviceDir, ({ servers }) => {
    const contents: Secrets = servers.get(server) ?? new Map();
    for (const [name, made] of secrets) mergeSecrets(contents, name, made);
    servers.set(server, contents);
  });
}

function mergeSecrets(contents: Secrets, name: string, secrets: LocalSecrets): void {
  contents.set(name, { ...contents.get(name), ...secrets });
}

async function editFile(serviceDir: string, edit: (contents: SecretsFile) => void): Promise<void> {
  const set = () => editFileNow(serviceDir, edit);
  const work = (pendingEdits.get(serviceDir) ?? Promise.resolve()).then(set, set);
  pendingEdits.set(serviceDir, work);
  try {
    await work;
  } finally {
    if (pendingEdits.get(serviceDir) === work) pendingEdits.delete(serviceDir);
  }
}

async function editFileNow(serviceDir: string, edit: (contents: SecretsFile) => void): Promise<void> {
  const path = join(serviceDir, SECRETS_FILE);
  const before = await readIfThere(path);
  const contents: SecretsFile =
    before === null ? { local: new Map(), servers: new Map() } : parseSecrets(before);
  edit(contents);
  if (before === null) {
    await mkdir(serviceDir, { recursive: true });
    await addToGitignore(serviceDir, SECRETS_FILE);
  }
  const servers = sorted(contents.servers).map(([server, secrets]) => [
    server,
    Object.fromEntries(sorted(secrets)),
  ]);
  const all = Object.fromEntries([...sorted(contents.local), ...servers]);
  const text = `${JSON.stringify(all, null, 2)}\n`;
  if (text !== before) writeOwnFile(path, text, { replace: true });
}

function sorted<Value>(map: ReadonlyMap<string, Value>): [name: string, Value][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1));
}

function parseSecrets(text: string): SecretsFile {
  const contents: SecretsFile = { local: new Map(), servers: new Map() };
  for (const [name, entry] of Object.entries(parseObject(text))) {
    if (!isJsonObject(entry)) throw rejectUnreadable();
    if (!name.includes(IN_ADDRESS)) contents.local.set(name, readEntry(entry));
    else
      contents.servers.set(
        name,
        new Map(Object.entries(entry).map(([relay, one]) => [relay, readEntry(one)])),
      );
  }
  return contents;
}

function readEntry(entry: unknown): LocalSecrets {
  if (!isJsonObject(entry)) throw rejectUnreadable();
  const secrets: LocalSecrets = {};
  for (const field of ["receiverSecret", "signingSecret"] as const) {
    const value = entry[field];
    if (value === undefined) continue;
    if (typeof value !== "string") throw rejectUnreadable();
    secrets[field] = value;
  }
  return secrets;
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw rejectUnreadable();
  }
  if (!isJsonObject(value)) throw rejectUnreadable();
  return value;
}

function rejectUnreadable(): Refusal {
  return new Refusal(
    "invalid_input",
    `${SECRETS_FILE} is not a JSON object of relay names with receiverSecret and signingSecret: fix it, or remove it and rotate the secrets.`,
  );
}

function rejectUnusable(path: string): Refusal {
  return new Refusal(
    "invalid_input",
    `${path} is not a file of at most 1 MiB: remove it, and rotate the secrets if it contained them.`,
  );
}

/** Adds a file of the service directory to its .gitignore. Throws `invalid_input` if .gitignore is a link. */
export async function addToGitignore(serviceDir: string, file: string): Promise<void> {
  const path = join(serviceDir, IGNORE_FILE_NAME);
  const text = (await readIfThere(path)) ?? "";
  if (text.split(/\r?\n/).includes(file)) return;
  // A link may point to a file that the user does not want to be changed.
  if (await isLink(path)) {
    throw new Refusal(
      "invalid_input",
      `${path} is a link, and the service does not write through links: add the line ${file} to the target of the link, or remove the link.`,
    );
  }
  const gap = text === "" || text.endsWith("\n") ? "" : "\n";
  // The second line covers a temporary file that a crash left.
  await writeFile(path, `${text}${gap}${file}\n${file}.*\n`);
}

async function isLink(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  return found?.isSymbolicLink() === true;
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    const found = await stat(path);
    // Opening a pipe blocks, and a device has no end.
    if (!found.isFile() || found.size > MAX_FILE_BYTES) throw rejectUnusable(path);
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
