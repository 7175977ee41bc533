/** The dashboard hides a button by a permission of the table, and the style sheet has a rule for each of them. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { PERMISSION_NAMES } from "../../src/platform/account/permission.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

test("each permission of a button is in the table and in the style sheet", async () => {
  const used = new Set<string>();
  for await (const path of new Glob("web/**/*.ts").scan(PROJECT_ROOT)) {
    const text = readFileSync(join(PROJECT_ROOT, path), "utf8");
    for (const [, name = ""] of text.matchAll(/data-needs="([^"]+)"/g)) used.add(name);
  }
  const css = readFileSync(join(PROJECT_ROOT, "web/style/permission.css"), "utf8");
  const hidden = [...css.matchAll(/:not\(\.may-(\w+)\) \[data-needs="(\w+)"\]/g)].map(([, may, needs]) => `${may} ${needs}`);
  const asks = [...css.matchAll(/\.shell\.may-(\w+) \[data-lacks="(\w+)"\]/g)].map(([, may, lacks]) => `${may} ${lacks}`);
  expect(asks).toEqual(hidden);
  expect(PERMISSION_NAMES).toEqual(expect.arrayContaining([...used]));
  expect(hidden.sort()).toEqual([...used].map((name) => `${name} ${name}`).sort());
});
