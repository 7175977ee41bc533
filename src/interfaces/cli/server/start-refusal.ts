/**
 * Explains why a service could not start: its data directory, a file there, or the address to listen on. It checks the machine only after a
 * failure, so a successful start pays nothing.
 */
import { closeSync, lstatSync, openSync, rmSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileErrorCode } from "../../../base/durable-file.ts";
import { CommandFailure } from "../command.ts";
import type { Io } from "../io.ts";

/** The files that a start opens for reading and writing. */
const OPENED = ["runner.lock", "relay.db", "relay.db-wal", "relay.db-shm"];

/** Explains why the data directory cannot be used. Returns null for any other error. */
export function explainDirectory(error: unknown, folder: string, io: Io): CommandFailure | null {
  if (isListening(error)) return null;
  const code = codeOf(error);
  const fails = (message: string): CommandFailure => new CommandFailure("file_unusable", message);
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
    return new CommandFailure(
      "database_refused",
      `${join(folder, "relay.db")} is damaged or not a database: check the directory with relay doctor, and restore a backup with relay restore.`,
    );
  if (code === "EROFS") return fails(readOnly(folder));
  if (/^SQLITE_(READONLY|CANTOPEN)|^(EACCES|EPERM|EISDIR)$/.test(code) && io.system.hasModes) {
    const explanation = isThere(folder) ? explainExisting(folder, io) : explainMissing(folder, io);
    return explanation === null ? null : fails(explanation);
  }
  if (/^(EEXIST|ENOTDIR|ENOENT|ELOOP)$/.test(code)) {
    const explanation = explainNoFolder(folder);
    return explanation === null ? null : fails(explanation);
  }
  return null;
}

/** Explains why a command cannot write: the first write shows that a file is read-only, because reads work. Returns null for any other error. */
export function explainWrite(error: unknown, folder: string, io: Io): CommandFailure | null {
  return codeOf(error).startsWith("SQLITE_READONLY") ? explainDirectory(error, folder, io) : null;
}

const ANOTHER = "name another folder with --data-dir";

/** Explains why the data directory cannot be created. */
function explainMissing(folder: string, io: Io): string {
  const above = nearest(dirname(folder));
  const me = account(io);
  return `The data directory ${folder} does not exist, and ${me} may not create it: ${above} belongs to ${ownerOf(statSync(above))}. Create it once with sudo install -d -m 700 -o ${me} ${io.system.quote(folder)}, or ${ANOTHER}.`;
}

/** Explains why an existing data directory, or a file in it, cannot be used. */
function explainExisting(folder: string, io: Io): string | null {
  const me = account(io);
  const stats = statSync(folder);
  if (!stats.isDirectory()) return explainNoFolder(folder);
  const writing = tryToWrite(folder);
  if (writing === "EROFS") return readOnly(folder);
  const give = `sudo chown -R ${me} ${io.system.quote(folder)}`;
  for (const name of OPENED) {
    const file = join(folder, name);
    const code = tryToOpen(file);
    if (code === "EISDIR")
      return `${file} is a folder, but must be a file: move the folder away, or ${ANOTHER}. A container creates an empty folder for a mount that does not exist.`;
    if (code !== "EACCES" && code !== "EPERM") continue;
    if (!isThere(file)) break;
    return isMine(statSync(file))
      ? `${me} owns ${file} but may not read and write it: run chmod u+rw ${io.system.quote(file)}.`
      : `${file} belongs to ${ownerOf(statSync(file))}, and ${me} may not read and write it. Another user's command created it, perhaps with sudo. Give the directory to ${me} with ${give}.`;
  }
  if (writing === "") return null;
  return isMine(stats)
    ? `${me} owns the data directory ${folder} but may not write there: run chmod u+rwx ${io.system.quote(folder)}.`
    : `The data directory ${folder} belongs to ${ownerOf(stats)}, and ${me} may not write there: give it to ${me} with ${give}, or ${ANOTHER}.`;
}

/** Explains that the path contains a file or a broken link instead of a folder. */
function explainNoFolder(folder: string): string | null {
  for (let path = folder; ; path = dirname(path)) {
    if (isThere(path) && statOf(path) === null)
      return `${path} is a link to a path that does not exist: mount or restore the target of the link, or ${ANOTHER}.`;
    const found = statOf(path);
    if (found !== null && !found.isDirectory())
      return path === folder
        ? `${folder} is a file, but the data directory must be a folder: move the file away, or ${ANOTHER}.`
        : `The data directory ${folder} cannot be created, because ${path} is a file: move the file away, or ${ANOTHER}.`;
    if (found !== null || path === dirname(path)) return null;
  }
}

const readOnly = (folder: string): string =>
  `The data directory ${folder} is on a read-only file system. In a container, mount a volume there. Under systemd, name it in StateDirectory= or ReadWritePaths=. Otherwise mount it for writing, or ${ANOTHER}.`;

/** Explains why the address and port cannot be used. Returns null for any other error. */
export function explainListening(
  error: unknown,
  { host, port }: { host: string; port: number },
  io: Io,
): CommandFailure | null {
  if (!isListening(error)) return null;
  const fails = (message: string): CommandFailure => new CommandFailure("address_taken", message);
  switch (fileErrorCode(error)) {
    case "EADDRNOTAVAIL":
      return fails(
        `${host} is not an address of this machine: name another with --host. Use 127.0.0.1 behind a proxy on this machine, or 0.0.0.0 for all addresses.`,
      );
    case "EACCES":
    case "EPERM":
      return fails(
        `${account(io)} may not listen on port ${port} of ${host}, as is usual for ports below 1024. Choose a higher port with --port and let a proxy listen on ${port}. Or allow it, under systemd with AmbientCapabilities=CAP_NET_BIND_SERVICE.`,
      );
    case "EADDRINUSE":
      return fails(
        `Port ${port} of ${host} is in use: stop the program that listens there, or choose another port with --port.`,
      );
    default:
      return fails(
        `The server cannot listen on ${host} port ${port} (${fileErrorCode(error)}): choose an address of this machine with --host and another port with --port.`,
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
function account({ machine }: Io): string {
  const id = process.geteuid?.();
  return id === process.getuid?.() && !/^(unknown)?$/.test(machine.account)
    ? machine.account
    : String(id ?? "this user");
}
