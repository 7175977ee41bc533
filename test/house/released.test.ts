/**
 * A migration that was part of a release never changes again: a database that got it before would be another than one that gets it now.
 * migrations/released.txt holds the text of each by its hash. Where the history of this project is there, as in CI's clone, the file is compared with
 * the release commits; in a shallow clone or a tarball it is compared with the migrations of the tree only.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { listMigrations, readReleased } from "../../scripts/release-migrations.ts";
import { hashMigration } from "../../src/store/migrate/migration-record.ts";
import { RELEASES } from "../upgrade/releases.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const { version, texts } = readReleased();

/** Edited after a release, before this rule. Migrations 41, 45 and 51 give a database of either text the same tables. */
const EDITED = [
  "migrations/0047-gone-secret.sql of 0.13.0",
  "migrations/0048-promoted.sql of 0.16.0",
  "migrations/postgres/0039-whole.sql of 0.9.0",
  "migrations/postgres/0045-event-trigger.sql of 0.12.0",
  "migrations/postgres/0047-gone-secret.sql of 0.13.0",
  "migrations/postgres/0048-promoted.sql of 0.16.0",
];

test("each released migration has the text of its release", () => {
  const now = new Map(listMigrations().map(({ file, hash }) => [file, hash]));
  const released = new Map(texts.map(({ file, hash }) => [file, hash]));
  const differ = [...released].filter(([file, hash]) => now.get(file) !== hash).map(([file]) => file);
  expect(differ).toEqual([]);
});

test("no further migration has two released texts", () => {
  const replaced = texts.filter(({ file }, at) => texts[at + 1]?.file === file);
  expect(replaced.map(({ file, version }) => `${file} of ${version}`)).toEqual(EDITED);
});

test("the file was written for the newest release: bun scripts/release-migrations.ts writes it", () => {
  const { version: newest } = JSON.parse(readFileSync(join(PROJECT_ROOT, "package.json"), "utf8")) as { version: string };
  expect(version).toBe(newest);
});

test("each release commit that the history has holds the texts of the file and no other", () => {
  const known = new Set(texts.map(({ file, hash }) => `${file} ${hash}`));
  const commits = listReleaseCommits();
  for (const commit of commits) {
    const found = listTexts(commit).filter((text) => !known.has(text));
    expect({ commit, found }).toEqual({ commit, found: [] });
  }
  if (hasHistory()) expect(commits.length).toBeGreaterThanOrEqual(RELEASES.length);
});

function git(...words: string[]): string | null {
  const run = Bun.spawnSync(["git", ...words], { cwd: PROJECT_ROOT, stderr: "ignore" });
  return run.success ? run.stdout.toString() : null;
}

/** A shallow clone says so, and a tarball has no git directory of its own. */
function hasHistory(): boolean {
  return git("rev-parse", "--is-shallow-repository")?.trim() === "false" && git("cat-file", "-e", `${RELEASES[0]?.commit}^{commit}`) !== null;
}

/** Since 0.9.0: the listed ones, and those that raised the version after them. */
function listReleaseCommits(): string[] {
  const there = RELEASES.map(({ commit }) => commit).filter((commit) => git("cat-file", "-e", `${commit}^{commit}`) !== null);
  const newest = there.at(-1);
  const later = newest === undefined ? "" : git("log", "--format=%h", "-G", '"version":', `${newest}..HEAD`, "--", "package.json");
  return [...there, ...(later ?? "").split("\n").filter((commit) => commit !== "")];
}

function listTexts(commit: string): string[] {
  const files = (git("ls-tree", "-r", "--name-only", commit, "migrations") ?? "").split("\n").filter((name) => name.endsWith(".sql"));
  return files.map((file) => `${file} ${hashMigration(git("show", `${commit}:${file}`) ?? "")}`);
}
