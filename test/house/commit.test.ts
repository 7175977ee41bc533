/** Checks commit subjects: `scope: imperative subject` with at most 72 characters (CONTRIBUTING.md). */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { PROJECT_ROOT } from "./source-tree.ts";

/** Excludes commits from before the rule. */
const SINCE = "2026-11-28T16:00:00Z";
const SUBJECT = /^[a-z0-9-]+(?:[/, -]+[a-z0-9-]+)*: [a-z]/;
/** Matches verbs in the past tense, in the third person or as a gerund, because they are not imperative. */
const NOT_IMPERATIVE = /^[^:]+: (?:added|adds|fixed|fixes|changed|changes|removed|removes|updated|updates|made|makes|adding|fixing|changing)\b/;

function listSubjects(): string[] {
  const git = Bun.spawnSync(["git", "log", "--no-merges", `--since=${SINCE}`, "--format=%s"], { cwd: PROJECT_ROOT });
  return git.stdout
    .toString()
    .split("\n")
    .filter((line) => line !== "");
}

test("the subject of a commit names a scope and what the commit does", () => {
  const subjects = existsSync(join(PROJECT_ROOT, ".git")) ? listSubjects() : [];
  expect(subjects.filter((subject) => subject.length > 72)).toEqual([]);
  expect(subjects.filter((subject) => !SUBJECT.test(subject) || NOT_IMPERATIVE.test(subject))).toEqual([]);
});

test.each([
  ["store: name files by the field's terms", true],
  ["cli, api: serve one route in process", true],
  ["Say in the docs what a payment does", false],
  ["store: fixes the lock", false],
  ["store: Fix the lock", false],
])("%s: %p", (subject, isRight) => {
  expect(SUBJECT.test(subject) && !NOT_IMPERATIVE.test(subject)).toBe(isRight);
});
