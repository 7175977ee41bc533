/**
 * A release to npm: its command builds the executables of all systems and writes the packages, npm publishes them to a real registry, and an
 * ordinary user installs them in an empty folder with scripts disabled. The executables of other systems are read here, not run.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import packageJson from "../../package.json";
import { RELEASED, type ReleasedSystem } from "../../scripts/release/systems.ts";
import { startCli } from "../kit/cli-process.ts";
import { startNpmRegistry } from "../kit/npm-registry.ts";
import { TEST_MS } from "../kit/patience.ts";

const PROJECT = resolve(import.meta.dir, "../..");
const { version } = packageJson;
/** The user without rights, for tests that run as root. A machine without setpriv installs as root. */
const NOBODY = 65_534;
const asUser =
  process.getuid?.() === 0 && Bun.which("setpriv") !== null ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", "--"] : [];

let place: string;
let registry: Awaited<ReturnType<typeof startNpmRegistry>>;
let published: string[];

/** Creates an empty folder of the user. */
function makeFolder(name: string): string {
  const folder = join(place, name);
  mkdirSync(folder);
  if (asUser.length > 0) chownSync(folder, NOBODY, NOBODY);
  return folder;
}

/** Returns the variables of a user whose npm knows only the registry of this test. The publisher is another user with another home folder. */
function makeEnv(home = "home"): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => !/^(RELAY_|npm_|BUN_|NODE|INIT_CWD$|XDG_)/.test(name));
  return { ...(Object.fromEntries(own) as Record<string, string>), HOME: join(place, home), npm_config_userconfig: join(place, "npmrc") };
}

