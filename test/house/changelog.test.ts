/** Checks that changes/ has one valid file per release and that CHANGELOG.md shows them. UPDATE_GOLDEN=1 rewrites the page. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Errors } from "typebox/schema";
import { Clean } from "typebox/value";
import { writeChangelog } from "../../scripts/changelog.ts";
import { findMeaning } from "../../src/base/code/code.ts";
import { RELEASES } from "../../src/base/release/change.ts";
import { type Release, releaseView } from "../../src/base/release/release.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const PAGE = join(PROJECT_ROOT, "CHANGELOG.md");
const FOLDER = join(PROJECT_ROOT, "changes");
const released = RELEASES.map(({ version }) => `${version}.json`);
const files = readdirSync(FOLDER);

function read(file: string): Release {
  return JSON.parse(readFileSync(join(FOLDER, file), "utf8"));
}

/** Reads the next release, which is the only file that change.ts does not list. */
function readUnreleased(): Release {
  const unreleased = files.filter((name) => !released.includes(name));
  expect(unreleased, "changes/ needs one file that change.ts does not list").toHaveLength(1);
  return read(unreleased[0] ?? "");
}

test("CHANGELOG.md shows the files of changes/", () => {
  const page = writeChangelog(readUnreleased(), RELEASES);
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(PAGE, page);
  expect(readFileSync(PAGE, "utf8")).toBe(page);
});

test.each(files)("changes/%s has the fields of a release and no others", (file) => {
  const release = read(file);
  const [, errors] = Errors(releaseView, release);
  expect(errors.map(({ instancePath, message }) => `${file}${instancePath}: ${message}`)).toEqual([]);
  expect(release).toEqual(Clean(releaseView, read(file)) as Release);
  expect(`${release.version}.json`).toBe(file);
});

test.each(files)("each entry of changes/%s names its subject and is one line of complete sentences", (file) => {
  const wrong = read(file).changes.flatMap(({ subject, was, now }) =>
    [now, was ?? "None."].filter((text) => !/^(?!(It|They|These|So|Both|That)\b).*[.]["”)]?$/.test(text)).map((text) => `${subject}: ${text}`),
  );
  expect(wrong).toEqual([]);
});

test("the next release names each subject once, and adds only registered codes", () => {
  const { changes, codesAdded } = readUnreleased();
  const subjects = changes.map(({ subject }) => subject);
  expect(subjects.filter((subject, at) => subjects.indexOf(subject) !== at)).toEqual([]);
  expect(codesAdded.filter((code) => findMeaning(code) === null)).toEqual([]);
});
