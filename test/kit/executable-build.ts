/**
 * Builds the compiled executable for tests with the project's own build, and the same program with a clock that a test moves. It rebuilds only when a
 * source has changed, so a run of the suite compiles once for all files and workers. It never runs the result.
 */
import { Database } from "bun:sqlite";
import { constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { BUILD_FLAGS } from "../../scripts/build-flags.ts";
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
  "scripts/build-flags.ts",
  "scripts/release/systems.ts",
  "scripts/license-page.ts",
  "package.json",
  "package-lock.json",
];
/** `relay`: the released program. `staged`: the same with staged-main.ts's clock. `stepped`: the same, to be killed at a step (stepped-main.ts). */
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
  // Only src/main.ts ends the policy of a start.
  const flags = BUILD_FLAGS.filter((flag) => !flag.startsWith("--compile-jit-policy"));
  return ["build", join(PROJECT, script), ...flags, `--outfile=${outfile}`];
}

const placed = new Map<Program, string>();

/** Returns the path of the executable of the current sources. It starts in a quarter of the time that the sources need. */
export function requireExecutable(program: Program): string {
  const file = placed.get(program) ?? makeExecutable(program);
  placed.set(program, file);
  return file;
}

/** Copies the executable of the current sources to `file`, for tests that need it without any other file. */
export function copyExecutable(file: string, program: Program): void {
  copyFileSync(requireExecutable(program), file, constants.COPYFILE_FICLONE);
}

/** Builds the executable if the existing one has older sources. Throws with the build's own output. */
function makeExecutable(program: Program): string {
  mkdirSync(DIST, { recursive: true });
  // The operating system releases this lock with the process, so a killed run blocks no later one.
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

/** Runs the build. A test program compiles in a temporary folder, because a killed compile leaves files in its working directory. */
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

/** Identifies the sources and the file built from them. A later build of other sources changes the file, and then the stamp does not match. */
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
