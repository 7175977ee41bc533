/**
 * The list of mutants: one-line faults of the core that a test must find, in `test/mutants/<area>.json`. A mutant is found by its text, which
 * stands once in its file, so that it survives lines that move.
 */
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

export interface Mutant {
  /** The name of its file in `test/mutants`. */
  area: string;
  id: string;
  /** From the project's root. */
  file: string;
  /** A part of one line, and what takes its place. */
  before: string;
  after: string;
  /** What goes wrong with it, in a sentence. */
  why: string;
  /** The tests that are run first, from the project's root. */
  suites: readonly string[];
  /** Where its suites keep their stores, if that is not SQLite. */
  on?: "postgres";
}

const MUTANT_FOLDER = "test/mutants";

/** Every mutant of the project in `root`, by area. */
export function readMutants(root: string): Mutant[] {
  const files = [...new Bun.Glob(`${MUTANT_FOLDER}/*.json`).scanSync(root)].sort();
  return files.flatMap((file) => {
    const mutants: Omit<Mutant, "area">[] = JSON.parse(readFileSync(join(root, file), "utf8"));
    return mutants.map((mutant) => ({ area: basename(file, ".json"), ...mutant }));
  });
}

/** The source with the mutant in it; a sentence where its text does not stand there exactly once. */
export function mutate(root: string, { file, before, after }: Mutant): { text: string } | { fault: string } {
  if (!existsSync(join(root, file))) return { fault: `${file} does not exist` };
  const parts = readFileSync(join(root, file), "utf8").split(before);
  const [head = "", tail = ""] = parts;
  if (parts.length === 2) return { text: `${head}${after}${tail}` };
  return { fault: `its text stands ${parts.length - 1} times in ${file}` };
}
