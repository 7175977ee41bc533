/**
 * The Debian packages, written from small files in place of the executables: their format, their files, and their scripts. test/soak/deb.test.ts
 * installs a real one.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { hashFile } from "../../scripts/release/checksums.ts";
import { debFile, debVersion, writeDebs } from "../../scripts/release/deb.ts";
import type { Release } from "../../scripts/release/release.ts";
import { executableFile, RELEASED } from "../../scripts/release/systems.ts";
import { tellNotRun } from "../kit/not-run.ts";
import { readTar, type TarEntry } from "../kit/tar.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const TIME = new Date("2026-05-06T07:08:09Z");
const place = mkdtempSync(join(tmpdir(), "relay-deb-"));
afterAll(() => rmSync(place, { recursive: true }));

async function writeAll(name: string): Promise<{ release: Release; files: string[] }> {
  const release = {
    built: join(place, name),
    out: join(place, name, "out"),
    systems: RELEASED,
    version: "1.2.3",
    time: TIME,
    repository: "https://example.com/relay",
  };
  mkdirSync(release.out, { recursive: true });
  for (const system of RELEASED) writeFileSync(join(release.built, executableFile(system)), `executable for ${system.name}`);
  return { release, files: await writeDebs(release) };
}

/** Reads the members of an ar archive by name. */
function readAr(bytes: Buffer): Map<string, Buffer> {
  expect(bytes.toString("latin1", 0, 8)).toBe("!<arch>\n");
  const members = new Map<string, Buffer>();
  for (let at = 8; at < bytes.length; ) {
    const header = bytes.toString("latin1", at, at + 60);
    expect(header).toMatch(/^\S+ +1778051289 +0 +0 +100644 +\d+ +`\n$/);
    const length = Number(header.slice(48, 58));
    members.set(header.slice(0, 16).trim(), bytes.subarray(at + 60, at + 60 + length));
    at += 60 + length + (length % 2);
  }
  return members;
}

const { release, files } = await writeAll("first");
const NAMES = ["linux-x64", "linux-arm64"];

test("each Linux system with the GNU C library has a package", () => {
  expect(files.map((file) => basename(file))).toEqual(NAMES.map((name) => `relay-${name}.deb`));
});

test("a second folder gets the same bytes", async () => {
  const second = await writeAll("second");
  expect(second.files.map(hashFile)).toEqual(files.map(hashFile));
});

test.each([
  ["1.2.3", "1.2.3-1"],
  ["1.2.3-beta.1", "1.2.3~beta.1-1"],
])("the version %s is %s for Debian", (version, wanted) => expect(debVersion(version)).toBe(wanted));

describe.each(NAMES.map((name) => [name] as const))("the package for %s", (name) => {
  const system = RELEASED.find((one) => one.name === name);
  if (system === undefined) throw new Error(`There is no system ${name}.`);
  const members = readAr(readFileSync(join(release.out, debFile(system))));
  const read = async (member: string): Promise<TarEntry[]> => await readTar(Buffer.from(members.get(member) ?? ""));

  test("has the members of the format in their order", () => {
    expect([...members.keys()]).toEqual(["debian-binary", "control.tar.gz", "data.tar.gz"]);
    expect(members.get("debian-binary")?.toString()).toBe("2.0\n");
  });

  test("installs the executable, the unit, the user, the settings, the completion and the papers, all of root", async () => {
    const data = await read("data.tar.gz");
    expect(data.filter(({ name }) => !name.endsWith("/")).map(({ mode, name }) => `${mode} ${name}`)).toEqual([
      "644 ./etc/relay/relay.env",
      "755 ./usr/bin/relay",
      "644 ./usr/lib/systemd/system/relay.service",
      "644 ./usr/lib/sysusers.d/relay.conf",
      "644 ./usr/lib/tmpfiles.d/relay.conf",
      "644 ./usr/share/bash-completion/completions/relay",
      "644 ./usr/share/doc/relay-service/changelog.Debian.gz",
      "644 ./usr/share/doc/relay-service/changelog.gz",
      "644 ./usr/share/doc/relay-service/copyright",
      "644 ./usr/share/fish/vendor_completions.d/relay.fish",
      "644 ./usr/share/zsh/vendor-completions/_relay",
    ]);
    expect(new Set(data.map(({ owner, time }) => `${owner} ${time}`))).toEqual(new Set(["0:0 2026-05-06T07:08:09.000Z"]));
    const names = data.map(({ name }) => name);
    // Each file comes after its folder.
    const folders = names.flatMap((one) => (one === "./" ? [] : [one.replace(/[^/]+\/?$/, "")]));
    expect(folders.filter((folder) => !names.includes(folder))).toEqual([]);
    expect(folders.every((folder, at) => names.indexOf(folder) <= at)).toBe(true);

    const text = Object.fromEntries(data.map((entry) => [entry.name, entry.text]));
    expect(text["./usr/bin/relay"]).toBe(`executable for ${name}`);
    expect(text["./usr/lib/systemd/system/relay.service"]).toContain("\nExecStart=/usr/bin/relay serve\n");
    expect(text["./usr/lib/systemd/system/relay.service"]).not.toContain("/usr/local");
    expect(text["./usr/share/bash-completion/completions/relay"]).toContain("complete -F _relay relay");
    expect(text["./etc/relay/relay.env"]).toMatch(/^#RELAY_BASE_URL=[\s\S]*^#RELAY_TRUSTED_PROXY=[\s\S]*^RELAY_BACKUP_EVERY=1d$/m);
    const changes = Buffer.from(data.find(({ name }) => name.endsWith("changelog.Debian.gz"))?.bytes ?? "");
    expect(Buffer.from(Bun.gunzipSync(changes)).toString()).toMatch(
      /^relay-service \(1\.2\.3-1\) stable; urgency=medium\n\n {2}\* .+\n\n -- .+ <.+> {2}Wed, 06 May 2026 07:08:09 \+0000\n$/,
    );
  });

  test("describes itself, and lists the checksum of each file", async () => {
    const control = await read("control.tar.gz");
    expect(control.map(({ mode, name }) => `${mode} ${name}`)).toEqual([
      "755 ./",
      "644 ./conffiles",
      "644 ./control",
      "644 ./md5sums",
      "755 ./postinst",
      "755 ./postrm",
      "755 ./prerm",
    ]);
    const text = Object.fromEntries(control.map((entry) => [entry.name, entry.text]));
    expect(text["./conffiles"]).toBe("/etc/relay/relay.env\n");
    const fields = text["./control"] ?? "";
    expect(fields).toStartWith(`Package: relay-service\nVersion: 1.2.3-1\nArchitecture: ${name === "linux-x64" ? "amd64" : "arm64"}\n`);
    expect(fields).toContain("\nDepends: libc6 (>= 2.17), ");
    expect(fields).toContain("\nHomepage: https://example.com/relay\n");
    // Debian shows at most 80 columns of a description.
    expect(fields.split("\n").filter((line) => line.length > 80)).toEqual([]);
    const data = (await read("data.tar.gz")).filter((entry) => !entry.name.endsWith("/"));
    const sums = data.map(({ name, bytes }) => `${new Bun.CryptoHasher("md5").update(bytes).digest("hex")}  ${name.slice(2)}`);
    expect((text["./md5sums"] ?? "").trimEnd().split("\n").toSorted()).toEqual(sums.toSorted());
  });

  const dpkg = Bun.which("dpkg-deb");
  if (dpkg === null) tellNotRun("dpkg-deb on the Debian package", "this machine has no dpkg-deb");
  else
    test("is read by dpkg-deb", () => {
      const run = (word: string) => Bun.spawnSync([dpkg, word, join(release.out, debFile(system))], { env: { ...process.env, LC_ALL: "C.UTF-8" } });
      for (const word of ["--info", "--contents"]) {
        const { exitCode, stdout, stderr } = run(word);
        expect([exitCode, stderr.toString()]).toEqual([0, ""]);
        expect(stdout.toString()).toContain(word === "--info" ? "Version: 1.2.3-1" : "./usr/bin/relay");
      }
    });
});

test.each(["postinst", "prerm", "postrm"])("the shell reads %s, which stops at the first error", (name) => {
  const file = join(PROJECT_ROOT, "packaging/deb", name);
  const { exitCode, stderr } = Bun.spawnSync(["sh", "-n", file]);
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  expect(readFileSync(file, "utf8")).toMatch(/^#!\/bin\/sh\n# .+\nset -e\n/);
});
