/** Writes CHANGELOG.md from the files of changes/. test/house/changelog.test.ts compares the page and the files. */
import { groupChanges, type Release } from "../src/base/release/release.ts";

/** Writes the page: the unreleased changes, then the releases, newest first. */
export function writeChangelog(unreleased: Release, releases: readonly Release[]): string {
  return [
    "# Changelog",
    "The changes of each release, newest first. The same entries are in `relay changes`, `/changes.txt` and `/changes.json`. A script writes this page from `changes/`.",
    writeRelease({ ...unreleased, version: `Unreleased (${unreleased.version})` }),
    ...releases.map(writeRelease),
  ]
    .join("\n\n")
    .concat("\n");
}

/** Writes the notes of one release: its section of the page without the heading. */
export function writeNotes(release: Release): string {
  const [, ...parts] = writeRelease(release).split("\n\n");
  return `${parts.join("\n\n")}\n`;
}

function writeRelease({ version, changes, codesAdded, codesRemoved }: Release): string {
  const groups = groupChanges(changes).flatMap((group) => {
    const rows = group.changes.map(({ subject, was, now }) => {
      const text = was === null ? now : `${now} *Before:* ${was}`;
      return escapeTags(`- **${subject}**: ${text}`);
    });
    return [`### ${group.heading}`, rows.join("\n")];
  });
  const codes = (word: string, list: readonly string[]): string[] =>
    list.length === 0 ? [] : [`Error codes ${word}: ${list.map((code) => `\`${code}\``).join(", ")}`];
  return [`## ${version}`, ...groups, ...codes("added", codesAdded), ...codes("removed", codesRemoved)].join(
    "\n\n",
  );
}

/** Escapes what Markdown reads as a tag, outside of inline code. */
function escapeTags(text: string): string {
  return text.replace(/`[^`]*`|</g, (part) => (part === "<" ? "&lt;" : part));
}
