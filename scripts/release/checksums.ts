/** Writes the checksums of the files of a release, in the format that `sha256sum --check` reads. */
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { comparePaths } from "./pack.ts";

const CHECKSUMS = "checksums.txt";

/** Returns the SHA-256 of a file's bytes as 64 hexadecimal digits. */
export function hashFile(file: string): string {
  return new Bun.CryptoHasher("sha256").update(readFileSync(file)).digest("hex");
}

/** Writes a line for each file into `checksums.txt` in the folder `out`, sorted by name. Returns the file's path. */
export function writeChecksums(out: string, files: readonly string[]): string {
  const lines = files
    .toSorted((one, other) => comparePaths(basename(one), basename(other)))
    .map((file) => `${hashFile(file)}  ${basename(file)}\n`);
  const path = join(out, CHECKSUMS);
  writeFileSync(path, lines.join(""));
  return path;
}
