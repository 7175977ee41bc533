/** What is released says whose work it holds: THIRD_PARTY.md is what the installed packages say, each with a licence that allows it. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { writeThirdParty } from "../../scripts/third-party.ts";

const ROOT = join(import.meta.dir, "..", "..");
/** Licences that ask for their text alone. */
const ALLOWED = ["MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD"];

const page = writeThirdParty(ROOT);

test("THIRD_PARTY.md lists what is installed; scripts/third-party.ts writes it anew", () => {
  expect(readFileSync(join(ROOT, "THIRD_PARTY.md"), "utf8")).toBe(page);
});

test("every package has a licence that asks for its text alone", () => {
  const rows = [...page.matchAll(/^\| (\S+) \| (\d\S*) \| (.+) \|$/gm)];
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter(([, , , licence = ""]) => !ALLOWED.includes(licence)).map(([row]) => row)).toEqual([]);
});

test("every dependency is pinned to one version", () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const versions = Object.values<string>({ ...manifest.dependencies, ...manifest.devDependencies });
  expect(versions.filter((version) => !/^(npm:[\w@/-]+@)?\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version))).toEqual([]);
});
