/** Reads the expected tables of each database from migrations/tables.json. UPDATE_GOLDEN rewrites the part of one database. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SchemaShape } from "../../src/store/migrate/schema-difference.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";

const FILE = join(PROJECT_ROOT, "migrations/tables.json");

/** Returns the file's part for one database. If UPDATE_GOLDEN is set, it first writes the part. */
export function readExpected(part: "sqlite" | "postgres", found: SchemaShape): SchemaShape {
  const read = () => JSON.parse(readFileSync(FILE, "utf8")) as Record<typeof part, SchemaShape>;
  if (process.env["UPDATE_GOLDEN"] !== undefined) writeFileSync(FILE, write({ ...read(), [part]: found }));
  return read()[part];
}

/** Formats one line for each table, so that a diff shows which table changed. */
function write(parts: Record<string, SchemaShape>): string {
  const lines = (shape: SchemaShape) => Object.entries(shape).map(([table, is]) => `    ${JSON.stringify(table)}: ${JSON.stringify(is)}`);
  const written = Object.entries(parts).map(([part, shape]) => `  ${JSON.stringify(part)}: {\n${lines(shape).join(",\n")}\n  }`);
  return `{\n${written.join(",\n")}\n}\n`;
}
