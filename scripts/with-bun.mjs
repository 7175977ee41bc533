/**
 * Runs `bun <args>` for the package scripts, on a machine that has only Node and npm or only Bun. It decides which Bun that is, and
 * installs the dependencies first when they are missing or not the lock file's. It uses nothing but Node's own modules, and never
 * changes the lock file.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const isWindows = process.platform === "win32";
const wanted = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).devDependencies.bun;

if (!isInstalled()) install();
run(requireBun(), process.argv.slice(2));

/** Whether node_modules holds what the lock file says: npm keeps its own note of it, and `install` leaves a stamp for Bun's. */
function isInstalled() {
  const lockText = readText(join(root, "package-lock.json"));
  if (lockText === null) return existsSync(modules);
  if (readText(stampFile()) === hash(lockText)) return true;
  const noteText = readText(join(modules, ".package-lock.json"));
  if (noteText === null) return false;
  const installed = JSON.parse(noteText).packages;
  return Object.entries(JSON.parse(lockText).packages).every(
    ([path, entry]) =>
      path === "" ||
      (installed[path] === undefined ? entry.optional === true : installed[path].version === entry.version),
  );
}

function install() {
  const npm = findNpm();
  const command = npm ?? [requireAnyBun(), "install", "--no-save", "--silent"];
  const inWords = npm === null ? "bun install" : "npm ci";
  const why = existsSync(modules)
    ? "the dependencies are not the lock file's"
    : "the dependencies are missing";
  console.error(`Installing once with ${inWords}: ${why}.`);
  const [file, ...args] = command;
  // What an installer prints is talk: standard output belongs to the program that is started.
  const { status, error } = spawnSync(file, args, {
    cwd: root,
    stdio: ["ignore", 2, 2],
    shell: isWindows && file.endsWith(".cmd"),
  });
  if (status !== 0)
    fail(`${inWords} did not succeed${error ? ` (${error.message})` : ""}; see above, then try again.`);
  writeFileSync(stampFile(), hash(readText(join(root, "package-lock.json")) ?? ""));
}

/** The command that runs `npm ci`, or null where there is no npm. */
function findNpm() {
  const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  const running = process.env.npm_execpath;
  if (running?.endsWith("npm-cli.js") && process.versions.bun === undefined)
    return [process.execPath, running, ...args];
  const onPath = findOnPath(isWindows ? "npm.cmd" : "npm");
  const node = findOnPath(isWindows ? "node.exe" : "node");
  return onPath === null || node === null ? null : [onPath, ...args];
}

/** Any Bun can install; the one that runs the service is found afterwards. */
function requireAnyBun() {
  if (process.versions.bun !== undefined) return process.execPath;
  return (
    findOnPath(isWindows ? "bun.exe" : "bun") ??
    fail("Neither npm nor Bun is on the PATH; install one of them.")
  );
}

/** The Bun of the version this project is tested with: this process, the installed package's, or the PATH's. */
function requireBun() {
  if (process.versions.bun === wanted) return process.execPath;
  const exe = isWindows ? "bun.exe" : "bun";
  const candidates = [
    join(modules, "bun", "bin", "bun.exe"),
    join(modules, ".bin", exe),
    // Where the package's own install script was not run, the executable still lies in the platform's package.
    ...platformPackages().map((name) => join(modules, "@oven", name, "bin", exe)),
    findOnPath(exe),
  ];
  for (const candidate of candidates) {
    if (candidate !== null && existsSync(candidate) && versionOf(candidate) === wanted) return candidate;
  }
  return fail(
    `Bun ${wanted} was not found in node_modules nor on the PATH; delete node_modules and run this again.`,
  );
}

function platformPackages() {
  const system = isWindows ? "windows" : process.platform;
  const cpu = process.arch === "arm64" ? "aarch64" : process.arch;
  const name = `bun-${system}-${cpu}`;
  return [name, `${name}-musl`, `${name}-baseline`];
}

function versionOf(file) {
  const { status, stdout } = spawnSync(file, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}

function findOnPath(name) {
  // Bun lends scripts a `node` of its own where the machine has none; that one is not Node.
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => !/bun-node/.test(folder));
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}

/** Starts Bun on this terminal; signals reach it once, and this process ends as it ends. */
function run(bun, args) {
  const child = spawn(bun, args, { stdio: "inherit" });
  // A terminal's Ctrl+C reaches the child by itself; passing it on would make it two.
  process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`Bun could not be started: ${error.message}.`));
  child.on("exit", (code, signal) => {
    process.exit(code ?? 128 + (constants.signals[signal] ?? 1));
  });
}

function stampFile() {
  return join(modules, ".lock-stamp");
}

function readText(file) {
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

function hash(text) {
  return createHash("sha256").update(text).digest("hex");
}

function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
