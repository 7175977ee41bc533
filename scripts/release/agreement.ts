/**
 * Finds what disagrees before a release: the version, the changelog, the hashes of the migrations, the documentation and git. A release is refused
 * until all of them agree.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { RELEASES } from "../../src/base/release/change.ts";
import { listMigrations, readReleased } from "../release-migrations.ts";
import { git, PROJECT, readManifest, readRepository } from "./release.ts";

export interface ReleaseFacts {
  /** The version in package.json. */
  version: string;
  /** Each version of the service that package-lock.json names. */
  lockVersions: readonly string[];
  /** The tag that the release is built from. Null for a local release. */
  tag: string | null;
  /** The repository in package.json. */
  repository: string | null;
  /** The repository that runs the release. Null for a local release. */
  runsIn: string | null;
  /** The newest release in change.ts, and the one before it. */
  newest: string;
  before: string;
  /** The versions in the headings of CHANGELOG.md. */
  sections: readonly string[];
  /** The files of changes/ that change.ts does not list, with the number of their entries. */
  unreleased: readonly { file: string; entries: number }[];
  /** The release that migrations/released.txt was written for. */
  migrationsVersion: string;
  /** The migrations whose text has no line in that file, or another one. */
  migrations: { missing: readonly string[]; changed: readonly string[] };
  /** The pages and files that name versions to install, or to go back to. */
  documents: readonly {
    file: string;
    /** The versions of this release. */
    versions: readonly string[];
    /** The versions to go back to. */
    earlier: readonly string[];
    /** True if it has the placeholder of the repository. */
    hasPlaceholder: boolean;
  }[];
  /** The lines of `git status --porcelain`. Null without git. */
  uncommitted: readonly string[] | null;
}

/** Returns one sentence for each disagreement. It names the file and what to do. An empty list allows the release. */
export function findDisagreements(facts: ReleaseFacts): string[] {
  const { version, tag, repository, runsIn, newest, before, migrations, uncommitted } = facts;
  const found: string[] = [];
  if (facts.lockVersions.some((one) => one !== version))
    found.push(
      `package-lock.json: the version is ${facts.lockVersions.join(" and ")}, not ${version} as in package.json. Run npm install --package-lock-only.`,
    );
  if (tag !== null && tag !== `v${version}`)
    found.push(
      `package.json: the version is ${version}, and the tag is ${tag}. Raise the version and commit, then tag that commit v${version}.`,
    );
  if (repository === null)
    found.push(
      "package.json: there is no repository. Set it to where the releases are published, for example git+https://github.com/owner/name.git.",
    );
  else if (runsIn !== null && runsIn !== repository)
    found.push(
      `package.json: the repository is ${repository}, and this release runs in ${runsIn}. Correct it, or release there.`,
    );
  if (newest !== version)
    found.push(
      `src/base/release/change.ts: the newest release is ${newest}, not ${version} as in package.json. Add changes/${version}.json.`,
    );
  if (!facts.sections.includes(version))
    found.push(
      `CHANGELOG.md: there is no section ${version}. Run UPDATE_GOLDEN=1 npm test -- test/house/changelog.test.ts.`,
    );
  for (const { file, entries } of facts.unreleased) {
    if (entries > 0)
      found.push(
        `changes/${file}: ${entries} ${entries === 1 ? "change belongs" : "changes belong"} to no release. Release that version, or move the changes to changes/${version}.json.`,
      );
  }
  if (facts.migrationsVersion !== version)
    found.push(
      `migrations/released.txt: it was written for ${facts.migrationsVersion}, not ${version}. Run npx bun scripts/release-migrations.ts.`,
    );
  if (migrations.missing.length > 0)
    found.push(
      `migrations/released.txt: ${listShort(migrations.missing)} no hash. Run npx bun scripts/release-migrations.ts in the commit of the release.`,
    );
  for (const file of migrations.changed)
    found.push(`${file}: a released migration has another text. Undo the change, and add a new migration.`);
  for (const { file, versions, earlier, hasPlaceholder } of facts.documents) {
    const others = listOthers(versions, version);
    if (others !== "") found.push(`${file}: it tells readers to install ${others}. Write ${version}.`);
    const back = listOthers(earlier, before);
    if (back !== "") found.push(`${file}: it tells readers to go back to ${back}. Write ${before}.`);
    if (hasPlaceholder && repository !== null)
      found.push(
        `${file}: it has the placeholder ${PLACEHOLDER}. Write ${repository} in each place, and remove the paragraph that explains it.`,
      );
  }
  if (uncommitted === null)
    found.push(".git: this folder has no git history. Release from a clone of the repository.");
  else if (uncommitted.length > 0)
    found.push(
      `${uncommitted[0]?.slice(3)}: ${uncommitted.length === 1 ? "this file is" : `this and ${uncommitted.length - 1} more are`} not committed. Commit or remove what git status lists.`,
    );
  return found;
}

