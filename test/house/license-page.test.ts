/** Checks that `relay licenses` shows every package of the executable, and that each license requires only its text. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeLicensePage } from "../../scripts/license-page.ts";
import { runCommand } from "../kit/cli-io.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const ALLOWED = ["MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD"];

const manifest = JSON.parse(readFileSync(join(PROJECT_ROOT, "package.json"), "utf8"));
const page = writeLicensePage();
const rows = [...page.matchAll(/^\| (\S+) \| (\d\S*) \| (.+) \|$/gm)];

test("relay licenses shows the page, with every dependency and a text for each package", async () => {
  const { code, said } = await runCommand(["licenses"], { cwd: tmpdir() });
  expect([code, `${said}\n`]).toEqual([0, page]);
  const names = rows.map(([, name]) => name);
  expect(Object.keys(manifest.dependencies).filter((name) => name !== "bun" && !names.includes(name))).toEqual([]);
  expect(page.match(/^### \S+ \d\S*$/gm)).toHaveLength(rows.length);
});

test("every package has a license that requires only its text", () => {
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter(([, , , license = ""]) => !ALLOWED.includes(license)).map(([row]) => row)).toEqual([]);
});

test("every dependency is pinned to one version", () => {
  const versions = Object.values<string>({ ...manifest.dependencies, ...manifest.devDependencies });
  expect(versions.filter((version) => !/^(npm:[\w@/-]+@)?\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version))).toEqual([]);
});
