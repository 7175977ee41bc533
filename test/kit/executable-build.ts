/**
 * The compiled executable for tests, made by the project's own build and kept while nothing it is made of changes, so that a run of
 * the suite compiles once however many files and workers ask; and the same program with a clock that a test moves. It never runs what it built.
 */
import { Database } from "bun:sqlite";
import { constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { TEST_MS } from "./patience.ts";

const PROJECT = resolve(import.meta.dir, "../..");
const DIST = join(PROJECT, "dist");
const SUFFIX = process.platform === "win32" ? ".exe" : "";
const MADE_OF = [
  "src",
  "web",
  "client",
  "migrations",
  "docs",
  "packaging",
  "changes",
  "senders",
  "scripts/build.ts",
  "scripts/license-page.ts",
  "package.json",
  "package-lock.json",
];
/** `relay`: as it is released. `staged`: the same with staged-main.ts's clock. `stepped`: the same, to be killed at a step (stepped-main.ts). */
export type Program = keyof typeof PROGRAMS;
const PROGRAMS = {
  relay: { command: [join(PROJECT, "scripts/build.ts")], madeOf: MADE_OF },
  staged: {
    command: compile("test/kit/staged-main.ts", "staged"),
    madeOf: [...MADE_OF, "test/kit/staged-main.ts", "test/kit/virtual-clock.ts"],
  },
  stepped: {
    command: compile("test/crash/stepped-main.ts", "stepped"),
    madeOf: [...MADE_OF, "test/crash/stepped-main.ts"],
  },
} as const;

function compile(script: string, name: string): string[] {
  const outfile = join(DIST, `${name}${SUFFIX}`);
  return ["build", join(PROJECT, script), "--compile", "--minify", "--format=esm", "--splitting", "--bytecode", `--outfile=${outfile}`];
}

const placed = new Map<Program, string>();

/** Where the executable of the present sources is, to be run there: it starts in a quarter of the time that the sources need. */
export function requireExecutable(program: Program): string {
  const file = placed.get(program) ?? makeExecutable(program);
  placed.set(program, file);
  return file;
}

/** Copies the executable of the present sources to `file`, for what is to be alone in a folder. */
export function copyExecutable(file: string, program: Program): void {
  copyFileSync(requireExecutable(program), file, constants.COPYFILE_FICLONE);
}

/** Builds it where the one that is there is of older sources. Throws with the build's own words. */
function makeExecutable(program: Program): string {
  mkdirSync(DIST, { recursive: true });
  // The operating system lets go of this lock with the process, so that a killed run blocks no later one.
  using lock = new Database(join(DIST, "build.lock"), { create: true });
  lock.exec(`PRAGMA busy_timeout = ${TEST_MS}; BEGIN EXCLUSIVE`);
  const built = join(DIST, `${program}${SUFFIX}`);
  const stampFile = join(DIST, program === "relay" ? "build.stamp" : `${program}.stamp`);
  const sources = hashSources(program);
  if (!existsSync(stampFile) || readFileSync(stampFile, "utf8") !== writeStamp(sources, built)) {
    build(program);
    writeFileSync(stampFile, writeStamp(sources, built));
  }
  return built;
}

/** What a compile that is killed leaves behind stands where it worked. */
function build(program: Program): void {
  const folder = mkdtempSync(join(DIST, "compile-"));
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, ...PROGRAMS[program].command], {
    cwd: program === "relay" ? PROJECT : folder,
    stdout: "pipe",
    stderr: "pipe",
  });
  rmSync(folder, { recursive: true });
  if (exitCode !== 0) throw new Error(`The executable did not compile: ${stdout}${stderr}`);
}

/** Which sources, and which file came of them: another build since, of other sources, is not this one. */
function writeStamp(sources: string, built: string): string {
  if (!existsSync(built)) return "";
  const { size, mtimeMs } = statSync(built);
  return `${sources} ${size} ${mtimeMs}\n`;
}

function hashSources(program: Program): string {
  const hash = new Bun.CryptoHasher("sha256", Bun.version);
  for (const part of PROGRAMS[program].madeOf) {
    const path = join(PROJECT, part);
    if (!existsSync(path)) continue;
    const files = statSync(path).isDirectory() ? [...new Bun.Glob("**/*").scanSync({ cwd: path })].sort().map((name) => join(part, name)) : [part];
    for (const name of files) hash.update(`${name}\n`).update(readFileSync(join(PROJECT, name)));
  }
  return hash.digest("hex");
}
