/**
 * The upgrade from the trees of all release commits since 0.9.0: each fills a database with its own code, and today's code opens it. It needs the
 * history of this project. If a commit is missing, as in a shallow clone, the test of its release fails.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeFixture, STORE_KINDS } from "../../scripts/upgrade-fixtures.ts";
import { rounds } from "../kit/rounds.ts";
import { openFixture } from "../upgrade/fixture.ts";
import { AFTER_0_17, RELEASES } from "../upgrade/releases.ts";
import { migrateKeepingRows, useEverything } from "../upgrade/upgraded.ts";

const folder = mkdtempSync(join(tmpdir(), "relay-soak-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const FIRST = rounds({ slice: 2, soak: 2, long: 100 });
const LAST = 4;
const ALL = [...RELEASES, AFTER_0_17].flatMap((release) => STORE_KINDS.map((kind) => ({ ...release, kind })));
/** The first and the last releases. The fixtures in test/upgrade cover all of them. */
const FROM = ALL.filter((_, at) => at < FIRST || at >= ALL.length - LAST);

test.each(FROM)(
  "a database that the tree of $version filled on $kind opens with every row, and everything works on it",
  async ({ kind, ...release }) => {
    await using old = await openFixture(await makeFixture(release, kind, folder));
    expect(old.head.release).toBe(release.version);
    await migrateKeepingRows(old);
    await useEverything(old);
  },
  900_000,
);
