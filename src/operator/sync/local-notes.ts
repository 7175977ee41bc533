/** What is wrong between the files of local development and what is in force: told when it begins, and shown as problems until it is right. */
import { clearProblem, listProblems, raiseProblem } from "../../platform/audit/problem.ts";
import type { LocalDeps } from "./local-secret.ts";

const MAX_PAGE = { limit: 200, after: null };
/** A file that is not in force, the catalog's likewise, what could not be written to a file, and a folder that is away. */
const CODES = ["definition_broken", "catalog_broken", "file_behind", "folder_away"] as const;
type NoteCode = (typeof CODES)[number];

export const CATALOG_TARGET = "catalog";
export const FOLDER_TARGET = "service";

export class LocalNotes {
  readonly #deps: LocalDeps;
  readonly #notes = new Map<NoteCode, Map<string, string>>(CODES.map((code) => [code, new Map()]));
  /** As the problems were settled last; null: never. */
  #settled: string | null = null;

  constructor(deps: LocalDeps) {
    this.#deps = deps;
  }

  of(code: NoteCode): ReadonlyMap<string, string> {
    return this.#notes.get(code) ?? new Map();
  }

  /** Answers whether it says something new. */
  set(code: NoteCode, target: string, message: string): boolean {
    const notes = this.#notes.get(code);
    const isNew = notes?.get(target) !== message;
    notes?.set(target, message);
    return isNew;
  }

  /** Answers whether it stood. */
  clear(code: NoteCode, target: string): boolean {
    return this.#notes.get(code)?.delete(target) === true;
  }

  /** The dashboard's problems become what is wrong now. */
  async settle(): Promise<void> {
    const wrong = [...this.#notes].flatMap(([code, notes]) =>
      [...notes].map((one) => [code, ...one] as const),
    );
    const words = JSON.stringify(wrong);
    if (words === this.#settled) return;
    const { store, environment, clock } = this.#deps;
    const environmentId = environment.id;
    const nowMs = clock.now();
    await store.write("dashboard", async (tx) => {
      const standing = (await listProblems(tx, environmentId, true, MAX_PAGE)).items;
      for (const { code, target } of standing) {
        const ours = CODES.find((one) => one === code);
        if (ours !== undefined && !this.of(ours).has(target))
          await clearProblem(tx, { environmentId, code, target, nowMs });
      }
      for (const [code, target, message] of wrong)
        await raiseProblem(tx, { environmentId, code, target, message, nowMs });
    });
    this.#settled = words;
  }
}
