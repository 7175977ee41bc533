/**
 * Runs the test suite and ends with one plain line, `N passed, N failed`. Arguments are passed on to `bun test`, so that
 * `npm test -- test/rule/template.test.ts` runs one file. A run that died before its report counts as one failed.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runStep } from "./step.ts";

interface Counts {
  passed: number;
  failed: number;
}

/** The root element's counts of a JUnit report. */
function readCounts(report: string): Counts {
  const root = /<testsuites\b[^>]*>/.exec(report)?.[0] ?? "";
  const count = (name: string): number => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(root)?.[1] ?? 0);
  const failed = count("failures") + count("errors");
  return { passed: count("tests") - failed - count("skipped"), failed };
}

const folder = mkdtempSync(join(tmpdir(), "relay-test-"));
const report = join(folder, "report.xml");
const code = await runStep([
  process.execPath,
  "test",
  "--parallel=2",
  "--timeout=30000",
  "--reporter=junit",
  `--reporter-outfile=${report}`,
  ...process.argv.slice(2),
]);
const counts = existsSync(report) ? readCounts(readFileSync(report, "utf8")) : { passed: 0, failed: 0 };
rmSync(folder, { recursive: true });

// An error outside a test has no place in the report, but it is a failure all the same.
if (code !== 0 && counts.failed === 0) counts.failed = 1;
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed === 0 ? 0 : 1);
