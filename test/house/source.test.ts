/** Checks every source file: its name, its header, its use of the clock, and no unfinished work. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { VERSION } from "../../src/base/release/version.ts";
import { codeOf, PROJECT_ROOT, readSources, type SourceFile } from "./source-tree.ts";

const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d|\.config)?\.tsx?$/;
const LAZY_NAME = /(^|-)(utils?|helpers?|managers?|common|misc)\.tsx?$|^index\.tsx?$/;
const READS_TIME =
  /\bDate\.now\(|\bnew Date\(\s*\)|\bDate\(\s*\)|\bset(Timeout|Interval)\(|\bperformance\.now\(|\bBun\.(sleep|nanoseconds)|\bhrtime\b/;
/** Splits the words, so that this file does not contain what it forbids. */
const UNFINISHED = new RegExp(`\\b(TO${"DO"}|FIX${"ME"}|XX${"X"}|HA${"CK"})\\b`);
const NOT_RUN = /\b(test|it|describe)\.(skip|only|todo|if|skipIf|todoIf|failing)\b|\b(xit|xtest|xdescribe|fit|fdescribe)\(/;

const src = readSources("src");
const all = [...src, ...readSources("web", "test", "scripts")];

function paths(sources: readonly SourceFile[], wrong: (source: SourceFile) => boolean): string[] {
  return sources.filter(wrong).map((source) => source.path);
}

describe("the sources", () => {
  test("a file's name is in kebab-case and specific", () => {
    expect(paths(all, ({ path }) => !KEBAB.test(basename(path)) || LAZY_NAME.test(basename(path)))).toEqual([]);
  });

  test("every file of src has a header comment", () => {
    expect(paths(src, ({ path, text }) => !path.endsWith(".d.ts") && !text.startsWith("/**"))).toEqual([]);
  });

  test("no file has a default export", () => {
    expect(paths(all, ({ path, text }) => !path.endsWith(".d.ts") && /^export default\b/m.test(text))).toEqual([]);
  });

  test("only base/clock.ts reads the time or sets a timer", () => {
    expect(paths(src, (source) => source.path !== "src/base/clock.ts" && READS_TIME.test(codeOf(source)))).toEqual([]);
  });

  test("no source contains a marker of unfinished work", () => {
    expect(paths(all, ({ text }) => UNFINISHED.test(text))).toEqual([]);
  });

  test("no test is skipped", () => {
    expect(paths(readSources("test"), (source) => NOT_RUN.test(codeOf(source)))).toEqual([]);
  });

  test("the package, the change feed and the executable have the same version", () => {
    const manifest = JSON.parse(readFileSync(join(PROJECT_ROOT, "package.json"), "utf8"));
    expect(manifest.version).toBe(VERSION);
  });

  test("no source silences the type checker", () => {
    const SILENCED = new RegExp(`@ts-(${"ignore"}|${"nocheck"}|${"expect-error"})`);
    expect(paths(src, ({ text }) => SILENCED.test(text))).toEqual([]);
  });

  test("no cast goes through unknown or never", () => {
    expect(paths(src, ({ text }) => / as (unknown as [\w(]|never[\],;)])/.test(text))).toEqual([]);
  });

  test("ARCHITECTURE.md has at most 250 lines, and no two headings are equal", () => {
    const text = readFileSync(join(PROJECT_ROOT, "ARCHITECTURE.md"), "utf8");
    const headings: readonly string[] = text.match(/^#+ .*$/gm) ?? [];
    expect(headings.length).toBeGreaterThan(5);
    expect(headings.filter((heading, at) => headings.indexOf(heading) < at)).toEqual([]);
    expect(text.split("\n").length).toBeLessThanOrEqual(250);
  });

  test("every file that a comment or a page names exists", () => {
    const there = new Set(readSources("src", "web", "test", "scripts", "client").flatMap(({ path }) => endingsOf(path)));
    const pages = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "README.md"].map((path) => ({
      path,
      text: readFileSync(join(PROJECT_ROOT, path), "utf8"),
    }));
    const comments = src.map(({ path, text }) => ({ path, text: (text.match(/\/\*\*[\s\S]*?\*\/|\/\/ .*/g) ?? []).join("\n") }));
    const gone = [...pages, ...comments].flatMap(({ path, text }) =>
      (text.match(/(?<![\w/.-])(?:[a-z][a-z0-9-]*\/)*[a-z][a-z0-9-]*\.ts\b/g) ?? [])
        .filter((name) => name !== "index.ts" && !there.has(name))
        .map((name) => `${path}: ${name}`),
    );
    const unlinked = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].flatMap(([, to = ""]) => (existsSync(join(PROJECT_ROOT, to)) ? [] : [`${path}: ${to}`])),
    );
    expect([gone, unlinked]).toEqual([[], []]);
  });
});

/** Returns every suffix of a path: `src/engine/event/run.ts`, `event/run.ts`, `run.ts`. */
function endingsOf(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, index) => parts.slice(index).join("/"));
}
