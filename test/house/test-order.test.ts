/** In which order the suites of a run begin: a name that is no suite's any more would say nothing, and several that wait at once leave the processors idle. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { longestFirst, orderFiles } from "../../scripts/test-order.ts";
import { POSTGRES_SUITES } from "../kit/postgres-suite.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const SOURCE = join(PROJECT_ROOT, "scripts", "test-order.ts");
const files = [...new Bun.Glob("test/**/*.test.ts").scanSync(PROJECT_ROOT)];

test("every suite that is named is there", async () => {
  const named = [...(await Bun.file(SOURCE).text()).matchAll(/"(test\/[^"]+)": \d/g)].map(([, name]) => `${name}.test.ts`);
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((file) => !existsSync(join(PROJECT_ROOT, file)))).toEqual([]);
});

test("the long ones begin before all others, and no three that wait at once", () => {
  const order = orderFiles(files);
  expect(Object.keys(order).toSorted()).toEqual(files.toSorted());
  const long = files.filter((file) => (order[file] ?? 0) > 1_000).toSorted((one, other) => (order[other] ?? 0) - (order[one] ?? 0));
  expect(long.length).toBeGreaterThan(40);
  const waits = ["silent-database", "postgres-break", "away-database", "unheard-node"].map((name) =>
    long.findIndex((file) => file.endsWith(`/${name}.test.ts`)),
  );
  expect(Math.min(...waits)).toBe(0);
  for (const [nth, place] of waits.entries()) expect(place).toBeGreaterThan((waits[nth - 1] ?? -3) + 2);
});

test("on PostgreSQL the long ones come first, and none is left out", () => {
  const suites = longestFirst(POSTGRES_SUITES);
  expect(suites.toSorted()).toEqual(POSTGRES_SUITES.toSorted());
  expect(suites[0]).toBe("test/flow/schedule.test.ts");
});
