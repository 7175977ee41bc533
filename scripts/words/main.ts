/**
 * Checks the English of everything that people read.
 *
 *     npm run words                    every finding of the places that must be clean, and the figures of all places
 *     npm run words -- src/shop        every finding below a folder, comments and test names too
 *     npm run words -- --figures       only the figures
 *
 * Ends with 1 when a place that must be clean has a finding.
 */
import { readFileSync } from "node:fs";
import { CLEAN_PLACES, type Finding, listFindings, measure } from "./check.ts";

const words = process.argv.slice(2);
const figuresOnly = words.includes("--figures");
const folders = words.filter((word) => !word.startsWith("-"));
const read = (path: string): string => readFileSync(path, "utf8");

const findings = listFindings(read);
const isShown = (finding: Finding): boolean =>
  folders.length > 0
    ? folders.some((folder) => finding.path.startsWith(folder))
    : CLEAN_PLACES.includes(finding.place);
const shown = findings.filter(isShown);
if (!figuresOnly) {
  for (const { path, line, found, instead, text } of shown)
    console.log(`${path}:${line}: ${found} → ${instead}\n    ${text}`);
}
console.log(measure(read));
const failed = findings.filter(({ place }) => CLEAN_PLACES.includes(place)).length;
console.log(`${failed} findings in ${CLEAN_PLACES.join(", ")}`);
process.exitCode = failed > 0 ? 1 : 0;
