/** The problems between the files of local development and what is in force. They are shown in the dashboard until they are fixed. */
import { clearProblem, listProblems, raiseProblem } from "../../platform/audit/problem.ts";
import type { LocalDeps } from "./local-secret.ts";

const MAX_PAGE = { limit: 200, after: null };
/** A definition or a catalog that is not in force, content that could not be written to a file, and a missing folder. */
const CODES = ["definition_broken", "catalog_broken", "file_behind", "folder_away"] as const;
type LocalProblemCode = (typeof CODES)[number];

export const CATALOG_TARGET = "catalog";
export const FOLDER_TARGET = "service";

export class LocalProblems {
  readonly #deps: LocalDeps;
  readonly #problems = new Map<LocalProblemCode, Map<string, string>>(CODES.map((code) => [code, new Map()]));
  /** The problems as they were last published; null if they never were. */
  #published: string | null = null;

  constructor(deps: LocalDeps) {
    this.#deps = deps;
  }

  list(code: LocalProblemCode): ReadonlyMap<string, string> {
    return this.#problems.get(code) ?? new Map();
  }

  /** Returns whether the message is new. */
  set(code: LocalProblemCode, target: string, message: string): boolean {
    const notes = this.#problems.get(code);
    const isNew = notes?.get(target) !== message;
    notes?.set(target, message);
    return isNew;
  }

  /** Returns whether there was such a problem. */
  clear(code: LocalProblemCode, target: string): boolean {
    return this.#problems.get(code)?.delete(target) === true;
  }

  /** Raises and clears the dashboard's problems to match. */
  async publish(): Promise<void> {
    const wrong = [...this.#problems].flatMap(([code, notes]) =>
      [...notes].map((one) => [code, ...one] as const),
    );
    const words = JSON.stringify(wrong);
    if (words === this.#published) return;
    const { store, environment, clock } = this.#deps;
    const environmentId = environment.id;
    const nowMs = clock.now();
    await store.write("dashboard", async (tx) => {
      const raised = (await listProblems(tx, environmentId, true, MAX_PAGE)).items;
      for (const { code, target } of raised) {
        const ours = CODES.find((one) => one === code);
        if (ours !== undefined && !this.list(ours).has(target))
          await clearProblem(tx, { environmentId, code, target, nowMs });
      }
      for (const [code, target, message] of wrong)
        await raiseProblem(tx, { environmentId, code, target, message, nowMs });
    });
    this.#published = words;
  }
}
