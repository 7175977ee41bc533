/**
 * A real npm registry (verdaccio) on loopback, without any other registry behind it. Its packages have a lock file of their own and are installed
 * at the first use, because no other test and no developer needs them.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { findFreePort } from "./cli-process.ts";
import { poll } from "./patience.ts";

const OWN_LOCK = join(import.meta.dir, "npm-registry");
const INSTALLED = resolve(import.meta.dir, "../../node_modules/.cache/npm-registry");

interface NpmRegistry extends AsyncDisposable {
  /** The address with a slash at its end. */
  readonly url: string;
  /** The text of an .npmrc with which npm installs from this registry and publishes to it. */
  readonly npmrc: string;
  /** The file of a published package. */
  fileOf(name: string, version: string): string;
}

const config = (folder: string): string =>
  JSON.stringify({
    storage: join(folder, "storage"),
    auth: { htpasswd: { file: join(folder, "htpasswd") } },
    uplinks: {},
    packages: { "**": { access: "$all", publish: "$anonymous" } },
    // A package with an executable has about 70 MB, and more as JSON.
    max_body_size: "400mb",
    web: { enable: false },
    log: { type: "stdout", format: "json", level: "warn" },
  });

/** Starts the registry with no packages. */
export async function startNpmRegistry(): Promise<NpmRegistry> {
  installRegistry();
  const folder = mkdtempSync(join(tmpdir(), "relay-npm-registry-"));
  const port = await findFreePort();
  const configFile = join(folder, "config.json");
  writeFileSync(configFile, config(folder));
  const command = [join(INSTALLED, "node_modules/verdaccio/bin/verdaccio"), "--config", configFile, "--listen", `127.0.0.1:${port}`];
  const child = Bun.spawn([requireNode(), ...command], { stdin: "ignore", stdout: Bun.file(join(folder, "log")), stderr: "ignore" });
  const url = `http://127.0.0.1:${port}/`;
  const answers = (): Promise<boolean> =>
    fetch(`${url}-/ping`).then(
      ({ ok }) => ok,
      () => false,
    );
  if (!(await poll(answers, (ok) => ok || child.exitCode !== null))) {
    child.kill("SIGKILL");
    throw new Error(`The registry did not start: ${readFileSync(join(folder, "log"), "utf8")}`);
  }
  return {
    url,
    // npm publishes only with a token, and this registry accepts any.
    npmrc: `registry=${url}\n//127.0.0.1:${port}/:_authToken=anyone\naudit=false\nfund=false\nupdate-notifier=false\n`,
    fileOf: (name, version) => join(folder, "storage", name, `${name.replace(/^.*\//, "")}-${version}.tgz`),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function requireNode(): string {
  return Bun.which("node") ?? "node";
}

/** Installs the registry's packages if they are missing or differ from its lock file. */
function installRegistry(): void {
  const lock = readFileSync(join(OWN_LOCK, "package-lock.json"), "utf8");
  const stamp = join(INSTALLED, "installed.lock");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  mkdirSync(INSTALLED, { recursive: true });
  for (const file of ["package.json", "package-lock.json"]) writeFileSync(join(INSTALLED, file), readFileSync(join(OWN_LOCK, file)));
  const { exitCode, stderr } = Bun.spawnSync(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: INSTALLED, stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`The registry could not be installed: ${stderr}`);
  writeFileSync(stamp, lock);
}
