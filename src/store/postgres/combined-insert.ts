/**
 * Joins INSERTs into several tables into one statement, because a statement costs more than a few rows. All but the last are in its WITH clause. They
 * all see the rows from before the statement, so an INSERT that reads what another one writes is not joined.
 */

import type { Statement } from "./bulk-insert.ts";
import { touches } from "./prefetch.ts";

/** Matches an INSERT. It can have a WITH clause with one UPDATE. */
const INSERT = /^\s*(?:WITH (\w+ AS \(UPDATE \w+ SET [^()]*\)) )?(INSERT INTO (\w+) .*)$/is;

interface Part {
  commonPart: string | undefined;
  insert: string;
  table: string;
}

const parts = new Map<string, Part | null>();
/** Joined statements, by the texts that they are made of. */
const joined = new Map<string, string>();

/** Joins consecutive statements where that is possible. */
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

/** Sorts statements by table. Their order does not matter here, and the server stores each different text. */
function byTable(one: Statement, other: Statement): number {
  return (readPart(one.text)?.table ?? "") < (readPart(other.text)?.table ?? "") ? -1 : 1;
}

function mayJoin(one: Statement, other: Statement): boolean {
  const [first, second] = [readPart(one.text), readPart(other.text)];
  if (first === null || second === null || first.table === second.table) return false;
  // Excludes nulls, because each combination of nulls would be a different statement.
  if (![one, other].every(({ values }) => values.every(isPlain))) return false;
  return !touches(first.insert, second.insert) && !touches(second.insert, first.insert);
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number";
}

function readPart(text: string): Part | null {
  let part = parts.get(text);
  if (part === undefined) {
    const [, commonPart, insert, table] = INSERT.exec(text) ?? [];
    part = insert === undefined || table === undefined ? null : { commonPart, insert, table };
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
    const { commonPart, insert } = readPart(moved) as Part;
    if (commonPart !== undefined) withs.push(commonPart);
    inserts.push(insert);
    given += values.length;
  }
  const last = inserts.pop() as string;
  withs.push(...inserts.map((insert, at) => `part${at} AS (${insert})`));
  return `WITH ${withs.join(", ")} ${last}`;
}
