/** Tests what a documentation page loads and shows: the theme from the dashboard, the dashboard's pictures, and wide tables. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { renderHtml } from "../../src/interfaces/docs/html.ts";
import { startApi } from "../kit/api-server.ts";

const ROOT = join(import.meta.dir, "..", "..");
const HTML = { headers: { accept: "text/html" } };

test("a page uses the theme that the dashboard stored, and follows a change in another tab", async () => {
  await using api = await startApi();
  const page = await fetch(`${api.base}/docs`, HTML);
  const path = /<script src="([^"]+)"><\/script>\n<\/head>/.exec(await page.text())?.[1] ?? "";
  const answer = await fetch(api.base + path);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
  expect(page.headers.get("content-security-policy")).toContain("script-src 'self';");
  const script = await answer.text();
  const key = /const KEY = "([^"]+)"/.exec(readFileSync(join(ROOT, "web/shell/theme.ts"), "utf8"))?.[1];
  const shown: Record<string, string> = {};
  let kept: string | null = "dark";
  let hear = (): void => undefined;
  const storage = { getItem: (name: string) => (name === key ? kept : null) };
  const run = new Function("localStorage", "document", "addEventListener", script);
  run(storage, { documentElement: { dataset: shown } }, (name: string, listener: () => void) => {
    if (name === "storage") hear = listener;
  });
  expect(shown).toEqual({ theme: "dark" });
  kept = "light";
  hear();
  expect(shown).toEqual({ theme: "light" });
  kept = "system";
  hear();
  expect(shown).toEqual({});
  // A browser without storage still shows the page.
  run(null, { documentElement: { dataset: shown } }, () => undefined);
  expect(shown).toEqual({});
});

test("every picture of the dashboard page is shown", async () => {
  await using api = await startApi();
  const page = await (await fetch(`${api.base}/docs/dashboard`, HTML)).text();
  const pictures = [...page.matchAll(/<img src="([^"]+)"/g)].map(([, path = ""]) => path);
  expect(pictures.map((path) => path.slice("/docs/screens/".length)).toSorted()).toEqual(readdirSync(join(ROOT, "docs/screens")).toSorted());
  for (const path of pictures) {
    const answer = await fetch(api.base + path);
    const bytes = await answer.bytes();
    expect([path, answer.status, answer.headers.get("content-type"), bytes.length > 10_000]).toEqual([path, 200, "image/webp", true]);
    expect(Buffer.from(bytes.slice(8, 12)).toString("latin1")).toBe("WEBP");
  }
  const etag = (await fetch(api.base + pictures[0])).headers.get("etag") ?? "";
  expect((await fetch(api.base + pictures[0], { headers: { "if-none-match": etag } })).status).toBe(304);
  for (const path of ["/docs/screens/nothing.webp", "/docs/screens/toString"]) expect((await fetch(api.base + path)).status).toBe(404);
});

test.each([
  [4, []],
  [5, ["b", "&quot;c&quot;", "d", "e"]],
])("a table of %p columns names the columns of these values, for a screen that shows a row as a list: %p", (columns, named) => {
  const cells = ["a", "b", '"c"', "d", "e"].slice(0, columns);
  const line = (words: readonly string[]): string => `| ${words.join(" | ")} |`;
  const html = renderHtml([line(cells), line(cells.map(() => "---")), line(cells.map((_, at) => `${at}`))].join("\n"));
  expect([...html.matchAll(/<td data-column="([^"]*)">/g)].map(([, name]) => name)).toEqual(named);
  expect(html).toContain("<td>0</td>");
});
