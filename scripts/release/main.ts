/**
 * Writes the files of a release below dist/, all from the table of systems.ts. It publishes nothing.
 *
 *     npm run release -- --npm                  the executables, and an npm package for each in dist/npm
 *     npm run release -- --npm --out <folder>   the same in another folder
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runStep } from "../step.ts";
import { writeNpmPackages } from "./npm.ts";

const USAGE = "Use --npm, and --out <folder> for another folder than dist.";

/** Reads the options. Ends the process with a sentence if they ask for no release. */
function readOptions(): { out: string } {
  try {
    const options = {
      npm: { type: "boolean", default: false },
      out: { type: "string", default: "dist" },
    } as const;
    const { npm, out } = parseArgs({ args: process.argv.slice(2), options }).values;
    if (npm) return { out };
    console.error(`release: nothing to write. ${USAGE}`);
  } catch (error) {
    console.error(`release: ${(error as Error).message}. ${USAGE}`);
  }
  process.exit(2);
}

const { out } = readOptions();
const code = await runStep([process.execPath, "scripts/build.ts", "--all", "--out", out]);
if (code !== 0) {
  console.error("release: an executable could not be built; see above.");
  process.exit(1);
}
const packages = writeNpmPackages({ built: out, out: join(out, "npm") });
console.log("Publish in this order:");
for (const { name, folder } of packages) console.log(`npm publish ${folder}    # ${name}`);
