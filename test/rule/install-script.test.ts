/**
 * The install script of a release runs in an empty home, with only the tools that it needs on the PATH, and downloads from a local server. The
 * executables are small scripts that print a version, so the systems that this machine cannot run are tried too.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { archiveFile, writeArchives } from "../../scripts/release/archives.ts";
import { writeChecksums } from "../../scripts/release/checksums.ts";
import { writeInstallScript } from "../../scripts/release/installers.ts";
import { executableFile, RELEASED } from "../../scripts/release/systems.ts";
import { tellNotRun } from "../kit/not-run.ts";

const place = mkdtempSync(join(tmpdir(), "relay install "));
const NEWEST = "1.2.3";
const TIME = new Date("2026-05-06T07:08:09Z");
const OLDER = "1.2.2";
const MAC = RELEASED.filter(({ name }) => name === "darwin-arm64");
const ARCHIVE = "relay-darwin-arm64.tar.gz";

/** Writes the files of a version that a server offers. */
async function writeVersion(version: string, systems = RELEASED): Promise<string> {
  const out = join(place, "served", version);
  const release = { built: join(place, "built", version), out, systems, version, time: TIME, repository: null };
  mkdirSync(out, { recursive: true });
  mkdirSync(release.built, { recursive: true });
  for (const system of systems) writeFileSync(join(release.built, executableFile(system)), `#!/bin/sh\necho ${version}\n`);
  const files = [...(await writeArchives(release)), ...writeInstallScript(release)];
  writeChecksums(out, files);
  return out;
}

const newest = await writeVersion(NEWEST);
await writeVersion(OLDER, MAC);
const script = join(newest, "install.sh");

/** Servers with a fault. The first part of the path names the fault, and `good` has none. */
const FAULTS: Readonly<Record<string, (bytes: Buffer, file: string) => Buffer | null>> = {
  good: (bytes) => bytes,
  truncated: (bytes, file) => (file === ARCHIVE ? bytes.subarray(0, bytes.length / 2) : bytes),
  empty: (bytes, file) => (file === ARCHIVE ? Buffer.alloc(0) : bytes),
  changed: (bytes, file) => (file === ARCHIVE ? Buffer.concat([bytes, Buffer.from("more")]) : bytes),
  unlisted: (bytes, file) => (file === "checksums.txt" ? Buffer.from("") : bytes),
  mixed: (bytes) => bytes,
  without: (bytes, file) => (file === ARCHIVE ? null : bytes),
};

