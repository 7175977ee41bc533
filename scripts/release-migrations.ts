/**
 * Writes migrations/released.txt for a release: `npx bun scripts/release-migrations.ts` in the commit that raises the version. Each line is the hash of a
 * migration's text, the first release with that text, and the file. A file that has a line never changes again.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { hashMigration } from "../src/store/migrate/migration-record.ts";

const PROJECT = resolve(import.meta.dir, "..");
const FILE = join(PROJECT, "migrations/released.txt");
const FOLDERS = ["migrations", "migrations/postgres"];

/** The text of a released migration. */
interface ReleasedText {
  hash: string;
  /** The first release with this text. */
  version: string;
  /** The path of the file, for example `migrations/0049-plan-end.sql`. */
  file: string;
}

/** Reads the release that the file was written for, and its lines. If a migration has two lines, the second one counts. */
export function readReleased(): { version: string; texts: ReleasedText[] } {
  const [head = "", ...lines] = readFileSync(FILE, "utf8").trimEnd().split("\n");
  const texts = lines.map((line) => {
    const [hash = "", version = "", file = ""] = line.split(" ");
    return { hash, version, file };
  });
  return { version: head.split(" ").at(-1) ?? "", texts };
}

/** Lists the migrations of this tree with their hashes. */
export function listMigrations(): Omit<ReleasedText, "version">[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(PROJECT, folder))
      .filter((name) => name.endsWith(".sql"))
      .sort()
      .map((name) => ({
        hash: hashMigration(readFileSync(join(PROJECT, folder, name), "utf8")),
        file: `${folder}/${name}`,
      })),
  );
}

/** Adds a line for each migration without one, as part of this release. */
function writeReleased(version: string): void {
  const { texts } = readReleased();
  const added = listMigrations().filter(({ file }) => !texts.some((one) => one.file === file));
  const all = [...texts, ...added.map((one) => ({ ...one, version }))];
  const lines = all
    .toSorted((one, other) => one.file.localeCompare(other.file, "en"))
    .map(({ hash, version, file }) => `${hash} ${version} ${file}`);
  writeFileSync(FILE, `# Every migration of the releases 0.9.0 to ${version}\n${lines.join("\n")}\n`);
}

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")) as { version: string };
  writeReleased(version);
}