/** Names the versions that are not the given one. */
function listOthers(versions: readonly string[], version: string): string {
  return [...new Set(versions.filter((one) => one !== version))].join(" and ");
}

/** Names the first file and counts the others, with the verb. */
function listShort([first, ...others]: readonly string[]): string {
  return others.length === 0 ? `${first} has` : `${first} and ${others.length} more have`;
}

/** The pages and files that name a version to install. */
const DOCUMENTS = [
  "docs/install.md",
  "docs/install-server.md",
  "docs/docker.md",
  "docs/kubernetes.md",
  "docs/upgrade.md",
];
const MANIFESTS = "packaging/kubernetes";

/** The image of this file is the one to go back to. */
const RESTORE = "restore.yaml";
/** The word for the address of the repository in a page, as long as no release is published. */
const PLACEHOLDER = "$REPOSITORY";

/** Matches a version after the name of an image of this release. */
const INSTALLED = /(?:relay-service[:_]|dist\/image:)(\d+\.\d+\.\d+)/g;
/** Matches a version after words that go back to it, or that ask what is new since it. */
const EARLIER = /(?:relay-service@|--version[ =]v?|--since |\/download\/v)(\d+\.\d+\.\d+)/g;

/** Reads the facts of this repository, and of the workflow that runs the release. */
export function readFacts(): ReleaseFacts {
  const manifest = readManifest();
  const lock = JSON.parse(readText("package-lock.json")) as {
    version?: string;
    packages: Record<string, { version?: string }>;
  };
  const released = readReleased();
  const hashes = new Map(released.texts.map(({ file, hash }) => [file, hash]));
  const now = listMigrations();
  const listed = RELEASES.map(({ version }) => `${version}.json`);
  const { GITHUB_REF_TYPE, GITHUB_REF_NAME, GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
  return {
    version: manifest.version,
    lockVersions: [...new Set([lock.version ?? "missing", lock.packages[""]?.version ?? "missing"])],
    tag: GITHUB_REF_TYPE === "tag" ? (GITHUB_REF_NAME ?? null) : null,
    repository: readRepository(manifest),
    runsIn: GITHUB_REPOSITORY === undefined ? null : `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`,
    newest: RELEASES[0].version,
    before: RELEASES[1]?.version ?? "",
    sections: [...readText("CHANGELOG.md").matchAll(/^## (\d+\.\d+\.\d+)$/gm)].map(([, one = ""]) => one),
    unreleased: readdirSync(join(PROJECT, "changes"))
      .filter((file) => !listed.includes(file))
      .map((file) => {
        const { changes } = JSON.parse(readText(`changes/${file}`)) as { changes: unknown[] };
        return { file, entries: changes.length };
      }),
    migrationsVersion: released.version,
    migrations: {
      missing: now.filter(({ file }) => !hashes.has(file)).map(({ file }) => file),
      changed: now
        .filter(({ file, hash }) => hashes.has(file) && hashes.get(file) !== hash)
        .map(({ file }) => file),
    },
    documents: [
      ...DOCUMENTS,
      ...readdirSync(join(PROJECT, MANIFESTS)).map((name) => `${MANIFESTS}/${name}`),
    ].map((file) => {
      const text = readText(file);
      const find = (words: RegExp): string[] => [...text.matchAll(words)].map(([, one = ""]) => one);
      const hasPlaceholder = text.includes(PLACEHOLDER);
      if (file.endsWith(`/${RESTORE}`))
        return { file, versions: [], earlier: [...find(INSTALLED), ...find(EARLIER)], hasPlaceholder };
      return { file, versions: find(INSTALLED), earlier: find(EARLIER), hasPlaceholder };
    }),
    uncommitted:
      git("status", "--porcelain")
        ?.split("\n")
        .filter((line) => line !== "") ?? null,
  };
}

function readText(file: string): string {
  return readFileSync(join(PROJECT, file), "utf8");
}
