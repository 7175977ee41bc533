/**
 * The full problem texts of a gallery of broken definitions. A change of words shows as a change of definition-problems.txt, which
 * `UPDATE_GOLDEN=1 bun test test/golden/definition.test.ts` writes anew, to be read before it is committed.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { parseJson } from "../../src/base/json.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";

const PROBLEMS = join(import.meta.dir, "definition-problems.txt");

interface Exhibit {
  title: string;
  definition: unknown;
}

function sayProblems({ title, definition }: Exhibit): string {
  const checked = checkDefinition(definition);
  const problems = "problems" in checked ? checked.problems : [];
  const lines = problems.map(({ field, message }) => `${field === "" ? "(root)" : field}\n    ${message}\n`);
  return `=== ${title} ===\n${lines.join("")}`;
}

test("every broken definition of the gallery is told the same problems in the same words", async () => {
  const text = await Bun.file(join(import.meta.dir, "definition-gallery.json")).text();
  const gallery = parseJson(text) as unknown as Exhibit[];
  const told = gallery.map(sayProblems).join("\n");
  if (process.env.UPDATE_GOLDEN === "1") await Bun.write(PROBLEMS, told);
  expect(told).toBe(await Bun.file(PROBLEMS).text());
});
