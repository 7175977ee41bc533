/**
 * A complete release up to its upload, made twice from the same commit in two folders, by two users in two time zones. Both have the same bytes. The
 * first one is then installed with its install script from a local server, in an empty home with only the tools that the script needs.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative, resolve } from "node:path";
import packageJson from "../../package.json";
import { archiveFile } from "../../scripts/release/archives.ts";
import { hashFile } from "../../scripts/release/checksums.ts";
import { RELEASED } from "../../scripts/release/systems.ts";
import { RELEASES } from "../../src/base/release/change.ts";
import { startCli } from "../kit/cli-process.ts";
import { tellNotRun } from "../kit/not-run.ts";
import { TEST_MS } from "../kit/patience.ts";

const PROJECT = resolve(import.meta.dir, "../..");
const { version } = packageJson;
const REPOSITORY = "https://github.com/owner/name";
/** Folders that a clone does not have. */
const LEFT_OUT = [".git", ".relay", "dist", "node_modules", "service", "test-results"];
/** The author of the commit, because an empty home folder names none. */
const COMMIT = {
  GIT_AUTHOR_NAME: "Release",
  GIT_AUTHOR_EMAIL: "release@example.com",
  GIT_COMMITTER_NAME: "Release",
  GIT_COMMITTER_EMAIL: "release@example.com",
};

let place: string;
let first: Built;
let second: Built;

interface Built {
  said: string;
  /** The hash of each file below dist, by its path. */
  hashes: Record<string, string>;
}

function makeEnv(home: string, env: Record<string, string> = {}): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => !/^(RELAY_|GIT_|GITHUB_|SOURCE_DATE_EPOCH$)/.test(name));
  return { ...(Object.fromEntries(own) as Record<string, string>), HOME: home, ...env };
}

