/**
 * Translates the stack of an executable, which names minified functions, to files and lines of the sources: `npm run stack < log.txt`. It prints all
 * other text unchanged. The sources must be those of the executable's version, because the names of its parts are made of their content.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { SourceMap, type SourceMapping } from "node:module";
import { join, relative, resolve } from "node:path";
import { BUILD_FLAGS } from "./build-flags.ts";

/** A place in the executable, such as `/$bunfs/root/main-568q0y30.js:10:270`. Windows spells the folder `B:/~BUN/root`. */
const PLACE = /(?:\/\$bunfs|[A-Z]:[\\/]~BUN)[\\/]root[\\/]([\w-]+\.js):(\d+):(\d+)/g;

/** Makes the source maps of this tree in the folder: a file for each part of the executable. Returns false if the build failed. */
async function makeMaps(folder: string): Promise<boolean> {
  const main = relative(folder, resolve("src/main.ts"));
  const command = [
    process.execPath,
    "build",
    main,
    ...BUILD_FLAGS,
    "--sourcemap=external",
    "--outfile=relay",
  ];
  return (await Bun.spawn(command, { cwd: folder, stdout: "ignore", stderr: "inherit" }).exited) === 0;
}

/** Replaces each place that the maps know. `seen` counts the places, and `unknown` those of another version. */
function translate(text: string, folder: string): { text: string; seen: number; unknown: number } {
  const counts = { seen: 0, unknown: 0 };
  const translated = text.replaceAll(PLACE, (place, part: string, line: string, column: string) => {
    counts.seen += 1;
    const {
      originalSource,
      originalLine = 0,
      originalColumn = 0,
    } = findEntry(join(folder, `${part}.map`), Number(line), Number(column));
    if (originalSource !== undefined)
      return `${relative(process.cwd(), resolve(folder, originalSource))}:${originalLine + 1}:${originalColumn + 1}`;
    counts.unknown += 1;
    return place;
  });
  return { text: translated, ...counts };
}

function findEntry(file: string, line: number, column: number): Partial<SourceMapping> {
  if (!existsSync(file)) return {};
  // A map counts lines and columns from 0, and a stack from 1.
  return new SourceMap(JSON.parse(readFileSync(file, "utf8"))).findEntry(line - 1, column - 1);
}

mkdirSync("dist", { recursive: true });
const folder = mkdtempSync(join("dist", "stack-"));
try {
  const given = await Bun.stdin.text();
  if (!(await makeMaps(folder))) process.exit(1);
  const { text, seen, unknown } = translate(given, folder);
  process.stdout.write(text);
  if (seen === 0) console.error("stack: the text has no place in an executable.");
  if (unknown > 0)
    console.error(
      `stack: ${unknown} of ${seen} places are unknown here. Check out the tag of the executable's version.`,
    );
} finally {
  rmSync(folder, { recursive: true });
}
