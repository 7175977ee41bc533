/** Reads the sources for the tests of the codebase: their text, their code without comments, and their imports. It checks nothing. */
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

interface Import {
  /** Holds the specifier as written, for example `../base/clock.ts` or `bun:sqlite`. */
  from: string;
  /** Holds the imported file relative to the project's root, or null for a package. */
  file: string | null;
  /** Marks an import that disappears with the types. */
  typeOnly: boolean;
  /** Marks an import that is loaded when it is used. */
  isDynamic: boolean;
}

export interface SourceFile {
  /** Holds the path relative to the project's root with forward slashes: `src/base/clock.ts`. */
  path: string;
  text: string;
  imports: readonly Import[];
}

export const PROJECT_ROOT = join(import.meta.dir, "..", "..");

const STATEMENT = /^[ \t]*(import|export)\s+(type\s+)?([^;"'`]*?from\s*)?["']([^"'\n]+)["']/gm;
const DYNAMIC = /\bimport\(\s*["']([^"'\n]+)["']/g;

/** Reads every TypeScript file below the given folders of the project, in order of their paths. */
export function readSources(...folders: readonly string[]): SourceFile[] {
  return folders
    .flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,tsx,mts}`).scanSync(PROJECT_ROOT)])
    .map((path) => path.replaceAll("\\", "/"))
    .sort()
    .map(readSource);
}

function readSource(path: string): SourceFile {
  const text = readFileSync(join(PROJECT_ROOT, path), "utf8");
  return { path, text, imports: readImports(path, text) };
}

function readImports(path: string, text: string): Import[] {
  const found: Import[] = [];
  for (const [, , type, names, from = ""] of text.matchAll(STATEMENT)) {
    found.push({ from, file: resolve(path, from), typeOnly: type !== undefined || onlyTypes(names ?? ""), isDynamic: false });
  }
  for (const [, from = ""] of text.matchAll(DYNAMIC)) {
    found.push({ from, file: resolve(path, from), typeOnly: false, isDynamic: true });
  }
  return found;
}

/** Matches `{ type A, type B } from`, which imports only types. */
function onlyTypes(names: string): boolean {
  const inBraces = /^\{(.*)\}\s*from\s*$/s.exec(names.trim())?.[1];
  if (inBraces === undefined) return false;
  const each = inBraces
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  return each.length > 0 && each.every((name) => name.startsWith("type "));
}

function resolve(path: string, from: string): string | null {
  if (!from.startsWith(".")) return null;
  return normalize(join(dirname(path), from)).replaceAll("\\", "/");
}

const transpiler = new Bun.Transpiler({ loader: "ts" });

/** Returns the file's code without comments and types. */
export function codeOf(source: SourceFile): string {
  return source.path.endsWith(".d.ts") ? "" : transpiler.transformSync(source.text.replace(MACRO, ""));
}

/** Marks an import whose function runs at compile time, which the transpiler cannot resolve. */
const MACRO = ' with { type: "macro" }';
