/**
 * The upgrade from every release since 0.9.0, on both databases, from databases that the releases' own code filled (scripts/upgrade-fixtures.ts). The
 * fixtures do not need the history of this project. test/soak/upgrade.test.ts makes them again from the release commits.
 */
import { afterAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { rounds } from "../kit/rounds.ts";
import { openFixture } from "./fixture.ts";
import { AFTER_0_17, RELEASES } from "./releases.ts";
import { migrateKeepingRows, useEverything } from "./upgraded.ts";

const FOLDER = join(import.meta.dir, "fixtures");
const KINDS = ["sqlite", "postgres"] as const;
const FROM = [...RELEASES, AFTER_0_17].flatMap(({ version }) => KINDS.map((kind) => [version, kind] as const));
const passed = new Map<string, string>();

afterAll(() => {
  const lines = [...RELEASES, AFTER_0_17].map(({ version }) =>
    [version, ...KINDS.map((kind) => passed.get(`${version}-${kind}`) ?? "not passed")].map((cell) => cell.padEnd(14)).join(""),
  );
  console.log(["upgraded from  SQLite        PostgreSQL", ...lines].join("\n"));
});

test("there is a fixture of each release for each database", () => {
  expect(readdirSync(FOLDER).sort()).toEqual(FROM.map(([version, kind]) => `${version}-${kind}.zst`).sort());
});

/** `npm test` upgrades from the last release, and the soak upgrades from all. */
test.each(FROM.slice(-rounds({ slice: KINDS.length, soak: FROM.length })))(
  "a database of %s on %s opens with every row unchanged, and everything works on it",
  async (version, kind) => {
    await using old = await openFixture(join(FOLDER, `${version}-${kind}.zst`));
    await migrateKeepingRows(old);
    await useEverything(old);
    passed.set(`${version}-${kind}`, "passed");
  },
);
