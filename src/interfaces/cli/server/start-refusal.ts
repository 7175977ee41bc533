/**
 * Explains why a service could not start: its data directory, a file there, or the address to listen on. It checks the machine only after a
 * failure, so a successful start pays nothing.
 */
import { closeSync, lstatSync, openSync, rmSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileErrorCode } from "../../../base/durable-file.ts";
import { CommandFailure } from "../command.ts";
import type { World } from "../io.ts";

/** The files that a start opens for reading and writing. */
const OPENED = ["runner.lock", "relay.db", "relay.db-wal", "relay.db-shm"];

/** Explains why the data directory cannot be used. Returns null for any other error. */
export function explainDirectory(error: unknown, folder: string, world: World): CommandFailure | null {
  if (isListening(error)) return null;
  const code = codeOf(error);
  const fails = (message: string): CommandFailure => new CommandFailure("file_unusable", message);
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
    return new CommandFailure(
      "database_refused",
      `${join(folder, "relay.db")} is damaged or no database: relay doctor looks the directory over, and relay restore puts a backup in its place.`,
    );
  if (code === "EROFS") return fails(readOnly(folder));
  if (/^SQLITE_(READONLY|CANTOPEN)|^(EACCES|EPERM|EISDIR)$/.test(code) && process.geteuid !== undefined) {
    const said = isThere(folder) ? explainStanding(folder, world) : explainMissing(folder, world);
    return said === null ? null : fails(said);
  }
  if (/^(EEXIST|ENOTDIR|ENOENT|ELOOP)$/.test(code)) {
    const said = explainNoFolder(folder);
    return said === null ? null : fails(said);
  }
  return null;
}

const ANOTHER = "name another folder with --data-dir";

/** Explains why the data directory cannot be created. */
function explainMissing(folder: string, world: World): string {
  const above = nearest(dirname(folder));
  const me = account(world);
  return `The data directory ${folder} is not there, and ${me} may not make it: ${above} belongs to ${ownerOf(statSync(above))}. Make it once with sudo install -d -m 700 -o ${me} ${quote(folder)}, or ${ANOTHER}.`;
}

/** Explains why an existing data directory, or a file in it, cannot be used. */
function explainStanding(folder: string, world: World): string | null {
  const me = account(world);
  const stats = statSync(folder);
  if (!stats.isDirectory()) return explainNoFolder(folder);
  const writing = tryToWrite(folder);
  if (writing === "EROFS") return readOnly(folder);
  const give = `sudo chown -R ${me} ${quote(folder)}`;
  for (const name of OPENED) {
    const file = join(folder, name);
    const code = tryToOpen(file);
    if (code === "EISDIR")
      return `${file} is a folder where a file has to be: move it away (an empty one is what a container makes of a mount that is not there), or ${ANOTHER}.`;
    if (code !== "EACCES" && code !== "EPERM") continue;
    if (!isThere(file)) break;
    return isMine(statSync(file))
      ? `${file} has no right to be read and written by ${me}, whose it is: give it with chmod u+rw ${quote(file)}.`
      : `${file} belongs to ${ownerOf(statSync(file))}, and ${me} may not read and write it: a command that was run as another user (with sudo, say) made it. Give all of it to ${me} with ${give}.`;
  }
  if (writing === "") return null;
  return isMine(stats)
    ? `The data directory ${folder} may not be written by ${me}, whose it is: give the right with chmod u+rwx ${quote(folder)}.`
    : `The data directory ${folder} belongs to ${ownerOf(stats)}, and ${me} may not write there: give it to ${me} with ${give}, or ${ANOTHER}.`;
}

