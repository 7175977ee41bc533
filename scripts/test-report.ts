/**
 * What came of a run of tests, as Bun tells it: in its JUnit report, and of errors outside a test in what it says alone; and where its time went. It
 * runs nothing and judges nothing.
 */
import { relative, resolve } from "node:path";

/** How many files are told of. */
const LONGEST = 12;

export interface Outcome {
  passed: number;
  /** One line each: file, test, and the first line of what went wrong. */
  failures: string[];
  skipped: number;
  /** How long each file took, in seconds. */
  files: { file: string; seconds: number }[];
}

/** `talk`: what the run said on standard error, without colours. */
export function readOutcome(report: string, talk: string): Outcome {
  const outcome = readReport(report);
  outcome.failures.push(...readErrors(talk));
  outcome.skipped = readSummary(talk, "skip") + readSummary(talk, "todo");
  return outcome;
}

/** The tests of a JUnit report. */
function readReport(report: string): Outcome {
  const outcome: Outcome = { passed: 0, failures: [], skipped: 0, files: [] };
  for (const [, head = ""] of report.matchAll(/<testsuite\b([^>]*)>/g)) {
    const file = readAttribute(head, "file");
    // A group of tests has a name of its own.
    if (readAttribute(head, "name") === file)
      outcome.files.push({ file, seconds: Number(readAttribute(head, "time")) });
  }
  for (const [, head = "", body = ""] of report.matchAll(
    /<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    const failure = /<(?:failure|error)\b([^>]*)/.exec(body)?.[1];
    if (failure !== undefined) {
      const name = readAttribute(head, "name");
      const group = readAttribute(head, "classname");
      // A hook has no name of its own; the tests after a broken beforeAll do not run.
      const what = name === "(unnamed)" ? "a hook (beforeAll, afterAll, beforeEach or afterEach)" : name;
      const why = readAttribute(failure, "message").trim().split("\n")[0] ?? "";
      const place = [readAttribute(head, "file"), group, what].filter((part) => part !== "").join(" > ");
      outcome.failures.push(why === "" ? place : `${place}: ${why}`);
    } else if (!body.includes("<skipped")) outcome.passed += 1;
  }
  return outcome;
}

/** Where the time of a run went: its parts, how busy the processors were, and the files that took longest. */
export function sayTimes(
  parts: readonly { what: string; ms: number }[],
  busy: number,
  files: readonly Outcome["files"][number][],
): string {
  const minutes = (ms: number): string => {
    const seconds = Math.round(ms / 1_000);
    return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  };
  const all = parts.reduce((sum, { ms }) => sum + ms, 0);
  const longest = files.toSorted((one, other) => other.seconds - one.seconds).slice(0, LONGEST);
  return [
    `It took ${minutes(all)}: ${parts.map(({ what, ms }) => `${minutes(ms)} ${what}`).join(", ")}; the processors were busy ${Math.round(busy * 100)} % of it.`,
    `The longest: ${longest.map(({ file, seconds }) => `${file} ${minutes(seconds * 1_000)}`).join(", ")}.`,
  ].join("\n");
}

function readAttribute(text: string, name: string): string {
  const raw = new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1] ?? "";
  return raw
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&apos;/g, "'")
    .replace(/&amp;/g, "&");
}

/**
 * Errors outside a test have no place in the report. Each is told under the test file that it names itself, for of two files that load
 * at once the heading may be the other's; else under the heading.
 */
function readErrors(talk: string): string[] {
  const errors: string[] = [];
  let heading = "an unnamed file";
  let block: string[] | null = null;
  for (const line of talk.split("\n")) {
    heading = /^(\S+\.test\.tsx?):$/.exec(line)?.[1] ?? heading;
    if (line.startsWith("# Unhandled error between tests")) block = [];
    else if (block !== null && /^-{20,}$/.test(line) && block.length > 0) {
      errors.push(sayError(block, heading));
      block = null;
    } else if (!/^-{20,}$/.test(line)) block?.push(line);
  }
  const told = Math.max(errors.length, readSummary(talk, "errors?"));
  while (errors.length < told) errors.push("an error outside a test; see above");
  return errors;
}

function sayError(block: readonly string[], heading: string): string {
  const named = /([^\s'"(]+\.test\.tsx?)\b/.exec(block.join("\n"))?.[1];
  const file = named === undefined ? heading : relative(process.cwd(), resolve(named));
  const why = block.find((line) => /^\w*[Ee]rror: /.test(line))?.replace(/^error: /, "") ?? "see above";
  return `${file} > outside a test: ${why}`;
}

/** A number of the run's own summary, such as ` 3 errors`. */
function readSummary(talk: string, word: string): number {
  return Number([...talk.matchAll(new RegExp(`^ (\\d+) ${word}$`, "gm"))].at(-1)?.[1] ?? 0);
}
