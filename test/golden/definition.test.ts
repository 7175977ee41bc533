/**
 * Checks the full problem texts of a gallery of broken definitions. After a change of wording, `UPDATE_GOLDEN=1 bun test
 * test/golden/definition.test.ts` rewrites definition-problems.txt. Read the difference before you commit it.
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

function formatProblems({ title, definition }: Exhibit): string {
  const checked = checkDefinition(definition);
  const problems = "problems" in checked ? checked.problems : [];
  const lines = problems.map(({ field, message }) => `${field === "" ? "(root)" : field}\n    ${message}\n`);
  return `=== ${title} ===\n${lines.join("")}`;
}

test("every broken definition of the gallery has the same problem texts as before", async () => {
  const text = await Bun.file(join(import.meta.dir, "definition-gallery.json")).text();
  const gallery = parseJson(text) as unknown as Exhibit[];
  const told = gallery.map(formatProblems).join("\n");
  if (process.env.UPDATE_GOLDEN === "1") await Bun.write(PROBLEMS, told);
  expect(told).toBe(await Bun.file(PROBLEMS).text());
});
