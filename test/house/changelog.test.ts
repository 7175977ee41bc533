/** CHANGELOG.md is what the change feed's source says; UPDATE_GOLDEN=1 writes it anew. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeChangelog } from "../../scripts/changelog.ts";
import { RELEASES } from "../../src/release/change.ts";

const FILE = join(import.meta.dir, "..", "..", "CHANGELOG.md");

test("CHANGELOG.md is what src/release says", () => {
  const page = writeChangelog(RELEASES);
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(FILE, page);
  expect(readFileSync(FILE, "utf8")).toBe(page);
});
