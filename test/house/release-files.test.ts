/** Checks the archives and the checksums of a release, written from small files in place of the executables. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { unzipSync } from "fflate";
import { archiveFile, writeArchives } from "../../scripts/release/archives.ts";
import { hashFile, writeChecksums } from "../../scripts/release/checksums.ts";
import { makeZip } from "../../scripts/release/pack.ts";
import type { Release } from "../../scripts/release/release.ts";
import { executableFile, RELEASED } from "../../scripts/release/systems.ts";
import { readTar } from "../kit/tar.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const TIME = new Date("2026-05-06T07:08:09Z");
const place = mkdtempSync(join(tmpdir(), "relay-files-"));
afterAll(() => rmSync(place, { recursive: true }));

/** Writes the archives of all systems into a new folder, from small executables. */
async function writeAll(name: string): Promise<{ release: Release; files: string[] }> {
  const release = { built: join(place, name), out: join(place, name, "out"), systems: RELEASED, version: "1.2.3", time: TIME, repository: null };
  mkdirSync(release.out, { recursive: true });
  for (const system of RELEASED) writeFileSync(join(release.built, executableFile(system)), `executable for ${system.name}`);
  return { release, files: await writeArchives(release) };
}

const { release, files } = await writeAll("first");

test("each system has an archive", () => {
  expect(files.map((file) => basename(file))).toEqual(RELEASED.map(archiveFile));
});

test.each(RELEASED.filter(({ os }) => os !== "win32").map((system) => [system.name, system] as const))(
  "the archive for %s has its executable, which everyone may run, and files of root",
  async (name, system) => {
    const entries = await readTar(readFileSync(join(release.out, archiveFile(system))));
    expect(entries.map(({ name, mode }) => `${mode} ${name}`)).toEqual([
      "644 LICENSE",
      "644 README.md",
      "644 completion/_relay",
      "644 completion/relay.bash",
      "644 completion/relay.fish",
      "755 relay",
    ]);
    expect(entries.map(({ owner, time }) => `${owner} ${time}`)).toEqual(entries.map(() => "0:0 2026-05-06T07:08:09.000Z"));
    const text = Object.fromEntries(entries.map((entry) => [entry.name, entry.text]));
    expect(text.relay).toBe(`executable for ${name}`);
    expect(text["README.md"]).toContain(`Relay Service 1.2.3 for ${system.title}`);
    expect(text["completion/relay.bash"]).toContain("complete -F _relay relay");
    expect(text["completion/_relay"]).toStartWith("#compdef relay");
  },
);

test("the archive for Windows is a zip with the same parts", () => {
  const entries = unzipSync(readFileSync(join(release.out, "relay-windows-x64.zip")));
  expect(Object.keys(entries)).toEqual(["LICENSE", "README.md", "completion/relay.ps1", "relay.exe"]);
  expect(Buffer.from(entries["relay.exe"] ?? "").toString()).toBe("executable for windows-x64");
});

test("a second folder gets the same bytes", async () => {
  const second = await writeAll("second");
  expect(second.files.map(hashFile)).toEqual(files.map(hashFile));
});

test.each(["Pacific/Kiritimati", "Etc/GMT+12", "America/New_York"])("a zip made in the time zone %s has the same bytes", async (TZ) => {
  const make = `const { makeZip } = await import("./scripts/release/pack.ts");
    process.stdout.write(makeZip([{ path: "a", mode: 0o644, content: "a" }], new Date(${TIME.getTime()})));`;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", make], { cwd: PROJECT_ROOT, env: { ...process.env, TZ } });
  expect(new Uint8Array(stdout)).toEqual(new Uint8Array(makeZip([{ path: "a", mode: 0o644, content: "a" }], TIME)));
});

test("the checksums have one sorted line for each file", () => {
  const path = writeChecksums(release.out, files.toReversed());
  const names = RELEASED.map(archiveFile).toSorted();
  expect(readFileSync(path, "utf8")).toBe(names.map((name) => `${hashFile(join(release.out, name))}  ${name}\n`).join(""));
  expect(readdirSync(release.out).toSorted()).toEqual([...names, "checksums.txt"].toSorted());
});