/** Explains that the path contains a file or a broken link instead of a folder. */
function explainNoFolder(folder: string): string | null {
  for (let path = folder; ; path = dirname(path)) {
    if (isThere(path) && statOf(path) === null)
      return `${path} is a link that leads nowhere: put back what it leads to, such as a disk that is not mounted, or ${ANOTHER}.`;
    const found = statOf(path);
    if (found !== null && !found.isDirectory())
      return path === folder
        ? `${folder} is a file, and the data directory is a folder: move the file away, or ${ANOTHER}.`
        : `The data directory ${folder} cannot be made, because ${path} is a file and no folder: move it away, or ${ANOTHER}.`;
    if (found !== null || path === dirname(path)) return null;
  }
}

const readOnly = (folder: string): string =>
  `The data directory ${folder} is on a file system that takes no writing: in a container put a volume there, under systemd name it in StateDirectory= or ReadWritePaths=, elsewhere mount it for writing, or ${ANOTHER}.`;

/** Explains why the address and port cannot be used. Returns null for any other error. */
export function explainListening(
  error: unknown,
  { host, port }: { host: string; port: number },
  world: World,
): CommandFailure | null {
  if (!isListening(error)) return null;
  const fails = (message: string): CommandFailure => new CommandFailure("address_taken", message);
  switch (fileErrorCode(error)) {
    case "EADDRNOTAVAIL":
      return fails(
        `${host} is no address of this machine, so nothing can be listened on there: with --host name one that it has, 127.0.0.1 behind a proxy on this machine or 0.0.0.0 for all of them.`,
      );
    case "EACCES":
    case "EPERM":
      return fails(
        `Port ${port} of ${host} needs a right that ${account(world)} has not, as ports below 1024 usually do: choose a higher one with --port and let a proxy listen on ${port}, or give the right (AmbientCapabilities=CAP_NET_BIND_SERVICE under systemd).`,
      );
    case "EADDRINUSE":
      return fails(
        `Port ${port} of ${host} is in use: stop what listens there, or choose another with --port.`,
      );
    default:
      return fails(
        `${host} port ${port} cannot be listened on (${fileErrorCode(error)}): choose an address of this machine with --host and a port that you may open with --port.`,
      );
  }
}

export function isPortTaken(error: unknown): boolean {
  return fileErrorCode(error) === "EADDRINUSE";
}

/** Returns the code of the error or of its cause. */
function codeOf(error: unknown): string {
  return (
    fileErrorCode(error) || (error instanceof Error && error.cause !== undefined ? codeOf(error.cause) : "")
  );
}

/** Reports whether the error is about listening. Files fail with the same codes. */
function isListening(error: unknown): boolean {
  return isPortTaken(error) || (error as { syscall?: unknown } | null)?.syscall === "listen";
}

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function statOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

/** Returns the nearest existing folder: the path itself or one above it. */
function nearest(path: string): string {
  let found = path;
  while (statOf(found) === null && found !== dirname(found)) found = dirname(found);
  return found;
}

/** Returns the code of the error when it opens the file for reading and writing, or an empty string. */
function tryToOpen(file: string): string {
  try {
    closeSync(openSync(file, "r+"));
    return "";
  } catch (error) {
    return fileErrorCode(error);
  }
}

/** Returns the code of the error when it creates a file in the folder, or an empty string. */
function tryToWrite(folder: string): string {
  const file = join(folder, `.relay-look-${process.pid}`);
  try {
    closeSync(openSync(file, "wx"));
    rmSync(file);
    return "";
  } catch (error) {
    return fileErrorCode(error);
  }
}

function isMine({ uid }: Stats): boolean {
  return uid === process.geteuid?.();
}

/** Formats the owner of a file. It knows only root by name, because the process has no table of user names. */
function ownerOf({ uid }: Stats): string {
  return uid === 0 ? "root" : `user ${uid}`;
}

/** Returns the user who runs this command, in the form that chown accepts. */
function account({ machine }: World): string {
  const id = process.geteuid?.();
  return id === process.getuid?.() && !/^(unknown)?$/.test(machine.account)
    ? machine.account
    : String(id ?? "this user");
}

/** Quotes a path for a shell. */
function quote(path: string): string {
  return /^[\w./:@-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
