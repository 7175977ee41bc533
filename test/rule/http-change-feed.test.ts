/** The change feed since a version, from one source, as text and as JSON. */
import { expect, test } from "bun:test";
import packageJson from "../../package.json";
import { REFUSALS } from "../../src/base/code/refusal-code.ts";
import { RELEASES } from "../../src/base/release/change.ts";
import { listChanges, writeChanges } from "../../src/base/release/feed.ts";

test("the version of the service is the newest release's, and the package's", () => {
  expect(RELEASES[0].version).toBe(packageJson.version);
});

test("the feed since a version has only newer releases, compared by number and not as text", () => {
  expect(listChanges()).toEqual(RELEASES);
  expect(listChanges("0.0.10")).toEqual(RELEASES.filter(({ version }) => version !== "0.0.9"));
  expect(listChanges(packageJson.version)).toEqual([]);
  expect(listChanges("v0")).toEqual(RELEASES);
  for (const text of ["", "latest", "1.2.3.4", "1.x", "-1"]) expect(listChanges(text)).toBeNull();
});

test("releases are listed newest first, and every code they added exists", () => {
  const versions = RELEASES.map(({ version }) => version);
  expect(versions).toEqual([...versions].sort((left, right) => right.localeCompare(left, "en", { numeric: true })));
  for (const { codesAdded } of RELEASES) for (const code of codesAdded) expect(Object.keys(REFUSALS)).toContain(code);
});

test("the text groups the changes by kind, and shows the new and the old behavior", () => {
  const text = writeChanges([
    {
      version: "9.0.0",
      changes: [
        { kind: "fixed", subject: "Colors", was: "Gray.", now: "Blue." },
        { kind: "added", subject: "Sounds", was: null, now: "A bell." },
        { kind: "fixed", subject: "Smells", was: null, now: "None." },
      ],
      codesAdded: ["bell_broken"],
      codesRemoved: ["too_grey", "too_dull"],
    },
  ]);
  expect(text).toBe(`Version 9.0.0

Added

  Sounds
    A bell.

Fixed

  Colors
    Blue.
    Before: Gray.

  Smells
    None.

Error codes added: bell_broken

Error codes removed: too_grey, too_dull
`);
  expect(writeChanges([])).toBe("No changes.\n");
});
