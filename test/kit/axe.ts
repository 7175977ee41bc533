/** Finds accessibility barriers on a page with axe-core: for screen readers, poor sight or use without a mouse. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";

const SOURCE = readFileSync(join(import.meta.dir, "..", "..", "node_modules", "axe-core", "axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

interface Found {
  id: string;
  nodes: { target: string[]; failureSummary: string }[];
}

/** Returns one line for each finding: the rule, the element, and what is wrong. */
export async function findBarriers(page: Page): Promise<string[]> {
  // The page's content security policy does not apply to scripts that the test evaluates.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(SOURCE);
  const found = (await page.evaluate(
    `axe.run(document, ${JSON.stringify({ runOnly: { type: "tag", values: TAGS }, resultTypes: ["violations"] })}).then(({ violations }) => violations)`,
  )) as Found[];
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary.split("\n").slice(1, 2).join("").trim()}`),
  );
}
