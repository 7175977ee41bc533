/** Checks that another file imports each export, because an unused export is dead code. */
import { expect, test } from "bun:test";
import { dirname, join, normalize } from "node:path";
import { readSources } from "./source-tree.ts";

const NAMED = /import\s+(?:type\s+)?(?:\{([^}]*)\}|\*\s+as\s+\w+)\s+from\s+"(\.[^"]+)"/g;
const WHOLE = /import\("(\.[^"]+)"\)/g;
const EXPORTED = /^export\s+(?:abstract\s+)?(?:async\s+)?(?:function\*?|const|let|class|interface|type|enum)\s+(\w+)/gm;

const sources = readSources("src", "web", "test", "scripts");
const taken = new Set<string>();
for (const { path, text } of sources) {
  const fileOf = (from: string): string => normalize(join(dirname(path), from)).replaceAll("\\", "/");
  for (const [, names, from = ""] of text.matchAll(NAMED)) {
    for (const name of names === undefined ? ["*"] : names.split(","))
      taken.add(
        `${fileOf(from)} ${
          name
            .trim()
            .replace(/^type\s+/, "")
            .split(/\s+as\s+/)[0]
        }`,
      );
  }
  for (const [, from = ""] of text.matchAll(WHOLE)) taken.add(`${fileOf(from)} *`);
}

test("every export is imported by another file", () => {
  const exported = sources
    .filter(({ path }) => !path.endsWith(".d.ts"))
    .flatMap(({ path, text }) => [...text.matchAll(EXPORTED)].map(([, name]) => ({ path, name })));
  expect(exported.length).toBeGreaterThan(500);
  expect(exported.filter(({ path, name }) => !taken.has(`${path} ${name}`) && !taken.has(`${path} *`))).toEqual([]);
});
