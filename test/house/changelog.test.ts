/** CHANGELOG.md is what the change feed's source says; UPDATE_GOLDEN=1 writes it anew. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeChangelog } from "../../scripts/changelog.ts";
import { RELEASES } from "../../src/base/release/change.ts";
import { RELEASE_0_18 } from "../../src/base/release/release-0-18.ts";
import { explainCode } from "../../src/base/result-code.ts";

const FILE = join(import.meta.dir, "..", "..", "CHANGELOG.md");

test("CHANGELOG.md is what src/release says", () => {
  const page = writeChangelog(RELEASE_0_18, RELEASES);
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(FILE, page);
  expect(readFileSync(FILE, "utf8")).toBe(page);
});

test("the release being written names each subject once, and adds codes that are registered", () => {
  const { changes, codesAdded } = RELEASE_0_18;
  const subjects = changes.map(({ subject }) => subject);
  expect(subjects.filter((subject, at) => subjects.indexOf(subject) !== at)).toEqual([]);
  expect(codesAdded.filter((code) => explainCode(code) === null)).toEqual([]);
});