async function run(command: readonly string[], cwd: string, home?: string, env: Record<string, string | undefined> = makeEnv(home)) {
  const child = Bun.spawn([...command], { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [said, told, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { said, told, code };
}

async function mustRun(command: readonly string[], cwd: string, home?: string, env?: Record<string, string | undefined>): Promise<string> {
  const { said, told, code } = await run(command, cwd, home, env);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${said}${told}`);
  return said;
}

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "relay npm "));
  chmodSync(place, 0o755);
  makeFolder("home");
  mkdirSync(join(place, "publisher"));
  registry = await startNpmRegistry();
  writeFileSync(join(place, "npmrc"), registry.npmrc);
  const out = join(place, "release");
  // The build fetches the Bun of other systems from the registry of this machine. The registry of this test does not have it.
  const said = await mustRun([process.execPath, "scripts/release/main.ts", "--npm", "--out", out], PROJECT, undefined, process.env);
  published = [...said.matchAll(/^npm publish .* # (\S+)$/gm)].map(([, name = ""]) => name);
  for (const name of published) await mustRun(["npm", "publish", join(out, "npm", name)], place, "publisher");
}, 2 * TEST_MS);

afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  rmSync(place, { recursive: true, force: true });
}, TEST_MS);

test("every package of the table is published, and the launcher last", () => {
  const libraries = ["relay-service-client", "relay-service-verifier"];
  expect(published).toEqual([...RELEASED.map(({ name }) => `@relay-service/${name}`), ...libraries, "relay-service"]);
});

/** Says for which system an executable is, by the header of its format. */
function readHeader(head: Buffer): { os: string; cpu: string | undefined } {
  if (head.subarray(0, 4).toString("latin1") === "\x7fELF")
    return {
      os: "linux",
      cpu: new Map([
        [62, "x64"],
        [183, "arm64"],
      ]).get(head.readUInt16LE(18)),
    };
  if (head.readUInt32LE(0) === 0xfeedfacf)
    return {
      os: "darwin",
      cpu: new Map([
        [0x0100_0007, "x64"],
        [0x0100_000c, "arm64"],
      ]).get(head.readUInt32LE(4)),
    };
  const pe = head.readUInt32LE(0x3c);
  const isPe = head.toString("latin1", 0, 2) === "MZ" && head.toString("latin1", pe, pe + 4) === "PE\0\0";
  return { os: isPe ? "win32" : "unknown", cpu: head.readUInt16LE(pe + 4) === 0x8664 ? "x64" : undefined };
}

async function readManifest(name: string): Promise<Record<string, unknown>> {
  const answer = (await (await fetch(`${registry.url}${name.replace("/", "%2f")}`)).json()) as {
    versions: Record<string, Record<string, unknown>>;
  };
  return answer.versions[version] ?? {};
}

test.each(RELEASED.map((system) => [system.name, system] as const))(
  "the package for %s has that system's executable",
  async (name, system: ReleasedSystem) => {
    const manifest = await readManifest(`@relay-service/${name}`);
    expect(manifest).toMatchObject({ os: [system.os], cpu: [system.cpu], license: "MIT" });
    expect(manifest.libc).toEqual(system.libc === null ? undefined : [system.libc.name]);
    expect(manifest.scripts).toBeUndefined();
    const file = registry.fileOf(`@relay-service/${name}`, version);
    const listed = await mustRun(["tar", "--list", "--verbose", "--gzip", "--file", file], place);
    const [, mode, path = ""] = /^(\S+) .* (package\/relay(?:\.exe)?)$/m.exec(listed) ?? [];
    expect(mode).toBe("-rwxr-xr-x");
    const unpacked = makeFolder(`unpacked ${name}`);
    await mustRun(["tar", "--extract", "--gzip", "--file", file, "--directory", unpacked, path], place);
    const head = Buffer.from(await Bun.file(join(unpacked, path)).slice(0, 4096).arrayBuffer());
    expect(readHeader(head)).toEqual({ os: system.os, cpu: system.cpu });
    if (system.libc !== null) expect(head.includes(`${system.libc.loader}\0`)).toBe(true);
    rmSync(unpacked, { recursive: true });
  },
);

test("the launcher has no script and no dependency that npm must have", async () => {
  const manifest = await readManifest("relay-service");
  expect(Object.keys(manifest).filter((key) => ["scripts", "dependencies", "peerDependencies"].includes(key))).toEqual([]);
});

/** Starts the service, sends the example with the command that it prints, and stops it as a supervisor does. */
async function playExample(command: readonly string[], cwd: string, word: string): Promise<void> {
  // The variables of the package runner that runs these tests must not reach the commands.
  const clean = ["env", "-i", ...Object.entries(makeEnv()).map(([name, value]) => `${name}=${value}`)];
  const options = { cwd, command: [...clean, ...asUser, ...command] };
  await using dev = startCli(["dev", "--example", "--port", "0"], options);
  const tryIt = await dev.line("Try it");
  await dev.line("Press Ctrl+C to stop");
  expect(tryIt.trim().replace(/\s+/g, " ")).toBe(`Try it ${word} send checkout-completed`);
  await using send = startCli(["send", "checkout-completed"], options);
  expect(await send.line("is done")).toContain(`More: ${word} events show`);
  expect(await send.exited).toBe(0);
  dev.kill("SIGTERM");
  await dev.line("Stopping");
  await dev.silent;
}

describe("an ordinary user with scripts disabled", () => {
  test("`npx` in an empty folder runs, sends and stops", async () => {
    const cwd = makeFolder("npx");
    const npx = ["npx", "--yes", "--ignore-scripts", "relay-service"];
    expect(await mustRun([...asUser, ...npx, "--version"], cwd)).toBe(`${version}\n`);
    expect(readdirSync(cwd)).toEqual([]);
    await playExample(npx, cwd, "npx relay-service");
  });

  test("a global installation gives the command relay", async () => {
    const prefix = makeFolder("global");
    await mustRun([...asUser, "npm", "install", "--global", "--prefix", prefix, "--ignore-scripts", "relay-service"], place);
    const relay = join(prefix, "bin/relay");
    expect(await mustRun([...asUser, relay, "--version"], place)).toBe(`${version}\n`);
    await playExample([relay], makeFolder("with relay"), "relay");
  });

  test("a project installs only the executable of its system, and `npx` runs it", async () => {
    const cwd = makeFolder("project");
    await mustRun([...asUser, "npm", "install", "--ignore-scripts", "relay-service"], cwd);
    const packages = readdirSync(join(cwd, "node_modules/@relay-service"));
    const own = RELEASED.filter(({ os, cpu, libc }) => os === process.platform && cpu === process.arch && (libc === null || existsSync(libc.loader)));
    expect(own.map(({ name }) => name)).toContain(packages.join());
    expect(statSync(join(cwd, "node_modules/@relay-service", packages.join(), "relay")).mode & 0o777).toBe(0o755);
    expect(JSON.parse(readFileSync(join(cwd, "package.json"), "utf8")).dependencies).toHaveProperty("relay-service");
    for (const word of ["relay-service", "relay"]) expect(await mustRun([...asUser, "npx", word, "--version"], cwd)).toBe(`${version}\n`);
    const failed = await run([...asUser, "npx", "relay-service", "validate"], cwd);
    expect(failed).toMatchObject({ code: 1, told: expect.stringContaining("npx relay-service help not_found") });
  });

  test("without optional dependencies the command says what to do", async () => {
    const cwd = makeFolder("omitted");
    await mustRun([...asUser, "npm", "install", "--ignore-scripts", "--omit=optional", "relay-service"], cwd);
    const { code, told } = await run([...asUser, "npx", "relay-service", "--version"], cwd);
    expect(told).toContain("install again without --omit=optional");
    expect(code).toBe(127);
  });
});
