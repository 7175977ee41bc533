/**
 * Writes the files of a release below dist/, all from the table of systems.ts. It publishes nothing.
 *
 *     npm run release                           the executables, the npm packages in dist/npm, and the files to upload in dist/release
 *     npm run release -- --npm                  only the executables and the npm packages
 *     npm run release -- --out <folder>         another folder than dist
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runStep } from "../step.ts";
import { writeArchives } from "./archives.ts";
import { writeChecksums } from "./checksums.ts";
import { writeDebs } from "./deb.ts";
import { writeFormula, writeInstallScript, writeScoopManifest } from "./installers.ts";
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
];

const NO_REPOSITORY =
  "The files for Homebrew and Scoop and the provenance are not written, and install.sh has no address: package.json has no repository. Set it to where the releases are published.";

interface Options {
  npm: boolean;
  out: string;
}

/** Reads the options. Ends the process with a sentence if there are others. */
function readOptions(): Options {
  try {
    const options = {
      npm: { type: "boolean", default: false },
      out: { type: "string", default: "dist" },
    } as const;
    return parseArgs({ args: process.argv.slice(2), options }).values;
  } catch (error) {
    console.error(
      `release: ${(error as Error).message}. Use --npm for only the npm packages, and --out <folder> for another folder than dist.`,
    );
    process.exit(2);
  }
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

const { npm, out } = readOptions();
const code = await runStep([process.execPath, "scripts/build.ts", "--all", "--out", out]);
if (code !== 0) {
  console.error("release: an executable could not be built; see above.");
  process.exit(1);
}
if (!npm) {
  const files = await writeUploads(out, join(out, "release"));
  console.log("Upload:");
  for (const file of files) console.log(file);
}
const packages = writeNpmPackages({ built: out, out: join(out, "npm") });
console.log("Publish in this order:");
for (const { name, folder } of packages) console.log(`npm publish ${folder}    # ${name}`);
