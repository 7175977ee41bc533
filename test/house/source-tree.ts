/** The sources as the house tests read them: their text, their code without comments, and what they import. It judges nothing. */
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

interface Import {
  /** As written: `../ground/clock.ts`, `bun:sqlite`. */
  from: string;
  /** The imported file relative to the project's root, or null for a package. */
  file: string | null;
  /** Whether it is gone when the types are. */
  typeOnly: boolean;
}

export interface SourceFile {
  /** Relative to the project's root, with forward slashes: `src/base/clock.ts`. */
  path: string;
  text: string;
  imports: readonly Import[];
}

export const PROJECT_ROOT = join(import.meta.dir, "..", "..");

const STATEMENT = /^[ \t]*(import|export)\s+(type\s+)?([^;"'`]*?from\s*)?["']([^"'\n]+)["']/gm;
const DYNAMIC = /\bimport\(\s*["']([^"'\n]+)["']/g;

/** Every TypeScript file below the given folders of the project, in order of their paths. */
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
    found.push({ from, file: resolve(path, from), typeOnly: type !== undefined || onlyTypes(names ?? "") });
  }
  for (const [, from = ""] of text.matchAll(DYNAMIC)) {
    found.push({ from, file: resolve(path, from), typeOnly: false });
  }
  return found;
}

/** `{ type A, type B } from` holds types alone. */
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

/** The file's code alone: no comments, no types. */
export function codeOf(source: SourceFile): string {
  return source.path.endsWith(".d.ts") ? "" : transpiler.transformSync(source.text.replace(MACRO, ""));
}

/** Runs a function of the import when the file is compiled; the transpiler alone cannot resolve it. */
const MACRO = ' with { type: "macro" }';
