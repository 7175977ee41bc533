/** Checks that each suite on a kit's store runs on both databases or has a reason for only one. */
import { expect, test } from "bun:test";
import { FILE_ALONE, POSTGRES_SUITES } from "../kit/postgres-suite.ts";
import { readSources } from "./source-tree.ts";

/** Lists the kits that open the store of TEST_STORE. */
const OPENERS: readonly string[] = ["test/kit/fresh-store.ts", "test/kit/running-service.ts"];

const files = new Map(readSources("test").map((source) => [source.path, source]));

function opensStore(path: string, seen: Set<string>): boolean {
  if (OPENERS.includes(path)) return true;
  if (seen.has(path)) return false;
  seen.add(path);
  const imports = files.get(path)?.imports ?? [];
  return imports.some(({ file, typeOnly }) => file !== null && !typeOnly && opensStore(file, seen));
}

test("every suite of rules and flows on a kit's store runs on PostgreSQL too, or says why not", () => {
  const alone = FILE_ALONE.flatMap(([, suites]) => suites.map((name) => `test/${name}.test.ts`));
  const over = [...files.keys()].filter((path) => /^test\/(rule|flow)\/.*\.test\.ts$/.test(path) && opensStore(path, new Set()));
  expect([...POSTGRES_SUITES, ...alone].sort()).toEqual(over.sort());
});
