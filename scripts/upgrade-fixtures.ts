/**
 * Creates the databases of earlier releases that test/upgrade opens: `bun scripts/upgrade-fixtures.ts [version …]`. If no version is given, it
 * creates all of them, on both databases. The tree of each release fills its own database with its own code. It needs the history of this project.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { hashMigration } from "../src/store/migrate/migration-record.ts";
import { ASK_VARIABLE, SERVER_VARIABLE } from "../test/kit/postgres.ts";
import { AFTER_0_17, RELEASES, type Release } from "../test/upgrade/releases.ts";

const PROJECT = resolve(import.meta.dir, "..");
const FIXTURES = join(PROJECT, "test/upgrade/fixtures");

type StoreKind = "sqlite" | "postgres";
export const STORE_KINDS: readonly StoreKind[] = ["sqlite", "postgres"];

/** Creates the fixture of a release in `folder` and returns its file. Throws with the output of that release's code. */
export async function makeFixture(
  { version, commit }: Release,
  kind: StoreKind,
  folder: string,
): Promise<string> {
  const tree = mkdtempSync(join(tmpdir(), "relay-release-"));
  const file = join(folder, `${version}-${kind}.zst`);
  try {
    // A clone needs only git; an archive would also need tar.
    runGit("clone", "--quiet", "--shared", "--no-checkout", PROJECT, tree);
    runGit("-C", tree, "checkout", "--quiet", commit);
    symlinkSync(join(PROJECT, "node_modules"), join(tree, "node_modules"));
    mkdirSync(join(tree, "test/upgrade"), { recursive: true });
    cpSync(join(PROJECT, "test/upgrade/fill.ts"), join(tree, "test/upgrade/fill.ts"));
    const head = { release: version, commit, migrations: kind === "postgres" ? listEditedTexts(tree) : {} };
    const filling = Bun.spawn([process.execPath, "test/upgrade/fill.ts", file, JSON.stringify(head)], {
      cwd: tree,
      env: { ...withoutServer(process.env), ...(kind === "postgres" ? { TEST_STORE: "postgres" } : {}) },
      stdout: "pipe",
      stderr: "pipe",
    });
    const output = await Promise.all(
      [filling.stdout, filling.stderr].map((stream) => new Response(stream).text()),
    );
    if ((await filling.exited) !== 0) throw new Error(`${version} on ${kind}: ${output.join("")}`);
    return file;
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

/**
 * Removes the variables that name the tests' PostgreSQL server. The kit of an older tree drops the templates and pooled databases of other trees, so
 * it must start its own server.
 */
function withoutServer(
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  return { ...env, [SERVER_VARIABLE]: undefined, [ASK_VARIABLE]: undefined };
}

/** Runs git and throws its message when it fails. */
function runGit(...words: string[]): void {
  const git = Bun.spawnSync(["git", ...words], { stderr: "pipe" });
  if (!git.success) throw new Error(`git ${words.join(" ")}: ${git.stderr}`);
}

/** Lists the PostgreSQL migrations of a tree whose text has changed since, by number. The fixture stores them because this tree has only the new text. */
function listEditedTexts(tree: string): Record<string, string> {
  const folder = "migrations/postgres";
  const texts: Record<string, string> = {};
  for (const name of new Bun.Glob("*.sql").scanSync(join(tree, folder))) {
    const text = readFileSync(join(tree, folder, name), "utf8");
    const now = readFileSync(join(PROJECT, folder, name), "utf8");
    if (hashMigration(text) !== hashMigration(now)) texts[Number.parseInt(name, 10)] = text;
  }
  return texts;
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  mkdirSync(FIXTURES, { recursive: true });
  for (const release of [...RELEASES, AFTER_0_17]) {
    if (wanted.length > 0 && !wanted.includes(release.version)) continue;
    for (const kind of STORE_KINDS) console.log(await makeFixture(release, kind, FIXTURES));
  }
}
