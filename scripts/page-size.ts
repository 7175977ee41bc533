/** Prints the compressed size of the dashboard's first load and of the largest later chunks. Fails if the first load is over its limit. */
import { basename } from "node:path";

const FIRST_LOAD_KB = 80;
const MOST_SHOWN = 4;

const built = await Bun.build({
  entrypoints: ["web/index.html"],
  minify: true,
  splitting: true,
  publicPath: "/",
});
const files = new Map<string, { text: string; kb: number }>();
let page = "";
for (const output of built.outputs) {
  const text = await output.text();
  const name = basename(output.path);
  if (name.endsWith(".html")) page = name;
  files.set(name, { text, kb: Bun.gzipSync(text).byteLength / 1024 });
}
/** The files that the page names, and the files that its scripts import before they run. */
const first = new Set([page]);
for (const name of first) {
  const { text } = files.get(name) ?? { text: "" };
  for (const [, found = ""] of text.matchAll(/(?:src=|href=|from|import)"\/([^"]+)"/g)) first.add(found);
}
const total = [...first].reduce((sum, name) => sum + (files.get(name)?.kb ?? 0), 0);
const later = [...files]
  .filter(([name]) => !first.has(name))
  .toSorted(([, one], [, other]) => other.kb - one.kb);
console.log(`first load  ${total.toFixed(1)} KB compressed, of ${FIRST_LOAD_KB}`);
for (const [name, { kb, text }] of later.slice(0, MOST_SHOWN)) {
  console.log(`later       ${kb.toFixed(1)} KB  ${text.includes("cm-editor") ? "the editor" : name}`);
}
process.exit(total > FIRST_LOAD_KB ? 1 : 0);
