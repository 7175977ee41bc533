/**
 * Compiles the service to one executable: `dist/relay` for this machine, or with --all one file for each system that is released.
 * The version is package.json's, packed in by the bundler. It never tests what it made; `npm run check` does.
 */
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
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

async function compile(build: Build): Promise<number> {
  const outfile = `dist/${build.file}`;
  const code = await runStep([
    process.execPath,
    "build",
    "src/main.ts",
    "--compile",
    "--minify",
    "--bytecode",
    "--sourcemap=inline",
    // The executable reads its own configuration only, never what lies about in the working directory.
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
    ...(build.target === undefined ? [] : [`--target=${build.target}`]),
    `--outfile=${outfile}`,
  ]);
  if (code === 0) console.log(`${outfile}  ${Math.round(statSync(outfile).size / 2 ** 20)} MiB`);
  return code;
}

const unknown = process.argv.slice(2).filter((argument) => argument !== "--all");
if (unknown.length > 0) {
  console.error(`build does not know ${unknown.join(" ")}; use --all, or nothing for this machine.`);
  process.exit(2);
}
mkdirSync("dist", { recursive: true });
const here: Build = { file: process.platform === "win32" ? "relay.exe" : "relay" };
let failed = 0;
for (const build of process.argv.includes("--all") ? [...RELEASED] : [here]) {
  if ((await compile(build)) !== 0) failed++;
}
removeMaps();
process.exit(failed === 0 ? 0 : 1);
