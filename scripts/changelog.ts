/** Writes CHANGELOG.md from the files of changes/. test/house/changelog.test.ts compares the page and the files. */
import type { Release } from "../src/base/release/release.ts";

/** Writes the page: the unreleased changes, then the releases, newest first. */
export function writeChangelog(unreleased: Release, releases: readonly Release[]): string {
  return [
    "# Changes",
    "What each release changed, newest first; also `relay changes`, `/changes.txt` and `/changes.json`. This page is written from `changes/`.",
    writeRelease({ ...unreleased, version: `Unreleased (${unreleased.version})` }),
    ...releases.map(writeRelease),
  ]
    .join("\n\n")
    .concat("\n");
}

function writeRelease({ version, changes, codesAdded, codesRemoved }: Release): string {
  const rows = changes.map(({ subject, was, now }) => {
    const text = was === null ? now : `${now} *Was:* ${was}`;
    return `- **${escapeTags(subject)}.** ${escapeTags(text)}`;
  });
  const codes = (word: string, list: readonly string[]): string[] =>
    list.length === 0 ? [] : [`Error codes ${word}: ${list.map((code) => `\`${code}\``).join(", ")}`];
  return [`## ${version}`, rows.join("\n"), ...codes("added", codesAdded), ...codes("removed", codesRemoved)]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** Escapes what Markdown reads as a tag. */
function escapeTags(text: string): string {
  return text.replace(/</g, "&lt;");
}
