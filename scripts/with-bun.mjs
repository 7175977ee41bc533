/**
 * Runs `bun <args>` for the package scripts on a machine that has only Node and npm, or only Bun. It first installs packages that are missing or
 * differ from the lock file. Running needs these packages; a leading --tools adds those of development. Its child ends with it, and it ends with the
 * package runner that started it. It imports only modules of Node, and never changes the lock file.
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
const POLL_MS = 500;
/** Time that a child gets to end after SIGTERM. */
const STOP_TIMEOUT_MS = 15_000;

let running = null;
passSignals();
watchRunner();

const args = process.argv.slice(2);
const withTools = args[0] === "--tools";
if (withTools) args.shift();
if (countMissing(withTools) !== 0) await install();
await run(requireBun(), args);

/** Counts the packages that are missing or differ from the lock file. Returns Infinity if the installed packages are unknown. */
function countMissing(tools) {
  const lockText = readText(join(root, "package-lock.json"));
  if (lockText === null) return existsSync(modules) ? 0 : Infinity;
  // npm records the packages that it installed. Bun does not, so `install` writes a stamp.
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

/** Lists the entries of the lock file: all of them with `tools`, otherwise without those that only development needs. */
function wantedPackages(lockText, tools) {
  return Object.entries(JSON.parse(lockText).packages).filter(
    ([path, entry]) => path !== "" && (tools || entry.dev !== true),
  );
}

async function install() {
  const lockText = readText(join(root, "package-lock.json")) ?? "";
  const what = withTools ? "what running needs and the tools of development" : "what running needs";
  const why = existsSync(modules)
    ? withTools && countMissing(false) === 0
      ? "only what running needs was installed so far"
      : "what is there is not the lock file's"
    : "nothing is installed yet";
  const npm = findNpm();
  const [inWords, ...command] = npm === null ? bunInstall() : npmInstall(npm);
  console.error(`Installing ${what}, once, with ${inWords}: ${why}.`);
  // The installer prints to standard error, because standard output belongs to the program.
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

/** Returns the words for the log and the command. `npm install` adds to correct packages. `npm ci` replaces wrong ones, and all others. */
function npmInstall(npm) {
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  if (withTools && countMissing(false) === 0)
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

/** Finds the command that runs npm. Returns null if there is none. */
function findNpm() {
  const running = process.env.npm_execpath;
  if (running?.endsWith("npm-cli.js") && process.versions.bun === undefined)
    return [process.execPath, running];
  const onPath = findOnPath(isWindows ? "npm.cmd" : "npm");
  const node = findOnPath(isWindows ? "node.exe" : "node");
  return onPath === null || node === null ? null : [onPath];
}

/** Returns any Bun, which is enough to install packages. Ends the process if there is none. */
function requireAnyBun() {
  if (process.versions.bun !== undefined) return process.execPath;
  return (
    findOnPath(isWindows ? "bun.exe" : "bun") ??
    fail("Neither npm nor Bun is on the PATH; install one of them.")
  );
}

/** Returns the Bun of the version in package.json: this process, the installed package, or the PATH. Ends the process if there is none. */
function requireBun() {
  if (process.versions.bun === wanted) return process.execPath;
  const exe = isWindows ? "bun.exe" : "bun";
  const candidates = [
    join(modules, "bun", "bin", "bun.exe"),
    join(modules, ".bin", exe),
    // If the install script of the package did not run, the executable is only in the platform's package.
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
  // On a machine without Node, Bun gives scripts its own `node`, which is not Node.
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => !/bun-node/.test(folder));
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}

/** Runs Bun on this terminal, and ends this process with its exit code. */
async function run(bun, words) {
  const isService = words[0]?.startsWith("src/") === true;
  // The processes of a script end with the script. The service stops gracefully, and a browser that it opened stays open.
  const command = isService ? [bun, ...words] : [bun, "--no-orphans", ...words];
  // A script passes the flag on to the services that its tests start, where it must not apply.
  const { BUN_FEATURE_FLAG_NO_ORPHANS: _, ...own } = process.env;
  const launched = { RELAY_PARENT_PID: String(process.pid), RELAY_PROGRAM: programWord() };
  const env = isService ? { ...own, ...launched } : process.env;
  const { code, signal, error } = await runChild(command, { stdio: "inherit", env });
  if (error) fail(`Bun could not be started: ${error.message}.`);
  process.exit(code ?? 128 + (constants.signals[signal] ?? 1));
}

/** Returns the words that start this command line again, for the commands that Relay prints. Empty: the service uses its own name. */
function programWord() {
  const { npm_lifecycle_event: script, npm_config_user_agent: agent } = process.env;
  if (script !== "start" && script !== "relay") return "";
  return agent?.startsWith("bun") === true ? "bun run relay" : "npm run relay --";
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

/** Passes each signal on to the child once. The terminal itself sends Ctrl+C to the child. */
function passSignals() {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (running === null) process.exit(128 + constants.signals[signal]);
      if (signal !== "SIGINT" || !process.stdin.isTTY) running.kill(signal);
    });
  }
}

/**
 * Ends this process after its package runner, which sends no signal if it is killed. The runner is the parent process, or the parent of the shell
 * between them.
 */
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
    setTimeout(() => running?.kill("SIGKILL"), STOP_TIMEOUT_MS);
  }, POLL_MS);
  watch.unref();
}

/** Reads the parent of a process from /proc. Returns null if the system has no such file. */
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

/** Writes the stamp of an installation. The stamp with tools begins with the one without, because it includes those packages. */
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
