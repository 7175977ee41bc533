/** The outcome of one test file, read from what `bun test` printed on standard error. It runs nothing. */

interface Failure {
  /** The names of the groups and of the test, joined by " > "; null for an error outside a test. */
  test: string | null;
  /** The output about the failure. */
  text: string;
}

export interface Outcome {
  passed: number;
  skipped: number;
  failures: Failure[];
}

const RESULT = /^\((pass|fail|skip|todo)\) (.*?)(?: \[[\d.]+m?s\])?$/;
const HEADING = /^(bun test v|\S+\.test\.tsx?:$)/;
const RULE = /^-{20,}$/;
/** The output repeats the failures after this line. */
const REPEATED = /^\d+ tests? failed:$/;
/** A large difference is cut after this many lines. */
const MAX_LINES = 120;

/**
 * Reads the outcome. `ended` says how the process ended if it has no result, for example "SIGKILL"; otherwise null. The text must contain no
 * colors.
 */
export function readOutcome(text: string, ended: string | null): Outcome {
  const outcome: Outcome = { passed: 0, skipped: 0, failures: [] };
  const all = text.split("\n");
  const end = all.findIndex((line) => REPEATED.test(line));
  const lines = end < 0 ? all : all.slice(0, end);
  let block: string[] = [];
  for (const [at, line] of lines.entries()) {
    const [, kind, name = ""] = RESULT.exec(line) ?? [];
    if (kind === undefined) {
      if (line.startsWith("# Unhandled error between tests")) {
        outcome.failures.push({ test: null, text: readErrorOutside(lines.slice(at + 1)) });
      }
      if (!HEADING.test(line)) block.push(line);
      continue;
    }
    if (kind === "pass") outcome.passed += 1;
    else if (kind === "fail") {
      const why = /^ {2}\^ /.test(lines[at + 1] ?? "") ? [(lines[at + 1] ?? "").trim()] : [];
      outcome.failures.push({ test: nameTest(name), text: cut([...block, ...why].join("\n").trim()) });
    } else outcome.skipped += 1;
    block = [];
  }
  if (ended !== null)
    outcome.failures.push({
      test: null,
      text: `${block.join("\n").trim()}\nThe process ended with ${ended}.`.trim(),
    });
  return outcome;
}

function cut(text: string): string {
  const lines = text.split("\n");
  if (lines.length <= MAX_LINES) return text;
  const half = MAX_LINES / 2;
  return [...lines.slice(0, half), `… ${lines.length - MAX_LINES} more lines …`, ...lines.slice(-half)].join(
    "\n",
  );
}

/** Names a hook, because Bun prints no name for it. */
function nameTest(name: string): string {
  return name.replace("(unnamed)", "a hook (beforeAll, afterAll, beforeEach or afterEach)");
}

/** Returns the lines between the two rules after the heading. */
function readErrorOutside(lines: readonly string[]): string {
  const first = lines.findIndex((line) => RULE.test(line));
  const length = lines.slice(first + 1).findIndex((line) => RULE.test(line));
  return lines
    .slice(first + 1, length < 0 ? undefined : first + 1 + length)
    .join("\n")
    .trim();
}
