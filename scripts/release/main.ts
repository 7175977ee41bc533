/**
 * Writes the files of a release below dist/, all from the table of systems.ts. It publishes nothing. The release workflow uploads and publishes what
 * it wrote.
 *
 *     npm run release                           the executables, the npm packages in dist/npm, and the files to upload in dist/release
 *     npm run release -- --npm                  only the executables and the npm packages
 *     npm run release -- --check                only says whether version, changelog, migrations, documentation and git agree
 *     npm run release -- --dry-run              everything up to the upload: that check, all tests, and all files
 *     npm run release -- --dry-run --no-tests   the same without the tests
 *     npm run release -- --out <folder>         another folder than dist
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { RELEASES } from "../../src/base/release/change.ts";
import { writeNotes } from "../changelog.ts";
import { runStep } from "../step.ts";
import { findDisagreements, readFacts } from "./agreement.ts";
import { writeArchives } from "./archives.ts";
import { writeChecksums } from "./checksums.ts";
import { writeDebs } from "./deb.ts";
import { writeFormula, writeInstallScript, writeScoopManifest } from "./installers.ts";
import { writeLatestFile } from "./latest.ts";
import { writeNpmPackages } from "./npm.ts";
import { writeProvenance } from "./provenance.ts";
import { type ReleaseWriter, readManifest, readReleaseTime, readRepository } from "./release.ts";
import { writeSbom } from "./sbom.ts";
import { RELEASED } from "./systems.ts";

/** The writers of the files to upload, in the order in which they run. */
const WRITERS: readonly ReleaseWriter[] = [
  writeArchives,
  writeDebs,
  writeInstallScript,
  writeFormula,
  writeScoopManifest,
  writeSbom,
  writeLatestFile,
];

const NO_REPOSITORY =
  "The files for Homebrew and Scoop and the provenance are not written, and install.sh has no address: package.json has no repository. Set it to where the releases are published.";

const USAGE = "Use --npm, --check, --dry-run, --no-tests, and --out <folder> for another folder than dist.";

/** Reads the options. Ends the process with a sentence if there are others. */
function readOptions() {
  try {
    const options = {
      npm: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      "dry-run": { type: "boolean", default: false },
      tests: { type: "boolean", default: true },
      out: { type: "string", default: "dist" },
    } as const;
    const { values } = parseArgs({ args: process.argv.slice(2), options, allowNegative: true });
    if (!values.tests && !values["dry-run"]) throw new Error("--no-tests needs --dry-run");
    if (values.check && (values.npm || values["dry-run"])) throw new Error("--check stands alone");
    return values;
  } catch (error) {
    console.error(`release: ${(error as Error).message}. ${USAGE}`);
    process.exit(2);
  }
}

/** Ends the process if something disagrees, with a line for each disagreement. */
function checkAgreement(): void {
  const found = findDisagreements(readFacts());
  for (const sentence of found) console.error(`release: ${sentence}`);
  if (found.length > 0) process.exit(1);
  console.log("Version, changelog, migrations, documentation and git agree.");
}

/** Runs a step of the release. Ends the process if it fails. */
async function mustRun(command: readonly string[], failure: string): Promise<void> {
  if ((await runStep(command)) === 0) return;
  console.error(`release: ${failure}; see above.`);
  process.exit(1);
}

/** Writes the files to upload into an empty folder `out` and returns their paths, the checksums last. */
async function writeUploads(built: string, out: string): Promise<string[]> {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const manifest = readManifest();
  const repository = readRepository(manifest);
  if (repository === null) console.log(NO_REPOSITORY);
  const release = {
    built,
    out,
    systems: RELEASED,
    version: manifest.version,
    time: readReleaseTime(),
    repository,
  };
  const files: string[] = [];
  for (const write of WRITERS) files.push(...(await write(release)));
  files.push(...writeProvenance(release, files));
  return [...files, writeChecksums(out, files)];
}

/** Builds and writes everything, and prints what to upload and to publish. */
async function writeRelease(): Promise<void> {
  const build = [process.execPath, "scripts/build.ts", "--all", "--out", out];
  await mustRun(build, "an executable could not be built");
  if (!npm) {
    const files = await writeUploads(out, join(out, "release"));
    writeFileSync(join(out, "notes.md"), writeNotes(RELEASES[0]));
    console.log(`${dryRun ? "Would upload" : "Upload"}, with the notes in ${join(out, "notes.md")}:`);
    for (const file of files) console.log(file);
  }
  const packages = writeNpmPackages({ built: out, out: join(out, "npm") });
  console.log(`${dryRun ? "Would publish" : "Publish"} in this order:`);
  for (const { name, folder } of packages) console.log(`npm publish ${folder}    # ${name}`);
}

const { npm, check, "dry-run": dryRun, tests, out } = readOptions();
try {
  if (check || dryRun) checkAgreement();
  if (dryRun && tests) await mustRun([".ci/run"], "a test failed");
  if (!check) await writeRelease();
} catch (error) {
  console.error(`release: ${(error as Error).message}`);
  process.exit(1);
}
