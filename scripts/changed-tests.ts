/** Finds the tests of the files that differ from the last commit, or of the last commit if nothing differs. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const IMPORT = /from\s+"(\.[^"]+)"/g;

/** Lists test files that changed or that import a changed file directly. A browser test is listed only if it changed itself. */
export function listChangedTests(): string[] {
  const uncommitted = listPaths("status", "--porcelain", "--untracked-files=all").map((line) =>
    line.slice(3).replace(/^.* -> /, ""),
  );
  const changed = new Set(
    uncommitted.length > 0 ? uncommitted : listPaths("diff", "--name-only", "HEAD~1", "HEAD"),
  );
  const tests = [...new Bun.Glob("test/**/*.test.ts").scanSync()].map((path) => path.replaceAll("\\", "/"));
  return tests
    .filter((path) => changed.has(path) || (!path.startsWith("test/browser/") && importsOne(path, changed)))
    .sort();
}

function importsOne(path: string, changed: ReadonlySet<string>): boolean {
  return [...readFileSync(path, "utf8").matchAll(IMPORT)].some(([, from = ""]) => {
    const file = normalize(join(dirname(path), from)).replaceAll("\\", "/");
    return changed.has(file) && existsSync(file);
  });
}

/** Returns the lines that git prints, or none if git or the history is missing. */
function listPaths(...words: string[]): string[] {
  if (Bun.which("git") === null) return [];
  const git = Bun.spawnSync(["git", ...words], { stderr: "ignore" });
  return git.stdout
    .toString()
    .split("\n")
    .filter((line) => line !== "");
}
