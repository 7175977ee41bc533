/**
 * What local development writes to the files of its folder: whole or not at all, over exactly what was read. What cannot be written is told,
 * stands as a problem, and is tried again at each look; the database has it meanwhile.
 */
import { writeFileSync } from "node:fs";
import { dirname, relative } from "node:path";
import { toIso } from "../../base/clock.ts";
import { fileErrorCode } from "../../base/durable-file.ts";
import type { Json } from "../../base/json.ts";
import { FileChanged, removeUnchangedFile, writeUnchangedFile } from "./file-write.ts";
import { editJson, writeFileText } from "./json-edit.ts";
import type { LocalProblems } from "./local-problem.ts";
import type { LocalDeps } from "./local-secret.ts";

interface FileWrite {
  path: string;
  /** The text that is written over; null: no file. */
  read: string | null;
  /** What the file is to say; null takes it away. */
  value: Json;
  /** What stands there was never in force: it is kept beside. */
  keepsOld: boolean;
  /** Whose note a failure is. */
  target: string;
}

export class LocalWrite {
  /** Whether a file moved while it was to be written: the next look is wanted soon. */
  moved = false;
  readonly #deps: LocalDeps;
  readonly #problems: LocalProblems;

  constructor(deps: LocalDeps, notes: LocalProblems) {
    this.#deps = deps;
    this.#problems = notes;
  }

  /** Answers the file's text as it is now; undefined: it is as it was. */
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

  /** Notes that the file could not be written. */
  recordUnwritten(path: string, target: string, why: string, code = ""): void {
    const short = code === "" ? why : code;
    const message = `${this.formatPath(path)} could not be written (${short}): what was saved is in force, and the file is written as soon as it can be.`;
    if (this.#problems.set("file_behind", target, message)) this.#deps.print(message);
  }

  /** The file as lines name it: `service/relays/checkout.json`. */
  formatPath(path: string): string {
    return relative(dirname(this.#deps.serviceDir), path);
  }

  #copyOriginal(path: string, text: string): void {
    const kept = `${path}.${toIso(this.#deps.clock.now()).replaceAll(/[:.]/g, "-")}.orig`;
    writeFileSync(kept, text, { flag: "wx" });
    this.#deps.print(
      `${this.formatPath(path)} was edited too, before the dashboard's edit: what it said is kept in ${this.formatPath(kept)}`,
    );
  }
}
