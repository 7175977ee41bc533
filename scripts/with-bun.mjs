/**
 * Runs `bun <args>` for the package scripts, on a machine that has only Node and npm or only Bun. It decides which Bun that is, and first
 * installs what is missing or not the lock file's: what running needs, and with --tools before the arguments the tools of development
 * too. What it starts ends with it, and it ends with the package runner that started it, however that one ends. It uses nothing but
 * Node's own modules, and never changes the lock file.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const isWindows = process.platform === "win32";
const wanted = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).dependencies.bun;
const LOOK_EVERY_MS = 500;
/** How long what was started may take to end by itself. */
const ENDS_WITHIN_MS = 15_000;

let running = null;
passSignals();
watchRunner();

const args = process.argv.slice(2);
const withTools = args[0] === "--tools";
if (withTools) args.shift();
if (listMissing(withTools) !== 0) await install();
await run(requireBun(), args);

/** How many packages of the lock file are not there as it says; Infinity where nothing can be said. */
function listMissing(tools) {
  const lockText = readText(join(root, "package-lock.json"));
  if (lockText === null) return existsSync(modules) ? 0 : Infinity;
  // npm keeps a note of what it installed; Bun keeps none, so `install` leaves one.
  const noteText = readText(npmNote());
  if (noteText === null)
    return (readText(stampFile()) ?? "").startsWith(stamp(lockText, tools)) ? 0 : Infinity;
  const installed = JSON.parse(noteText).packages;
  return wantedPackages(lockText, tools).filter(
    ([path, entry]) =>
      (installed[path] === undefined && entry.optional !== true && entry.devOptional !== true) ||
      (installed[path] !== undefined && installed[path].version !== entry.version),
  ).length;
}

/** The lock file's entries without those that only development needs, unless its tools are asked for. */
function wantedPackages(lockText, tools) {
  return Object.entries(JSON.parse(lockText).packages).filter(
    ([path, entry]) => path !== "" && (tools || entry.dev !== true),
  );
}

async function install() {
  const lockText = readText(join(root, "package-lock.json")) ?? "";
  const what = withTools ? "what running needs and the tools of development" : "what running needs";
  const why = existsSync(modules)
    ? withTools && listMissing(false) === 0
      ? "only what running needs was installed so far"
      : "what is there is not the lock file's"
    : "nothing is installed yet";
  const npm = findNpm();
  const [inWords, ...command] = npm === null ? bunInstall() : npmInstall(npm);
  console.error(`Installing ${what}, once, with ${inWords}: ${why}.`);
  // What an installer prints is talk: standard output belongs to the program that is started.
  const { code, error } = await runChild(command, { cwd: root, stdio: ["ignore", 2, 2] });
  if (code !== 0)
    fail(`${inWords} did not succeed${error ? ` (${error.message})` : ""}; see above, then try again.`);
  if (npm === null) {
    rmSync(npmNote(), { force: true });
    writeFileSync(stampFile(), stamp(lockText, withTools));
  }
  const count = wantedPackages(lockText, withTools).filter(([path]) => existsSync(join(root, path))).length;
  console.error(
    `Installed ${count} packages${withTools ? "" : "; npm test and npm run check add the tools of development"}.`,
  );
}

/** What is there already is kept where it is right: only `npm ci` mends what is wrong, and it begins anew. */
function npmInstall(npm) {
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  if (withTools && listMissing(false) === 0)
    return ["npm install", ...npm, "install", "--no-save", "--include=dev", ...quiet];
  return ["npm ci", ...npm, "ci", withTools ? "--include=dev" : "--omit=dev", ...quiet];
}

function bunInstall() {
  return [
    "bun install",
    requireAnyBun(),
    "install",
    "--no-save",
    "--silent",
    ...(withTools ? [] : ["--omit=dev"]),
  ];
}

/** The command that runs npm, or null where there is none. */
function findNpm() {
  const running = process.env.npm_execpath;
  if (running?.endsWith("npm-cli.js") && process.versions.bun === undefined)
    return [process.execPath, running];
  const onPath = findOnPath(isWindows ? "npm.cmd" : "npm");
  const node = findOnPath(isWindows ? "node.exe" : "node");
  return onPath === null || node === null ? null : [onPath];
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

/** Starts Bun on this terminal; this process ends as it ends. */
async function run(bun, words) {
  const isService = words[0]?.startsWith("src/") === true;
  // A script's processes end with it at once. The service ends by itself, in order, and what it opened (a browser) stays.
  const command = isService ? [bun, ...words] : [bun, "--no-orphans", ...words];
  // The flag is handed down by scripts, whose tests start services this way too.
  const { BUN_FEATURE_FLAG_NO_ORPHANS: _, ...own } = process.env;
  const env = isService ? { ...own, RELAY_PARENT_PID: String(process.pid) } : process.env;
  const { code, signal, error } = await runChild(command, { stdio: "inherit", env });
  if (error) fail(`Bun could not be started: ${error.message}.`);
  process.exit(code ?? 128 + (constants.signals[signal] ?? 1));
}

function runChild([file, ...words], options) {
  return new Promise((resolve) => {
    running = spawn(file, words, { ...options, shell: isWindows && file.endsWith(".cmd") });
    running.on("error", (error) => resolve({ code: null, signal: null, error }));
    running.on("exit", (code, signal) => {
      running = null;
      resolve({ code, signal });
    });
  });
}

/** Signals reach what runs once: a terminal's Ctrl+C reaches it by itself, and passing it on would make it two. */
function passSignals() {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (running === null) process.exit(128 + constants.signals[signal]);
      if (signal !== "SIGINT" || !process.stdin.isTTY) running.kill(signal);
    });
  }
}

/** A package runner that is killed tells nobody. It is the parent, or stands behind the shell that it started this with. */
function watchRunner() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const above = isWindows ? null : parentOf(parent);
  const watch = setInterval(() => {
    if (process.ppid === parent && isAlive(parent) && (above === null || parentOf(parent) === above)) return;
    clearInterval(watch);
    if (running === null) process.exit(1);
    running.once("exit", () => process.exit(1));
    running.kill("SIGTERM");
    setTimeout(() => running?.kill("SIGKILL"), ENDS_WITHIN_MS);
  }, LOOK_EVERY_MS);
  watch.unref();
}

/** The parent of a process where the system tells it in a file; null elsewhere. */
function parentOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[1];
  } catch {
    return null;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function npmNote() {
  return join(modules, ".package-lock.json");
}

function stampFile() {
  return join(modules, ".lock-stamp");
}

/** One begins with the other: who installed everything installed what running needs. */
function stamp(lockText, tools) {
  return `${createHash("sha256").update(lockText).digest("hex")}\n${tools ? "with the tools of development\n" : ""}`;
}

function readText(file) {
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
