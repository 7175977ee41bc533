/** Checks that the parts of `.ci/run`, which the workflow calls, together run every folder of tests. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT_ROOT } from "./source-tree.ts";

const script = readFileSync(join(PROJECT_ROOT, ".ci/run"), "utf8");

test("the workflow names exactly the parts of .ci/run", () => {
  const workflow = readFileSync(join(PROJECT_ROOT, ".github/workflows/ci.yml"), "utf8");
  const named = [...workflow.matchAll(/^ +only: (\w+)$/gm)].map(([, part]) => part);
  expect(named).toEqual([...script.matchAll(/^ {2}(\w+)\)$/gm)].flatMap(([, part]) => (part === "all" ? [] : [part])));
  expect(named).toHaveLength(2);
});

test("the parts run every folder of tests", () => {
  const [, braces = ""] = /--sqlite test\/\{([a-z,]+)\}/.exec(script) ?? [];
  const named = [...braces.split(","), ...[...script.matchAll(/--sqlite test\/([a-z]+)\//g)].map(([, folder]) => folder)];
  const folders = readdirSync(join(PROJECT_ROOT, "test"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !["kit", "mutants", "soak"].includes(entry.name))
    .map((entry) => entry.name);
  expect(named.toSorted()).toEqual(folders.toSorted());
});
