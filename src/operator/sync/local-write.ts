/**
 * Writes the files of local development: atomically, and only over the content that was read. A failed write is printed, shown as a
 * problem, and retried at each run. Meanwhile the database has the content.
 */
import { existsSync, writeFileSync } from "node:fs";
import { dirname, relative } from "node:path";
import { toIso } from "../../base/clock.ts";
import { fileErrorCode } from "../../base/durable-file.ts";
import type { Json } from "../../base/json.ts";
import { FileChanged, removeUnchangedFile, writeUnchangedFile } from "./file-write.ts";
import { editJson, writeFileText } from "./json-edit.ts";
import type { LocalProblems } from "./local-problem.ts";
import type { LocalDeps } from "./local-secret.ts";
import { listSynced } from "./synced.ts";

interface FileWrite {
  path: string;
  /** The text that is replaced; null for no file. */
  read: string | null;
  /** The new content; null removes the file. */
  value: Json;
  /** True if the old content was never in force, so that a copy of it is saved. */
  keepsOld: boolean;
  /** The target of the problem if the write fails. */
  target: string;
}

export class LocalWrite {
  /** True if a file changed during a write, so that the next run comes soon. */
  moved = false;
  readonly #deps: LocalDeps;
  readonly #problems: LocalProblems;

  constructor(deps: LocalDeps, notes: LocalProblems) {
    this.#deps = deps;
    this.#problems = notes;
  }

  /** Returns the file's new text; undefined if it is unchanged. */
  write({ path, read, value, keepsOld, target }: FileWrite): string | null | undefined {
    try {
      const text = value === null ? null : read === null ? writeFileText(value) : editJson(read, value);
      if (keepsOld && read !== null) this.#copyOriginal(path, read);
      if (text !== null) writeUnchangedFile(path, read, text);
      else if (read !== null) removeUnchangedFile(path, read);
      if (this.#problems.clear("file_behind", target))
        this.#deps.print(`${this.formatPath(path)}: written now`);
      return text;
    } catch (error) {
      if (error instanceof FileChanged) this.moved = true;
      else this.recordUnwritten(path, target, (error as Error).message, fileErrorCode(error));
      return undefined;
    }
  }

  /** Records that the file could not be written. */
  recordUnwritten(path: string, target: string, why: string, code = ""): void {
    const short = code === "" ? why : code;
    const message = `${this.formatPath(path)} could not be written (${short}): what was saved is in force, and the file is written as soon as it can be.`;
    if (this.#problems.set("file_behind", target, message)) this.#deps.print(message);
  }

  /** Formats the file's path for a line: `service/relays/checkout.json`. */
  formatPath(path: string): string {
    return relative(dirname(this.#deps.serviceDir), path);
  }

  #copyOriginal(path: string, text: string): void {
    const copy = `${path}.${toIso(this.#deps.clock.now()).replaceAll(/[:.]/g, "-")}.orig`;
    writeFileSync(copy, text, { flag: "wx" });
    this.#deps.print(
      `${this.formatPath(path)} was edited too, before the dashboard's edit: what it said is kept in ${this.formatPath(copy)}`,
    );
  }
}

/** Reports whether the service directory is missing although it had files. The user who moved it will put it back. */
export async function isFolderMovedAway({ store, environment, serviceDir }: LocalDeps): Promise<boolean> {
  if (existsSync(serviceDir)) return false;
  return (await store.read((tx) => listSynced(tx, environment.id))).size > 0;
}