const server = createServer((request, response) => {
  const [, fault = "", kind, part = "", last = ""] = (request.url ?? "").split("/");
  const cut = fault === "cut";
  const folder = kind === "latest" || fault === "mixed" ? newest : join(place, "served", part.replace("v", ""));
  const file = last;
  const path = join(folder, file);
  const bytes = existsSync(path) ? (FAULTS[cut ? "good" : fault]?.(readFileSync(path), file) ?? null) : null;
  if (bytes === null) return void response.writeHead(404).end();
  response.writeHead(200, { "content-length": bytes.length });
  if (!cut || file !== ARCHIVE) return void response.end(bytes);
  response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

afterAll(() => {
  server.close();
  rmSync(place, { recursive: true });
});

const ALWAYS = ["mkdir", "mktemp", "rm", "tar", "gzip", "chmod", "mv", "sed"];
const have = (tool: string): boolean => Bun.which(tool) !== null;

interface Machine {
  /** The words of `uname -s` and `uname -m`. Null takes the program of this machine. */
  uname?: readonly [kernel: string, machine: string] | null;
  tools?: readonly string[];
  /** The program that is missing. */
  without?: string;
  shell?: readonly string[];
  args?: readonly string[];
  /** The fault of the server. */
  from?: string;
  env?: Record<string, string>;
  home?: string;
  input?: string;
}

let count = 0;

/** Makes a folder with only the named programs. */
function makePath({ uname = ["Darwin", "arm64"], tools = [have("curl") ? "curl" : "wget", "sha256sum"], without }: Machine): string {
  const path = join(place, `path ${count++}`);
  mkdirSync(path);
  for (const tool of [...ALWAYS, ...tools].filter((one) => one !== without)) symlinkSync(Bun.which(tool) ?? tool, join(path, tool));
  if (uname === null) symlinkSync(Bun.which("uname") ?? "uname", join(path, "uname"));
  else writeFileSync(join(path, "uname"), `#!/bin/sh\n[ "$1" = -s ] && echo ${uname[0]} || echo ${uname[1]}\n`, { mode: 0o755 });
  return path;
}

function makeHome(): string {
  const home = join(place, `home ${count++}`);
  mkdirSync(home);
  return home;
}

async function install(machine: Machine = {}) {
  const { shell = ["sh"], args = [], from = "good", home = makeHome(), input } = machine;
  const [program = "sh", ...words] = shell;
  const env = { PATH: makePath(machine), HOME: home, RELAY_DOWNLOAD_URL: `${origin}/${from}`, ...machine.env };
  const source = input === undefined ? [script, ...args] : ["-s", "--", ...args];
  const child = Bun.spawn([Bun.which(program) ?? program, ...words, ...source], {
    cwd: home,
    env: Object.fromEntries(Object.entries(env).filter(([, value]) => value !== "")),
    stdin: input === undefined ? "ignore" : new TextEncoder().encode(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, told, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { said, told, code, home, relay: join(home, ".local/bin/relay") };
}

function run(relay: string): string {
  return Bun.spawnSync([relay, "--version"]).stdout.toString().trim();
}

const downloaders = ["curl", "wget"].filter(have);
if (downloaders.length === 0 || !have("tar")) {
  tellNotRun("the install script", "this machine has neither curl nor wget, or no tar");
} else {
  describe("in an empty home", () => {
    test("the script installs the newest version, which everyone may run, and leaves nothing else", async () => {
      const { said, told, code, relay, home } = await install();
      expect({ told, code }).toEqual({ told: "", code: 0 });
      expect(said).toContain(`Installed Relay ${NEWEST} as ${relay}`);
      expect(said).toContain(`export PATH="${home}/.local/bin:$PATH"`);
      expect(run(relay)).toBe(NEWEST);
      expect(statSync(relay).mode & 0o777).toBe(0o755);
      expect(readdirSync(join(home, ".local/bin"))).toEqual(["relay"]);
      expect(readdirSync(home)).toEqual([".local"]);
    });

    test("the script runs from a pipe, as the documentation shows it", async () => {
      const { code, relay } = await install({ input: readFileSync(script, "utf8"), args: ["--version", OLDER] });
      expect([code, run(relay)]).toEqual([0, OLDER]);
    });

    test.each(["curl", "wget"])("%s is enough", async (tool) => {
      if (!have(tool)) return tellNotRun(`the install script with ${tool}`, `this machine has no ${tool}`);
      const { code, relay } = await install({ tools: [tool, "sha256sum"] });
      expect([code, run(relay)]).toEqual([0, NEWEST]);
    });

    test.each(["sha256sum", "shasum", "openssl"])("%s is enough to check the download", async (tool) => {
      if (!have(tool)) return tellNotRun(`the install script with ${tool}`, `this machine has no ${tool}`);
      const tools = [downloaders[0] ?? "", tool];
      expect((await install({ tools })).code).toBe(0);
      expect((await install({ tools, from: "changed" })).told).toContain(`${ARCHIVE} is damaged or was changed`);
    });

    test.each(["sh", "dash", "bash", "busybox sh", "zsh"])("the script runs in %s", async (name) => {
      const shell = name.split(" ");
      if (!have(shell[0] ?? "")) return tellNotRun(`the install script in ${name}`, `this machine has no ${shell[0]}`);
      const { told, code, relay } = await install({ shell });
      expect([told, code, run(relay)]).toEqual(["", 0, NEWEST]);
    });

    test("a strict umask does not take the executable from others", async () => {
      const { code, relay } = await install({ shell: ["sh", "-c", 'umask 077; . "$0"'] });
      expect([code, statSync(relay).mode & 0o777]).toEqual([0, 0o755]);
    });

    test("RELAY_INSTALL_DIR names another folder, also one in the PATH", async () => {
      const home = makeHome();
      const { said, code } = await install({ home, env: { RELAY_INSTALL_DIR: join(home, "own bin"), PATH: `${makePath({})}:${home}/own bin` } });
      expect([code, run(join(home, "own bin/relay"))]).toEqual([0, NEWEST]);
      expect(said).not.toContain("PATH");
    });

    test("a folder that is named relative to the present one is put into the PATH with its complete path", async () => {
      const home = makeHome();
      const { said, code } = await install({ home, env: { RELAY_INSTALL_DIR: "own bin" } });
      expect([code, run(join(home, "own bin/relay"))]).toEqual([0, NEWEST]);
      expect(said).toContain(`export PATH="${home}/own bin:$PATH"`);
    });

    test("the script names another relay that comes first in the PATH", async () => {
      const home = makeHome();
      const path = makePath({});
      writeFileSync(join(path, "relay"), "#!/bin/sh\n", { mode: 0o755 });
      const { said } = await install({ home, env: { PATH: `${path}:${home}/.local/bin` } });
      expect(said).toContain(`The command relay still starts ${path}/relay`);
    });
  });

  describe("each system", () => {
    const own = RELEASED.find(({ os, cpu, libc }) => os === process.platform && cpu === process.arch && (libc === null || existsSync(libc.loader)));
    test.each([
      ["Darwin", "arm64", "darwin-arm64"],
      ["Darwin", "x86_64", "darwin-x64"],
    ])("%s %s gets the executable of %s", async (kernel, machine, name) => {
      const { said, code } = await install({ uname: [kernel, machine] });
      expect([code, said]).toEqual([0, expect.stringContaining(`Downloading relay-${name}.tar.gz`)]);
    });

    test("this machine gets the executable that the table has for it", async () => {
      const { said, code } = await install({ uname: null });
      if (own === undefined || own.os === "win32") expect(code).toBe(1);
      else expect([code, said]).toEqual([0, expect.stringContaining(`Downloading ${archiveFile(own)}`)]);
    });

    test("the script names every system of the table but Windows, with the file that starts its executables", () => {
      const rows = [...readFileSync(script, "utf8").matchAll(/^(?:Linux|Darwin) .*$/gm)];
      expect(rows.map(([row]) => row)).toEqual(
        RELEASED.filter(({ os }) => os !== "win32").map(
          ({ os, cpu, libc, name }) => `${os === "linux" ? "Linux" : "Darwin"} ${cpu} ${libc?.loader ?? "-"} ${name}`,
        ),
      );
    });

    const foreign = process.arch === "arm64" ? "x86_64" : "aarch64";
    test.each([
      ["Linux", "riscv64", "There is no executable for Linux riscv64"],
      ["FreeBSD", "amd64", "There is no executable for FreeBSD amd64"],
      ["MINGW64_NT-10.0", "x86_64", "Use Scoop or npm"],
      ["Linux", foreign, "no C library that a released executable needs"],
    ])("%s %s is refused", async (kernel, machine, sentence) => {
      const { told, code, home } = await install({ uname: [kernel, machine] });
      expect([code, told]).toEqual([1, expect.stringContaining(sentence)]);
      expect(readdirSync(home)).toEqual([]);
    });
  });

  describe("an upgrade", () => {
    test("replaces the older version, and a version that is named goes back", async () => {
      const { home, relay } = await install({ args: ["--version", OLDER] });
      expect(run(relay)).toBe(OLDER);
      await install({ home });
      expect(run(relay)).toBe(NEWEST);
      await install({ home, args: [`--version=v${OLDER}`] });
      expect(run(relay)).toBe(OLDER);
    });

    test.each([
      ["truncated", "is damaged or was changed"],
      ["empty", "is damaged or was changed"],
      ["changed", "is damaged or was changed"],
      ["unlisted", `checksums.txt has no line for ${ARCHIVE}`],
      ["without", `${ARCHIVE} could not be downloaded`],
      ["cut", `${ARCHIVE} could not be downloaded`],
    ])("from a server whose archive is %s is refused, and the older version stays", async (from, sentence) => {
      const { home, relay } = await install({ args: ["--version", OLDER] });
      const { told, code } = await install({ home, from });
      expect([code, told]).toEqual([1, expect.stringContaining(sentence)]);
      expect(told).toContain("Nothing was changed");
      expect(run(relay)).toBe(OLDER);
      expect(readdirSync(join(home, ".local/bin"))).toEqual(["relay"]);
    });

    test("to an executable that does not start here is refused, and the older version stays", async () => {
      const { home, relay } = await install({ args: ["--version", OLDER] });
      const path = makePath({});
      // A tar that unpacks something else stands for an executable of another system.
      rmSync(join(path, "tar"));
      writeFileSync(join(path, "tar"), '#!/bin/sh\nprintf "#!/bin/sh\\nexit 126\\n" > "$4/relay"\n', { mode: 0o755 });
      const { told, code } = await install({ home, env: { PATH: path } });
      expect([code, told]).toEqual([1, expect.stringContaining("does not start here")]);
      expect(run(relay)).toBe(OLDER);
    });

    test("names the library that Alpine lacks", async () => {
      const path = makePath({ uname: ["Linux", "x86_64"] });
      rmSync(join(path, "tar"));
      writeFileSync(join(path, "tar"), '#!/bin/sh\nprintf "#!/bin/sh\\nexit 127\\n" > "$4/relay"\n', { mode: 0o755 });
      const input = readFileSync(script, "utf8").replace("/lib64/ld-linux-x86-64.so.2", "/none").replace("/lib/ld-musl-x86_64.so.1", "/");
      const { told, code } = await install({ input, env: { PATH: path } });
      expect([code, told]).toEqual([
        1,
        expect.stringContaining("On Alpine, run apk add libstdc++, and then this script again. Nothing was changed."),
      ]);
    });

    test("from a mirror whose named version is another one is refused", async () => {
      const { told, code } = await install({ args: ["--version", OLDER], from: "mixed" });
      expect([code, told]).toEqual([1, expect.stringContaining(`has version ${NEWEST}, not ${OLDER}. Nothing was changed.`)]);
    });

    test("half of the script runs nothing", async () => {
      const text = readFileSync(script, "utf8");
      const halves = [0.25, 0.5, 0.75, 0.99].map((share) => text.slice(0, Math.floor(text.length * share)));
      for (const input of halves) {
        const { said, home } = await install({ input });
        expect([said, readdirSync(home)]).toEqual(["", []]);
      }
    });
  });

  describe("a refusal says what to do", () => {
    const rows: readonly [what: string, machine: Machine, sentence: string][] = [
      ["an unknown option", { args: ["--sudo"] }, "The option --sudo is unknown. Use --version"],
      ["a version that is no version", { args: ["--version", "../x"] }, '"../x" is no version. Use a version such as 1.2.3'],
      ["no version after --version", { args: ["--version"] }, "--version needs a version"],
      ["a version that does not exist", { args: ["--version", "9.9.9"] }, "Check the version and the connection"],
      ["no home", { env: { HOME: "" } }, "Set RELAY_INSTALL_DIR"],
      ["no address", { env: { RELAY_DOWNLOAD_URL: "" } }, "Set RELAY_DOWNLOAD_URL"],
      ["no tool to download", { tools: ["sha256sum"] }, "Neither curl nor wget is on the PATH"],
      ["no tool to check", { tools: [downloaders[0] ?? ""] }, "sha256sum, shasum and openssl are missing"],
      ["no tool to unpack", { without: "tar" }, "It needs tar, gzip, and free space"],
      ["a folder below a file", { env: { RELAY_INSTALL_DIR: join(script, "bin") } }, "cannot be created. Set RELAY_INSTALL_DIR"],
    ];
    test.each(rows)("%s", async (_, machine, sentence) => {
      const { told, code, relay } = await install(machine);
      expect([code, told]).toEqual([1, expect.stringContaining(sentence)]);
      expect(existsSync(relay)).toBe(false);
    });

    test("a folder in place of the executable", async () => {
      const home = makeHome();
      mkdirSync(join(home, ".local/bin/relay"), { recursive: true });
      const { told, code } = await install({ home });
      expect([code, told]).toEqual([1, expect.stringContaining("is a folder. Move it away")]);
    });

    test("a folder that the user cannot write", async () => {
      if (process.getuid?.() === 0) return tellNotRun("the install script in a read-only folder", "root may write everywhere");
      const home = makeHome();
      mkdirSync(join(home, ".local/bin"), { recursive: true });
      chmodSync(join(home, ".local/bin"), 0o555);
      const { told, code } = await install({ home });
      chmodSync(join(home, ".local/bin"), 0o755);
      expect([code, told]).toEqual([1, expect.stringContaining("cannot be written. Set RELAY_INSTALL_DIR")]);
    });
  });

  test("a release with a repository downloads from there over https", () => {
    const out = join(place, "published");
    mkdirSync(out);
    const [file = ""] = writeInstallScript({
      built: out,
      out,
      systems: RELEASED,
      version: NEWEST,
      time: TIME,
      repository: "https://github.com/owner/name",
    });
    const text = readFileSync(file, "utf8");
    expect(text).toContain("RELAY_DOWNLOAD_URL:-https://github.com/owner/name/releases}\n");
    expect(text).toContain("curl -fsSL https://github.com/owner/name/releases/latest/download/install.sh | sh");
    expect(text).not.toMatch(/[^_]DOWNLOAD_URL|VERSION\b/);
  });
}
