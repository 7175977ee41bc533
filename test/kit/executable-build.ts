/**
 * The compiled executable for tests, made by the project's own build and kept while nothing it is made of changes, so that a run of
 * the suite compiles once however many files and workers ask. It never runs what it built.
 */
import { Database } from "bun:sqlite";
import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const PROJECT = resolve(import.meta.dir, "../..");
const DIST = join(PROJECT, "dist");
const FILE_NAME = process.platform === "win32" ? "relay.exe" : "relay";
const MADE_OF = ["src", "web", "client", "migrations", "scripts/build.ts", "package.json", "package-lock.json"];
const BUILD_WAIT_MS = 100_000;

/** Copies the executable of the present sources to `file`, building it first where it is older. Throws with the build's own words. */
export function copyExecutable(file: string): void {
  mkdirSync(DIST, { recursive: true });
  // The operating system lets go of this lock with the process, so that a killed run blocks no later one.
  using lock = new Database(join(DIST, "build.lock"), { create: true });
  lock.exec(`PRAGMA busy_timeout = ${BUILD_WAIT_MS}; BEGIN EXCLUSIVE`);
  const built = join(DIST, FILE_NAME);
  const stampFile = join(DIST, "build.stamp");
  const sources = hashSources();
  if (!existsSync(stampFile) || readFileSync(stampFile, "utf8") !== writeStamp(sources, built)) {
    build();
    writeFileSync(stampFile, writeStamp(sources, built));
  }
  copyFileSync(built, file, constants.COPYFILE_FICLONE);
}

function build(): void {
  const command = [process.execPath, join(PROJECT, "scripts/build.ts")];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, {
    cwd: PROJECT,
    stdout: "pipe",
    stderr: "pipe",
  });
  if (exitCode !== 0) throw new Error(`The executable did not compile: ${stdout}${stderr}`);
}

/** Which sources, and which file came of them: another build since, of other sources, is not this one. */
function writeStamp(sources: string, built: string): string {
  if (!existsSync(built)) return "";
  const { size, mtimeMs } = statSync(built);
  return `${sources} ${size} ${mtimeMs}\n`;
}

function hashSources(): string {
  const hash = new Bun.CryptoHasher("sha256", Bun.version);
  for (const part of MADE_OF) {
    const path = join(PROJECT, part);
    if (!existsSync(path)) continue;
    const files = statSync(path).isDirectory() ? [...new Bun.Glob("**/*").scanSync({ cwd: path })].sort().map((name) => join(part, name)) : [part];
    for (const name of files) hash.update(`${name}\n`).update(readFileSync(join(PROJECT, name)));
  }
  return hash.digest("hex");
}
