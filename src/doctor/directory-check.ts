/** The data directory on its disk: who may read it, whether it can be written, how full the disk is, how long the log has grown. */
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Finding, failure, fine, type Patient, worry } from "./finding.ts";
import { writeBytes } from "./size-words.ts";

const MIB = 1024 * 1024;
const LEAST_FREE_BYTES = 100 * MIB;
const LITTLE_FREE_BYTES = 1024 * MIB;
/** The server cuts its log to nothing again and again; one that long has a reader that never ends. */
const LONG_LOG_BYTES = 256 * MIB;
const NOT_THE_OWNER = 0o077;

export function checkRights({ dataDir }: Patient): Finding {
  const keyFile = join(dataDir, "master.key");
  if (isOpenToOthers(keyFile)) {
    return failure("data directory", `Others on this machine may read ${keyFile}.`, `chmod 600 ${keyFile}`);
  }
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    const todo = "run this as the user that the server runs as, or give it the folder";
    return failure("data directory", `${dataDir} cannot be written by this user.`, todo);
  }
  // A database that others may read stands behind a folder that they may not enter.
  if (isOpenToOthers(dataDir) && isOpenToOthers(join(dataDir, "relay.db"))) {
    return worry(
      "data directory",
      `Others on this machine may look into ${dataDir}.`,
      `chmod 700 ${dataDir}`,
    );
  }
  return fine("data directory", `${dataDir} is its owner's alone and can be written.`);
}

/** Windows keeps rights in another way, which is not looked at. */
function isOpenToOthers(path: string): boolean {
  return process.platform !== "win32" && existsSync(path) && (statSync(path).mode & NOT_THE_OWNER) !== 0;
}

export function checkDisk({ dataDir }: Patient): Finding {
  const { bavail, bsize } = statfsSync(dataDir);
  const free = bavail * bsize;
  const size = statSync(join(dataDir, "relay.db")).size;
  const message = `${writeBytes(free)} free, the database takes ${writeBytes(size)}.`;
  if (free < LEAST_FREE_BYTES) {
    return failure("disk space", message, "make room: when the disk is full nothing is received");
  }
  if (free < LITTLE_FREE_BYTES || free < 2 * size) {
    return worry("disk space", message, "make room for backups and for the database to grow");
  }
  return fine("disk space", message);
}

export function checkLog({ dataDir }: Patient): Finding {
  const file = join(dataDir, "relay.db-wal");
  const size = existsSync(file) ? statSync(file).size : 0;
  const message = `The write-ahead log takes ${writeBytes(size)}.`;
  if (size < LONG_LOG_BYTES) return fine("log", message);
  return worry(
    "log",
    message,
    "look for a command or a backup that does not end; restarting the server cuts it",
  );
}
