/**
 * Compiles the service to one executable: `dist/relay` for this machine, or with --all one file for each system that is released.
 * The version is package.json's, packed in by the bundler. It never tests what it made; `npm run check` does.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { runStep } from "./step.ts";

/** The maps are packed into the executable; what the bundler leaves beside it is not needed. */
function removeMaps(): void {
  for (const file of readdirSync("dist")) if (file.endsWith(".map")) rmSync(`dist/${file}`);
}

/** What is released: the name of the file, and the Bun it is built on. */
const RELEASED = [
  { target: "bun-linux-x64-baseline", file: "relay-linux-x64" },
  { target: "bun-linux-arm64", file: "relay-linux-arm64" },
  { target: "bun-darwin-arm64", file: "relay-darwin-arm64" },
  { target: "bun-darwin-x64", file: "relay-darwin-x64" },
  { target: "bun-windows-x64", file: "relay-windows-x64.exe" },
] as const;

interface Build {
  /** undefined: this machine's. */
  target?: string;
  file: string;
}

/**
 * Variables by which whoever sets the environment makes a compiled executable something else before any of our code runs: plain Bun, Bun with
 * options of theirs, Bun with an open debugger (and every longer name that begins with that). No option of the build turns them off.
 */
const TAKEN_OVER_BY = ["BUN_BE_BUN", "BUN_OPTIONS", "BUN_INSPECT"];

/** A Bun to build on that no longer looks for these names: each begins with a NUL, which no variable's name holds. */
function makeBase(bun: string, folder: string): string {
  const bytes = readFileSync(bun);
  for (const name of TAKEN_OVER_BY) {
    let at = bytes.indexOf(name);
    if (at < 0)
      throw new Error(
        `${bun} does not hold ${name}: find out how this Bun reads its variables, and mend build.ts.`,
      );
    for (; at >= 0; at = bytes.indexOf(name, at)) bytes[at] = 0;
  }
  const base = join(folder, "base");
  writeFileSync(base, bytes, { mode: 0o755 });
  return base;
}

/** The Bun of the build's system: this one, else what Bun fetches for a first build of it. Null where that did not work. */
async function findBun({ target }: Build, folder: string): Promise<string | null> {
  if (target === undefined) return process.execPath;
  const outfile = join(folder, "first");
  const code = await runStep(
    [
      process.execPath,
      "build",
      resolve("scripts/step.ts"),
      "--compile",
      `--target=${target}`,
      `--outfile=${outfile}`,
    ],
    { cwd: folder, env: { BUN_INSTALL_CACHE_DIR: folder } },
  );
  const fetched = readdirSync(folder).find((name) => name.startsWith("bun-"));
  return code !== 0 || fetched === undefined ? null : join(folder, fetched);
}

async function compile(build: Build): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "relay-build-"));
  try {
    const bun = await findBun(build, folder);
    return bun === null ? 1 : await compileOn(makeBase(bun, folder), build);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What Bun writes meanwhile stands where it works, and stays there when it is killed: beside what it makes, where nothing is kept. */
const WORKS_IN = "compile-";
const GIVEN_UP_AFTER_MS = 3_600_000;

function removeGivenUp(): void {
  for (const name of readdirSync("dist").filter((one) => one.startsWith(WORKS_IN))) {
    const folder = join("dist", name);
    if (Date.now() - statSync(folder).mtimeMs > GIVEN_UP_AFTER_MS) rmSync(folder, { recursive: true });
  }
}

async function compileOn(base: string, build: Build): Promise<number> {
  const outfile = `dist/${build.file}`;
  const folder = mkdtempSync(join("dist", WORKS_IN));
  const command = [
    process.execPath,
    "build",
    // Lines are named from here, so that they say nothing of this machine.
    relative(folder, "src/main.ts"),
    "--compile",
    "--minify",
    "--format=esm",
    "--splitting",
    "--bytecode",
    "--sourcemap=inline",
    // The executable reads its own configuration only, never what lies about in the working directory.
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
    `--compile-executable-path=${base}`,
    ...(build.target === undefined ? [] : [`--target=${build.target}`]),
    `--outfile=${relative(folder, outfile)}`,
  ];
  const code = await runStep(command, { cwd: folder });
  rmSync(folder, { recursive: true });
  if (code === 0) console.log(`${outfile}  ${Math.round(statSync(outfile).size / 2 ** 20)} MiB`);
  return code;
}

const unknown = process.argv.slice(2).filter((argument) => argument !== "--all");
if (unknown.length > 0) {
  console.error(`build does not know ${unknown.join(" ")}; use --all, or nothing for this machine.`);
  process.exit(2);
}
mkdirSync("dist", { recursive: true });
removeGivenUp();
const here: Build = { file: process.platform === "win32" ? "relay.exe" : "relay" };
let failed = 0;
for (const build of process.argv.includes("--all") ? [...RELEASED] : [here]) {
  if ((await compile(build)) !== 0) failed++;
}
removeMaps();
process.exit(failed === 0 ? 0 : 1);
