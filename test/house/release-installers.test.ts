/**
 * Checks the formula for Homebrew and the manifest for Scoop. Neither tool runs here, so the fields are compared with the archives, and the syntax of
 * the formula is checked if this machine has Ruby.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { archiveFile } from "../../scripts/release/archives.ts";
import { hashFile } from "../../scripts/release/checksums.ts";
import { writeFormula, writeScoopManifest } from "../../scripts/release/installers.ts";
import { readRepository } from "../../scripts/release/release.ts";
import { RELEASED } from "../../scripts/release/systems.ts";
import { tellNotRun } from "../kit/not-run.ts";

const REPOSITORY = "https://github.com/owner/name";
const DOWNLOAD = `${REPOSITORY}/releases/download/v1.2.3`;
const out = mkdtempSync(join(tmpdir(), "relay-installers-"));
afterAll(() => rmSync(out, { recursive: true }));

const release = { built: out, out, systems: RELEASED, version: "1.2.3", time: new Date(0), repository: REPOSITORY };
for (const system of RELEASED) writeFileSync(join(out, archiveFile(system)), `archive of ${system.name}`);

const [formulaFile = ""] = writeFormula(release);
const formula = readFileSync(formulaFile, "utf8");

test("the formula has the address and the hash of each archive of macOS and of Linux with the GNU C library", () => {
  const names = [...formula.matchAll(/url "([^"]+)"\n +sha256 "([0-9a-f]{64})"/g)].map(([, url, hash]) => ({ url, hash }));
  expect(names).toEqual(
    ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"].map((name) => ({
      url: `${DOWNLOAD}/relay-${name}.tar.gz`,
      hash: hashFile(join(out, `relay-${name}.tar.gz`)),
    })),
  );
});

test.each([
  ["class RelayService < Formula", "the class is named as the file relay-service.rb asks"],
  ['  version "1.2.3"', "the version"],
  ['  license "MIT"', "the license"],
  [`  homepage "${REPOSITORY}"`, "the page"],
  ['    bin.install "relay"', "the executable"],
  ['    zsh_completion.install "completion/_relay"', "a completion"],
])("the formula has the line `%s`: %s", (line) => {
  expect(formula.split("\n")).toContain(line);
});

test("the formula keeps the rules of Homebrew for a description", () => {
  const [, text = ""] = /desc "(.+)"/.exec(formula) ?? [];
  expect(text).toMatch(/^(?!(A|An|The) )[A-Z][^.]{10,78}$/);
});

test("each block of the formula ends", () => {
  const opened = formula.match(/\bdo$|^class |^ +def /gm)?.length;
  expect(formula.match(/^ *end$/gm)?.length).toBe(opened);
});

test("Ruby reads the formula", () => {
  if (Bun.which("ruby") === null) return tellNotRun("the formula in Ruby", "this machine has no ruby");
  const { success, stderr } = Bun.spawnSync(["ruby", "-c", formulaFile]);
  expect([success, stderr.toString()]).toEqual([true, ""]);
});

test("the manifest of Scoop has the fields that its schema requires, and the archive's address and hash", () => {
  const [file = ""] = writeScoopManifest(release);
  const manifest = JSON.parse(readFileSync(file, "utf8"));
  expect(manifest).toEqual({
    version: "1.2.3",
    description: expect.any(String),
    homepage: REPOSITORY,
    license: "MIT",
    architecture: {
      "64bit": { url: `${DOWNLOAD}/relay-windows-x64.zip`, hash: hashFile(join(out, "relay-windows-x64.zip")) },
    },
    bin: "relay.exe",
    checkver: { github: REPOSITORY },
    autoupdate: {
      architecture: { "64bit": { url: `${REPOSITORY}/releases/download/v$version/relay-windows-x64.zip` } },
      hash: { url: "$baseurl/checksums.txt" },
    },
  });
});

test("without a repository there is no address, so neither file is written", () => {
  const folder = join(out, "none");
  mkdirSync(folder);
  const unpublished = { ...release, out: folder, repository: null };
  expect([writeFormula(unpublished), writeScoopManifest(unpublished)]).toEqual([[], []]);
});

test.each([
  [undefined, null],
  ["https://github.com/owner/name", REPOSITORY],
  [{ url: "git+https://github.com/owner/name.git" }, REPOSITORY],
])("the field repository %p of package.json is the address %p", (repository, address) => {
  expect(readRepository(repository === undefined ? {} : { repository })).toBe(address);
});

test.each(["github:owner/name", "http://github.com/owner/name", 'https://github.com/owner/"name', "https://github.com/owner"])(
  "the repository %p is refused",
  (repository) => {
    expect(() => readRepository({ repository })).toThrow("Set it to an address such as");
  },
);
