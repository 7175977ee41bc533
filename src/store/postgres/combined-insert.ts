/**
 * INSERTs into several tables as one statement, each but the last in its WITH: a statement costs both sides more by itself than a few rows do. All
 * of them see what was there before the first, so none is joined that reads what another writes.
 */

import type { Statement } from "./bulk-insert.ts";
import { touches } from "./prefetch.ts";

/** One, with what it has in a WITH of its own. */
const INSERT = /^\s*(?:WITH (\w+ AS \(UPDATE \w+ SET [^()]*\)) )?(INSERT INTO (\w+) .*)$/is;

interface Part {
  beside: string | undefined;
  insert: string;
  table: string;
}

const parts = new Map<string, Part | null>();
/** By the texts it is made of. */
const joined = new Map<string, string>();

/** As few statements as they may be, in their order. */
export function joinInserts(statements: readonly Statement[]): readonly Statement[] {
  if (statements.length < 2) return statements;
  const runs: Statement[][] = [];
  for (const statement of statements) {
    const run = runs.at(-1);
    if (run?.every((before) => mayJoin(before, statement))) run.push(statement);
    else runs.push([statement]);
  }
  return runs.map((run) => (run.length === 1 ? (run[0] as Statement) : join(run.toSorted(byTable))));
}

/** The server keeps each text that it was given: one for what was posted in another order, which means nothing among these. */
function byTable(one: Statement, other: Statement): number {
  return (readPart(one.text)?.table ?? "") < (readPart(other.text)?.table ?? "") ? -1 : 1;
}

function mayJoin(one: Statement, other: Statement): boolean {
  const [first, second] = [readPart(one.text), readPart(other.text)];
  if (first === null || second === null || first.table === second.table) return false;
  // Each mix of values that are there or not would be a statement of its own.
  if (![one, other].every(({ values }) => values.every(isPlain))) return false;
  return !touches(first.insert, second.insert) && !touches(second.insert, first.insert);
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number";
}

function readPart(text: string): Part | null {
  let part = parts.get(text);
  if (part === undefined) {
    const [, beside, insert, table] = INSERT.exec(text) ?? [];
    part = insert === undefined || table === undefined ? null : { beside, insert, table };
    parts.set(text, part);
  }
  return part;
}

function join(statements: readonly Statement[]): Statement {
  const name = statements.map(({ text }) => text).join("\0");
  let text = joined.get(name);
  if (text === undefined) {
    text = writeJoined(statements);
    joined.set(name, text);
  }
  return { text, values: statements.flatMap(({ values }) => values) };
}

function writeJoined(statements: readonly Statement[]): string {
  const withs: string[] = [];
  const inserts: string[] = [];
  let given = 0;
  for (const { text, values } of statements) {
    const from = given;
    const moved = text.replace(/\$(\d+)/g, (_, place: string) => `$${Number(place) + from}`);
    const { beside, insert } = readPart(moved) as Part;
    if (beside !== undefined) withs.push(beside);
    inserts.push(insert);
    given += values.length;
  }
  const last = inserts.pop() as string;
  withs.push(...inserts.map((insert, at) => `part${at} AS (${insert})`));
  return `WITH ${withs.join(", ")} ${last}`;
}
