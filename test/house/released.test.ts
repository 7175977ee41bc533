/**
 * Checks that a released migration never changes, because databases migrated earlier and later would differ. migrations/released.txt stores the hash
 * of each text. With the full git history, as in CI, the file is compared with the release commits. In a shallow clone or a tarball it is compared
 * only with the current migrations.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { listMigrations, readReleased } from "../../scripts/release-migrations.ts";
import { hashMigration } from "../../src/store/migrate/migration-record.ts";
import { RELEASES } from "../upgrade/releases.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const { version, texts } = readReleased();

/** Lists migrations that changed after a release, before this rule. Migrations 41, 45 and 51 make the resulting tables equal. */
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

test("no other migration has two released texts", () => {
  const replaced = texts.filter(({ file }, at) => texts[at + 1]?.file === file);
  expect(replaced.map(({ file, version }) => `${file} of ${version}`)).toEqual(EDITED);
});

test("the file matches the newest release, as release-migrations.ts writes it", () => {
  const { version: newest } = JSON.parse(readFileSync(join(PROJECT_ROOT, "package.json"), "utf8")) as { version: string };
  expect(version).toBe(newest);
});

test("each release commit in the history has the file's texts and no other", () => {
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

/** Checks that git has the full history, because a shallow clone or a tarball lacks it. */
function hasHistory(): boolean {
  return git("rev-parse", "--is-shallow-repository")?.trim() === "false" && git("cat-file", "-e", `${RELEASES[0]?.commit}^{commit}`) !== null;
}

/** Lists the release commits since 0.9.0: the listed ones, and later commits that raised the version. */
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
