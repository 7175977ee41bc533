/**
 * Builds the container image for amd64 and arm64, without Docker. It needs apt, which brings the C library of Debian.
 *
 *     npm run image                      the OCI layout dist/image, and an archive for each architecture
 *     npm run image -- --out <folder>    the same in another folder
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { IMAGE_SYSTEMS, writeImage } from "./release/image.ts";
import { fetchLibc } from "./release/libc.ts";
import { readManifest, readReleaseTime } from "./release/release.ts";
import { runStep } from "./step.ts";

/** Reads the options. Ends the process with a sentence if there are others. */
function readOptions(): { out: string } {
  try {
    return parseArgs({ args: process.argv.slice(2), options: { out: { type: "string", default: "dist" } } })
      .values;
  } catch (error) {
    console.error(`image: ${(error as Error).message}. Use --out <folder> for another folder than dist.`);
    process.exit(2);
  }
}

async function build(out: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "relay-image-"));
  try {
    // The C library can be missing on this machine, so it comes before the executables, which take longer.
    const libc = await fetchLibc(folder);
    const words = IMAGE_SYSTEMS.flatMap(({ name }) => ["--system", name]);
    const code = await runStep([process.execPath, "scripts/build.ts", ...words, "--out", out]);
    if (code !== 0) throw new Error("an executable could not be built; see above.");
    return await writeImage({
      built: out,
      out,
      version: readManifest().version,
      time: readReleaseTime(),
      libc,
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const { out } = readOptions();
try {
  const [layout = "", ...archives] = await build(out);
  console.log(`Both architectures, to push: ${layout}`);
  console.log(`To load: ${archives.join(", ")}`);
} catch (error) {
  console.error(`image: ${(error as Error).message}`);
  process.exit(1);
}
