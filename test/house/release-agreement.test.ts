/** Checks that a release is refused with one sentence for each disagreement, and that the facts of this repository are read. */
import { expect, test } from "bun:test";
import packageJson from "../../package.json";
import { findDisagreements, type ReleaseFacts, readFacts } from "../../scripts/release/agreement.ts";
import { RELEASES } from "../../src/base/release/change.ts";

const REPOSITORY = "https://github.com/owner/name";
const PAGE = { file: "docs/install.md", versions: ["1.2.3"], earlier: ["1.2.2"], hasPlaceholder: false };
const AGREED: ReleaseFacts = {
  version: "1.2.3",
  lockVersions: ["1.2.3"],
  tag: "v1.2.3",
  repository: REPOSITORY,
  runsIn: REPOSITORY,
  newest: "1.2.3",
  before: "1.2.2",
  sections: ["1.2.3", "1.2.2"],
  unreleased: [{ file: "1.3.0.json", entries: 0 }],
  migrationsVersion: "1.2.3",
  migrations: { missing: [], changed: [] },
  documents: [PAGE, { file: "docs/docker.md", versions: [], earlier: [], hasPlaceholder: false }],
  uncommitted: [],
};

test.each<[what: string, facts: Partial<ReleaseFacts>]>([
  ["a tag in the workflow", {}],
  ["a local release", { tag: null, runsIn: null }],
  ["no file of changes for the next version", { unreleased: [] }],
])("%s is allowed if everything agrees", (_, facts) => {
  expect(findDisagreements({ ...AGREED, ...facts })).toEqual([]);
});

const REFUSED: readonly [what: string, facts: Partial<ReleaseFacts>, file: string, remedy: string][] = [
  ["another version in the lock file", { lockVersions: ["1.2.2"] }, "package-lock.json", "Run npm install --package-lock-only."],
  ["two versions in the lock file", { lockVersions: ["1.2.3", "1.2.2"] }, "package-lock.json", "1.2.3 and 1.2.2"],
  ["another tag", { tag: "v1.2.4" }, "package.json", "tag that commit v1.2.3"],
  ["a tag without v", { tag: "1.2.3" }, "package.json", "the tag is 1.2.3"],
  ["no repository", { repository: null }, "package.json", "Set it to where the releases are published"],
  ["a fork", { runsIn: "https://github.com/other/name" }, "package.json", "this release runs in https://github.com/other/name"],
  ["a version that change.ts does not list", { newest: "1.2.2" }, "src/base/release/change.ts", "Add changes/1.2.3.json."],
  ["a changelog without the version", { sections: ["1.2.2"] }, "CHANGELOG.md", "Run UPDATE_GOLDEN=1"],
  ["an entry of no release", { unreleased: [{ file: "1.3.0.json", entries: 1 }] }, "changes/1.3.0.json", "1 change belongs to no release"],
  ["entries of no release", { unreleased: [{ file: "1.3.0.json", entries: 2 }] }, "changes/1.3.0.json", "2 changes belong to no release"],
  ["hashes of an older release", { migrationsVersion: "1.2.2" }, "migrations/released.txt", "Run npx bun scripts/release-migrations.ts"],
  [
    "a migration without a hash",
    { migrations: { missing: ["migrations/0009-x.sql"], changed: [] } },
    "migrations/released.txt",
    "migrations/0009-x.sql has no hash",
  ],
  [
    "migrations without a hash",
    { migrations: { missing: ["migrations/0009-x.sql", "migrations/0010-y.sql"], changed: [] } },
    "migrations/released.txt",
    "migrations/0009-x.sql and 1 more have no hash",
  ],
  [
    "a released migration with another text",
    { migrations: { missing: [], changed: ["migrations/0008-x.sql"] } },
    "migrations/0008-x.sql",
    "add a new migration",
  ],
  [
    "a page that goes back to this version",
    { documents: [{ ...PAGE, earlier: ["1.2.3", "1.2.2"] }] },
    "docs/install.md",
    "to go back to 1.2.3. Write 1.2.2.",
  ],
  ["a page with a placeholder", { documents: [{ ...PAGE, hasPlaceholder: true }] }, "docs/install.md", `Write ${REPOSITORY} in each place`],
  [
    "a page that installs an older version",
    { documents: [{ ...PAGE, versions: ["1.2.2", "1.2.2", "1.2.3"] }] },
    "docs/install.md",
    "to install 1.2.2. Write 1.2.3.",
  ],
  ["a changed file", { uncommitted: [" M src/main.ts"] }, "src/main.ts", "this file is not committed"],
  ["changed files", { uncommitted: [" M src/main.ts", "?? x"] }, "src/main.ts", "this and 1 more are not committed"],
  ["no git", { uncommitted: null }, ".git", "Release from a clone"],
];

test.each(REFUSED)("%s is refused, with the file and what to do", (_, facts, file, remedy) => {
  const found = findDisagreements({ ...AGREED, ...facts });
  expect(found).toHaveLength(1);
  expect(found[0]).toStartWith(`${file}: `);
  expect(found[0]).toContain(remedy);
});

test("all disagreements are named at once", () => {
  const facts = Object.assign({}, AGREED, ...REFUSED.map(([, one]) => one)) as ReleaseFacts;
  expect(findDisagreements(facts).length).toBeGreaterThan(9);
});

test("the facts of this repository are read from its files", () => {
  const facts = readFacts();
  expect(facts).toMatchObject({ version: packageJson.version, newest: RELEASES[0].version });
  expect(facts.lockVersions).toEqual([packageJson.version]);
  expect(facts.sections).toEqual(RELEASES.map(({ version }) => version));
  expect(facts.migrations.changed).toEqual([]);
  expect(facts.unreleased).toHaveLength(1);
});

test("the pages and manifests name the present version to install", () => {
  const { version, documents } = readFacts();
  const wrong = documents.filter(({ versions }) => versions.some((one) => one !== version));
  expect(wrong).toEqual([]);
  expect(documents.flatMap(({ versions }) => versions).length).toBeGreaterThan(2);
});

test("the pages and the restore go back to the newest release, which the next one follows, or to the one before", () => {
  const { version, before, documents } = readFacts();
  const named = documents.flatMap(({ file, earlier }) => earlier.map((one) => ({ file, isKnown: [version, before].includes(one) })));
  expect(named.filter(({ isKnown }) => !isKnown)).toEqual([]);
  expect([...new Set(named.map(({ file }) => file))]).toEqual(["docs/install.md", "docs/upgrade.md", "packaging/kubernetes/restore.yaml"]);
});
