/** What is kept with the sources is what somebody wrote: no file is large, and none was left behind by a compile that was cut off. */
import { expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { PROJECT_ROOT } from "./source-tree.ts";

const MAX_BYTES = 2 ** 20;
/** What Bun, a bundler, a run or a killed test leaves where it worked. */
const LEFT_BEHIND = /\.bun-build$|(^|\/)(dist|node_modules|test-results|coverage|\.relay)\/|\.(map|log|db|db-wal|db-shm|heapsnapshot|cpuprofile)$/;

/** Those that git keeps, and those that it would take with the next commit. */
function listFiles(): string[] {
  const git = Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: PROJECT_ROOT });
  return git.stdout
    .toString()
    .split("\0")
    .filter((path) => path !== "");
}

const files = listFiles();

/** 0 where it was deleted and that is not committed yet. */
function sizeOf(path: string): number {
  return statSync(join(PROJECT_ROOT, path), { throwIfNoEntry: false })?.size ?? 0;
}

test("git names them, wherever the sources stand in its keeping", () => {
  expect(files.length > 0).toBe(existsSync(join(PROJECT_ROOT, ".git")));
});

test("no file is larger than a megabyte", () => {
  expect(files.filter((path) => sizeOf(path) > MAX_BYTES)).toEqual([]);
});

test("none is what a compile or a run leaves behind", () => {
  expect(files.filter((path) => LEFT_BEHIND.test(path))).toEqual([]);
});
