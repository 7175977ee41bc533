/**
 * Compiles the service to one executable: `dist/relay` for this machine, with --all one file for each released system, or with --system <name> one
 * file for each named system. `--out` names another folder. `npm run check` tests the result.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { BUILD_FLAGS } from "./build-flags.ts";
import { fetchBun } from "./release/fetch-bun.ts";
import { findReleaseTime, readManifest, readRepository, releasesUrl } from "./release/release.ts";
import { executableFile, RELEASED, type ReleasedSystem } from "./release/systems.ts";
import { runStep } from "./step.ts";

interface Build {
  /** The target system; undefined for the system of this machine. */
  target?: ReleasedSystem["target"];
  /** The path of the executable, in an existing folder. */
  outfile: string;
}

/**
 * Variables that change a compiled executable before any of its code runs. They make it plain Bun, pass options to Bun or open a debugger. The
 * same applies to each longer name that begins with BUN_INSPECT. No option of the build turns them off.
 */
const TAKEOVER_VARIABLES = ["BUN_BE_BUN", "BUN_OPTIONS", "BUN_INSPECT"];

/** Copies Bun without those names: each gets a NUL as its first byte, which no variable's name contains. Returns the copy's path. */
function makeBase(bun: string, folder: string): string {
  const bytes = readFileSync(bun);
  for (const name of TAKEOVER_VARIABLES) {
    let at = bytes.indexOf(name);
    if (at < 0)
      throw new Error(
        `${bun} does not hold ${name}: find out how this Bun reads its variables, and fix build.ts.`,
      );
    for (; at >= 0; at = bytes.indexOf(name, at)) bytes[at] = 0;
  }
  const base = join(folder, "base");
  writeFileSync(base, bytes, { mode: 0o755 });
  return base;
}

async function compile(build: Build): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "relay-build-"));
  try {
    const bun = build.target === undefined ? process.execPath : await fetchBun(build.target, folder);
    return await compileOn(makeBase(bun, folder), build);
  } catch (error) {
    console.error(`build: ${(error as Error).message}`);
    return 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Prefix of the folders in dist/ where Bun writes its temporary files. A build that is killed leaves its folder behind. */
const WORK_FOLDER = "compile-";
const STALE_AFTER_MS = 3_600_000;

function removeStaleFolders(): void {
  for (const name of readdirSync("dist").filter((one) => one.startsWith(WORK_FOLDER))) {
    const folder = join("dist", name);
    if (Date.now() - statSync(folder).mtimeMs > STALE_AFTER_MS) rmSync(folder, { recursive: true });
  }
}

/** Lists the options that write the facts of src/base/release/build.ts into the executable. */
function listFacts(): string[] {
  const releases = releasesUrl(readRepository(readManifest()));
  const facts = { RELAY_BUILT_AT: findReleaseTime()?.toISOString() ?? null, RELAY_RELEASES_URL: releases };
  return Object.entries(facts).flatMap(([name, value]) =>
    value === null ? [] : [`--define=${name}=${JSON.stringify(value)}`],
  );
}

async function compileOn(base: string, { target, outfile }: Build): Promise<number> {
  const folder = mkdtempSync(join("dist", WORK_FOLDER));
  const command = [
    process.execPath,
    "build",
    // A relative path keeps the folders of this machine out of stack traces.
    relative(folder, "src/main.ts"),
    ...BUILD_FLAGS,
    ...listFacts(),
    `--compile-executable-path=${base}`,
    ...(target === undefined ? [] : [`--target=${target}`]),
    `--outfile=${relative(folder, outfile)}`,
  ];
  const code = await runStep(command, { cwd: folder });
  rmSync(folder, { recursive: true });
  if (code === 0) console.log(`${outfile}  ${Math.round(statSync(outfile).size / 2 ** 20)} MiB`);
  return code;
}

/** Reads the options. Ends the process with a sentence if there are others. `systems` is null for this machine. */
function readOptions(): { systems: readonly ReleasedSystem[] | null; out: string } {
  try {
    const options = {
      all: { type: "boolean", default: false },
      system: { type: "string", multiple: true },
      out: { type: "string", default: "dist" },
    } as const;
    const { all, system = [], out } = parseArgs({ args: process.argv.slice(2), options }).values;
    const named = RELEASED.filter(({ name }) => all || system.includes(name));
    const unknown = system.find((name) => !RELEASED.some((one) => one.name === name));
    if (unknown !== undefined)
      throw new Error(`There is no system ${unknown}, only ${RELEASED.map(({ name }) => name).join(", ")}`);
    return { systems: named.length === 0 ? null : named, out };
  } catch (error) {
    console.error(
      `build: ${(error as Error).message}. Use --all, --system <name>, --out <folder>, or nothing for this machine.`,
    );
    process.exit(2);
  }
}

const { systems, out } = readOptions();
mkdirSync("dist", { recursive: true });
mkdirSync(out, { recursive: true });
removeStaleFolders();
const builds: Build[] =
  systems === null
    ? [{ outfile: join(out, process.platform === "win32" ? "relay.exe" : "relay") }]
    : systems.map((system) => ({ target: system.target, outfile: join(out, executableFile(system)) }));
let failed = 0;
for (const build of builds) {
  if ((await compile(build)) !== 0) failed++;
}
process.exit(failed === 0 ? 0 : 1);
