/**
 * The list of mutants in `test/mutants/<area>.json`. Each is a one-line fault of the core that a test must find. A mutant is located by its text,
 * which must occur once in its file, so that it stays valid when lines move.
 */
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

export interface Mutant {
  /** The name of its file in `test/mutants`. */
  area: string;
  id: string;
  /** Relative to the project's root. */
  file: string;
  /** A part of one line. `after` replaces it. */
  before: string;
  after: string;
  /** One sentence that says what goes wrong with the mutant. */
  why: string;
  /** The tests that run first, relative to the project's root. */
  suites: readonly string[];
  /** The store that its suites run on, if it is not SQLite. */
  on?: "postgres";
}

const MUTANT_FOLDER = "test/mutants";

/** Reads every mutant of the project in `root`, ordered by area. */
export function readMutants(root: string): Mutant[] {
  const files = [...new Bun.Glob(`${MUTANT_FOLDER}/*.json`).scanSync(root)].sort();
  return files.flatMap((file) => {
    const mutants: Omit<Mutant, "area">[] = JSON.parse(readFileSync(join(root, file), "utf8"));
    return mutants.map((mutant) => ({ area: basename(file, ".json"), ...mutant }));
  });
}

/** Returns the source with the mutant in it. Returns a sentence if its text does not occur exactly once. */
export function mutate(root: string, { file, before, after }: Mutant): { text: string } | { fault: string } {
  if (!existsSync(join(root, file))) return { fault: `${file} does not exist` };
  const parts = readFileSync(join(root, file), "utf8").split(before);
  const [head = "", tail = ""] = parts;
  if (parts.length === 2) return { text: `${head}${after}${tail}` };
  return { fault: `its text stands ${parts.length - 1} times in ${file}` };
}
