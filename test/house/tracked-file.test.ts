/** Checks that git tracks only written files: no large file, and no leftover of an interrupted build or run. */
import { expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { PROJECT_ROOT } from "./source-tree.ts";

const MAX_BYTES = 2 ** 20;
/** Matches files that Bun, a bundler, a run or a killed test leaves in its folder. */
const LEFT_BEHIND = /\.bun-build$|(^|\/)(dist|node_modules|test-results|coverage|\.relay)\/|\.(map|log|db|db-wal|db-shm|heapsnapshot|cpuprofile)$/;

/** Lists tracked files, and untracked files that the next commit could include. */
function listFiles(): string[] {
  const git = Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: PROJECT_ROOT });
  return git.stdout
    .toString()
    .split("\0")
    .filter((path) => path !== "");
}

const files = listFiles();

/** Returns the size, or 0 for a file with an uncommitted deletion. */
function sizeOf(path: string): number {
  return statSync(join(PROJECT_ROOT, path), { throwIfNoEntry: false })?.size ?? 0;
}

test("git lists files in a clone, and none in a tarball", () => {
  expect(files.length > 0).toBe(existsSync(join(PROJECT_ROOT, ".git")));
});

test("no file is larger than a megabyte", () => {
  expect(files.filter((path) => sizeOf(path) > MAX_BYTES)).toEqual([]);
});

test("no file is a leftover of a build or a run", () => {
  expect(files.filter((path) => LEFT_BEHIND.test(path))).toEqual([]);
});
