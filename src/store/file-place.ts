/**
 * Whether an open database still stands where it was opened. Somebody may delete, move or replace the folder or a file of it under a running
 * server: SQLite writes on into files that nobody will ever find, so that what is acknowledged then is lost. It never opens or makes a file.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileErrorCode } from "../ground/durable-file.ts";
import { DatabaseRefused } from "./database-file.ts";

/** The database, its log, and the log's index: without any of them another process would read and write past this one. */
const ENDINGS = ["", "-wal", "-shm"];

/** Which file a path names: one that is moved along with its name keeps it, a copy or a new one is another. "": none is there. */
export function identityOf(file: string): string {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}`;
}

export class FilePlace {
  readonly #opened: readonly { file: string; identity: string }[];
  readonly #onChange: (trouble: string | null) => void;
  #trouble: string | null = null;

  /** `file` is open for writing already. `onChange` is told when it is found moved, and when it is back. */
  constructor(file: string, onChange: (trouble: string | null) => void) {
    this.#opened = ENDINGS.map((ending) => ({
      file: file + ending,
      identity: identityOf(file + ending),
    })).filter(({ identity }) => identity !== "");
    this.#onChange = onChange;
  }

  /** As it was found last. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Looks: null, or what is wrong in a sentence. A few microseconds. */
  look(): string | null {
    const trouble = this.#findTrouble();
    if (trouble === this.#trouble) return trouble;
    this.#trouble = trouble;
    this.#onChange(trouble);
    return trouble;
  }

  #findTrouble(): string | null {
    for (const { file, identity } of this.#opened) {
      const now = lookUp(file);
      if (now === identity) continue;
      const what = now === "" ? "is not there any more" : "is another file than the one that was opened";
      return `${file} ${what}, so nothing is recorded: put back what was there, or restore a backup and start the server again.`;
    }
    return null;
  }
}

/**
 * Refuses a directory that has lost its database but not what belonged to it: a new, empty one would take its place unnoticed. Throws
 * DatabaseRefused with the sentence.
 */
export function refuseLostDatabase(dataDir: string): void {
  const file = join(dataDir, "relay.db");
  if (existsSync(file)) return;
  const left = [`${file}-wal`, join(dataDir, "master.key")].find((other) => existsSync(other));
  if (left === undefined) return;
  throw new DatabaseRefused(
    "missing",
    `${left} is here without its relay.db: put the database back (relay restore does it with a backup), or move ${left} out of ${dirname(left)} to begin anew with an empty one.`,
  );
}

function lookUp(file: string): string {
  try {
    return identityOf(file);
  } catch (error) {
    return `unknown (${fileErrorCode(error)})`;
  }
}
