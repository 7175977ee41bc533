/** Reads the change feed: lists the releases after a version and writes them as text. */
import { RELEASES } from "./change.ts";
import { groupChanges, type Release } from "./release.ts";

/** Lists the releases newer than `since` (such as `1.2.3`), newest first, or all without `since`. Returns null if `since` is not a version. */
export function listChanges(since?: string): readonly Release[] | null {
  if (since === undefined) return RELEASES;
  const from = readVersion(since);
  if (from === null) return null;
  return RELEASES.filter((release) => compareVersions(readVersion(release.version) ?? [], from) > 0);
}

/** Writes the releases as plain text, as /changes.txt and `relay changes` show them. The text ends with a newline. */
export function writeChanges(releases: readonly Release[]): string {
  if (releases.length === 0) return "No changes.\n";
  return releases.map(writeRelease).join("\n");
}

function writeRelease(release: Release): string {
  const lines = [`Version ${release.version}`];
  for (const { heading, changes } of groupChanges(release.changes)) {
    lines.push("", heading);
    for (const { subject, was, now } of changes) {
      lines.push("", `  ${subject}`, `    ${now}`);
      if (was !== null) lines.push(`    Before: ${was}`);
    }
  }
  if (release.codesAdded.length > 0) lines.push("", `Error codes added: ${release.codesAdded.join(", ")}`);
  if (release.codesRemoved.length > 0)
    lines.push("", `Error codes removed: ${release.codesRemoved.join(", ")}`);
  return `${lines.join("\n")}\n`;
}

/** Reports whether a version is newer than another. */
export function isNewer(version: string, than: string): boolean {
  return compareVersions(readVersion(version) ?? [], readVersion(than) ?? []) > 0;
}

function readVersion(text: string): readonly number[] | null {
  return /^v?\d{1,6}(\.\d{1,6}){0,2}$/.test(text) ? text.replace("v", "").split(".").map(Number) : null;
}

function compareVersions(left: readonly number[], right: readonly number[]): number {
  for (let part = 0; part < 3; part++) {
    const difference = (left[part] ?? 0) - (right[part] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