async function run(command: readonly string[], cwd: string, env: Record<string, string>) {
  const child = Bun.spawn([...command], { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [said, told, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { said, told, code };
}

async function mustRun(command: readonly string[], cwd: string, env: Record<string, string>): Promise<string> {
  const { said, told, code } = await run(command, cwd, env);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${said}${told}`);
  return said;
}

/** Copies a folder of packages with hard links, which need no time and no space. A link across file systems becomes a copy. */
function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkTree(source, target);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else {
      try {
        linkSync(source, target);
      } catch {
        copyFileSync(source, target);
      }
    }
  }
}

/** Makes a repository of these sources in which everything agrees, as in the commit of a release. */
async function makeRepository(folder: string, env: Record<string, string>): Promise<void> {
  cpSync(PROJECT, folder, { recursive: true, filter: (path) => !LEFT_OUT.includes(relative(PROJECT, path)) });
  const manifest = join(folder, "package.json");
  writeFileSync(manifest, `${JSON.stringify({ ...packageJson, repository: `git+${REPOSITORY}.git` }, null, 2)}\n`);
  const listed = RELEASES.map((release) => `${release.version}.json`);
  for (const name of readdirSync(join(folder, "changes")).filter((one) => !listed.includes(one))) {
    const file = join(folder, "changes", name);
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), changes: [] }));
  }
  const before = RELEASES[1]?.version ?? "";
  for (const name of ["docs/install.md", "docs/upgrade.md", "packaging/kubernetes/restore.yaml"]) {
    const text = readFileSync(join(folder, name), "utf8");
    writeFileSync(join(folder, name), text.replaceAll("$REPOSITORY", REPOSITORY).replaceAll(packageJson.version, before));
  }
  await mustRun([process.execPath, "scripts/release-migrations.ts"], folder, env);
  for (const words of [
    ["init", "--quiet"],
    ["add", "."],
    ["commit", "--quiet", "--no-verify", "--message", "release: try"],
  ])
    await mustRun(["git", "-c", "commit.gpgsign=false", "-c", "gc.auto=0", ...words], folder, env);
}

/** Makes the release in a folder of sources. Keeps only the hashes and `dist/release`. */
async function build(sources: string, env: Record<string, string>): Promise<Built> {
  linkTree(join(PROJECT, "node_modules"), join(sources, "node_modules"));
  const said = await mustRun([process.execPath, "scripts/release/main.ts", "--dry-run", "--no-tests"], sources, env);
  const dist = join(sources, "dist");
  const paths = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = paths.map((entry) => join(entry.parentPath, entry.name)).toSorted();
  const hashes = Object.fromEntries(files.map((file) => [relative(dist, file), `${statSync(file).mode.toString(8)} ${hashFile(file)}`]));
  for (const name of readdirSync(dist)) if (name !== "release") rmSync(join(dist, name), { recursive: true });
  return { said, hashes };
}

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "relay-release-"));
  chmodSync(place, 0o755);
  for (const home of ["first/home", "second/home"]) mkdirSync(join(place, home), { recursive: true });
  const tokyo = makeEnv(join(place, "first/home"), { ...COMMIT, TZ: "Asia/Tokyo" });
  await makeRepository(join(place, "first/sources"), tokyo);
  first = await build(join(place, "first/sources"), tokyo);
  const angeles = makeEnv(join(place, "second/home"), { TZ: "America/Los_Angeles" });
  const deeper = join(place, "second/a deeper folder/sources");
  await mustRun(["git", "clone", "--quiet", join(place, "first/sources"), deeper], place, angeles);
  second = await build(deeper, angeles);
}, 2 * TEST_MS);

afterAll(() => rmSync(place, { recursive: true, force: true }), TEST_MS);

const released = (): string => join(place, "first/sources/dist/release");

test("two builds in two folders have the same bytes and modes", () => {
  expect(second.hashes).toEqual(first.hashes);
});

test("the dry run names the files that it would upload and the packages that it would publish, the launcher last", () => {
  const [uploads = "", published = ""] = first.said.slice(first.said.indexOf("Would upload")).split("Would publish in this order:\n");
  const names = uploads
    .split("\n")
    .filter((line) => line.startsWith("dist/"))
    .map((line) => basename(line));
  expect(names.toSorted()).toEqual(readdirSync(released()).toSorted());
  const files = [...RELEASED.map(archiveFile), "install.sh", "relay-service.rb", "relay-service.json", "relay-service.cdx.json", "checksums.txt"];
  expect(files.filter((name) => !names.includes(name))).toEqual([]);
  expect([...published.matchAll(/^npm publish .* # (\S+)$/gm)].map(([, name]) => name)).toEqual([
    ...RELEASED.map(({ name }) => `@relay-service/${name}`),
    "relay-service-client",
    "relay-service-verifier",
    "relay-service",
  ]);
});

test("the checksums have each uploaded file but themselves", () => {
  const lines = readFileSync(join(released(), "checksums.txt"), "utf8").trimEnd().split("\n");
  const names = readdirSync(released()).filter((name) => name !== "checksums.txt");
  expect(lines.toSorted()).toEqual(names.map((name) => `${hashFile(join(released(), name))}  ${name}`).toSorted());
});

test("the provenance names the commit of both folders and no local change", async () => {
  const { predicate } = JSON.parse(readFileSync(join(released(), "provenance.intoto.json"), "utf8"));
  const env = makeEnv(join(place, "first/home"));
  const commit = (await mustRun(["git", "rev-parse", "HEAD"], join(place, "first/sources"), env)).trim();
  expect(predicate.buildDefinition.resolvedDependencies[0].digest).toEqual({ gitCommit: commit });
  expect(predicate.buildDefinition.internalParameters).toEqual({ uncommittedChanges: false });
});

test("a file that is not committed stops the release before anything is built", async () => {
  const sources = join(place, "first/sources");
  writeFileSync(join(sources, "left-over.txt"), "");
  const env = makeEnv(join(place, "first/home"));
  const { told, code } = await run([process.execPath, "scripts/release/main.ts", "--dry-run"], sources, env);
  rmSync(join(sources, "left-over.txt"));
  expect([code, told]).toEqual([1, "release: left-over.txt: this file is not committed. Commit or remove what git status lists.\n"]);
});

test("the install script installs the executable of this machine, which receives an event and stops", async () => {
  const what = "the executable from the install script";
  const downloader = ["curl", "wget"].find((tool) => Bun.which(tool) !== null);
  const checker = ["sha256sum", "shasum", "openssl"].find((tool) => Bun.which(tool) !== null);
  const own = RELEASED.find(({ os, cpu, libc }) => os === process.platform && cpu === process.arch && (libc === null || existsSync(libc.loader)));
  if (downloader === undefined || checker === undefined || Bun.which("tar") === null)
    return tellNotRun(what, "this machine lacks a tool to download, to check or to unpack");
  if (own === undefined || own.os === "win32") return tellNotRun(what, "no release of this table is for this machine");
  const home = join(place, "home of a user");
  const path = join(place, "path");
  for (const folder of [home, path, join(home, "shop")]) mkdirSync(folder, { recursive: true });
  for (const tool of ["sh", "uname", "mkdir", "mktemp", "rm", "tar", "gzip", "chmod", "mv", "sed", downloader, checker])
    symlinkSync(Bun.which(tool) ?? tool, join(path, tool));
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => new Response(Bun.file(join(released(), basename(new URL(request.url).pathname)))),
  });
  const env = { PATH: path, HOME: home, RELAY_DOWNLOAD_URL: server.url.href };
  const said = await mustRun([join(path, "sh"), join(released(), "install.sh"), "--version", version], home, env);
  const relay = join(home, ".local/bin/relay");
  expect(said).toContain(`Installed Relay ${version} as ${relay}`);
  const options = { cwd: join(home, "shop"), command: [relay], env: { HOME: home } };
  await using dev = startCli(["dev", "--example", "--port", "0"], options);
  await dev.line("Press Ctrl+C to stop");
  await using send = startCli(["send", "checkout-completed"], options);
  expect(await send.line("is done")).toContain("More: relay events show");
  expect(await send.exited).toBe(0);
  dev.kill("SIGTERM");
  await dev.silent;
  expect(await dev.exited).toBe(0);
});
