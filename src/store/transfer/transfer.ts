/**
 * Moves every row of a stopped service from one database to another, atomically. It reads the written rows again and compares them, table by table,
 * before the move counts. A repeated command detects an earlier move that completed without reporting it.
 */
import {
  type Cell,
  RowSum,
  type SourceEnd,
  type TableSum,
  type TargetEnd,
  TransferRefused,
  type TransferTable,
} from "./tables.ts";

export interface MoveStep {
  doing: "copying" | "comparing";
  table: string;
  /** Rows that are done, of all tables together, and their total. */
  done: number;
  of: number;
}

export interface Moved {
  /** The number of rows by table. */
  rows: Readonly<Record<string, number>>;
  /** True if an earlier move had already completed. */
  before: boolean;
  /** The number of texts with a character that the target cannot store, by table and column. */
  replaced: Readonly<Record<string, number>>;
}

/** Moves the rows. Throws TransferRefused or a database's own error, and then leaves the target unchanged. */
export async function moveRows(
  source: SourceEnd,
  target: TargetEnd,
  tables: readonly TransferTable[],
  onStep: (step: MoveStep) => void = () => undefined,
): Promise<Moved> {
  const counts = await countRows(source, tables);
  const of = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const replaced: Record<string, number> = {};
  const makeReport = (doing: MoveStep["doing"]) => {
    let done = 0;
    return (table: string, rows: number): void => {
      done += rows;
      onStep({ doing, table, done, of });
    };
  };
  if (await isUsed(target, tables)) {
    if (!(await isSame(counts, { source, target }, tables, makeReport("comparing"))))
      throw rejectUsed(target.shown);
    return { rows: counts, before: true, replaced };
  }
  if (!target.isNew) throw rejectUsed(target.shown);
  await target.begin(tables);
  const copied = new Map<string, TableSum>();
  const report = makeReport("copying");
  for (const table of tables)
    copied.set(table.name, await copyTable(source, target, table, { report, replaced }));
  for (const table of tables.filter(({ counted }) => counted)) {
    const last = await source.lastNumber(table);
    if (last !== null) await target.setLastNumber(table, last);
  }
  await target.settle(tables);
  await compareAll(copied, { source, target }, tables, makeReport("comparing"));
  await target.finish();
  return { rows: counts, before: false, replaced };
}

type Report = (table: string, rows: number) => void;
interface Ends {
  source: SourceEnd;
  target: TargetEnd;
}

async function countRows(end: SourceEnd, tables: readonly TransferTable[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of tables) counts[table.name] = await end.count(table);
  return counts;
}

/** Ignores `event_last`, because every new database has its row. */
async function isUsed(target: TargetEnd, tables: readonly TransferTable[]): Promise<boolean> {
  for (const table of tables) if (table.name !== "event_last" && (await target.count(table)) > 0) return true;
  return false;
}

async function copyTable(
  source: SourceEnd,
  target: TargetEnd,
  table: TransferTable,
  { report, replaced }: { report: Report; replaced: Record<string, number> },
): Promise<TableSum> {
  const sum = new RowSum();
  for await (const rows of source.rows(table)) {
    const fitted = rows.map((row) => fitRow(row, target, table, replaced));
    for (const row of fitted) sum.add(row);
    await target.add(table, fitted);
    report(table.name, rows.length);
  }
  return sum.sum;
}

/** Returns the row as the target stores it, and counts the texts that change. */
function fitRow(
  row: readonly Cell[],
  target: TargetEnd,
  { name, columns }: TransferTable,
  replaced: Record<string, number>,
): Cell[] {
  return row.map((cell, at) => {
    if (typeof cell !== "string") return cell;
    const fitted = target.asHeld(cell);
    if (fitted !== cell) {
      const place = `${name}.${columns[at]?.name}`;
      replaced[place] = (replaced[place] ?? 0) + 1;
    }
    return fitted;
  });
}

async function sumOf(
  end: SourceEnd,
  table: TransferTable,
  report: Report,
  asHeld?: TargetEnd["asHeld"],
): Promise<TableSum> {
  const sum = new RowSum();
  for await (const rows of end.rows(table)) {
    for (const row of rows)
      sum.add(
        asHeld === undefined ? row : row.map((cell) => (typeof cell === "string" ? asHeld(cell) : cell)),
      );
    report(table.name, rows.length);
  }
  return sum.sum;
}

async function compareAll(
  copied: ReadonlyMap<string, TableSum>,
  { source, target }: Ends,
  tables: readonly TransferTable[],
  report: Report,
): Promise<void> {
  for (const table of tables) {
    const [was, is] = [copied.get(table.name), await sumOf(target, table, report)];
    if (was?.rows === is.rows && was.digest === is.digest) continue;
    throw new TransferRefused(
      `The table ${table.name} of ${target.shown} is not what was read from ${source.shown} (${is.rows} of ${was?.rows} rows): nothing was moved; look at both disks' health and begin again.`,
    );
  }
  for (const table of tables.filter(({ counted }) => counted))
    if ((await source.lastNumber(table)) !== (await target.lastNumber(table)))
      throw new TransferRefused(
        `The next number of ${table.name} is another in ${target.shown} than in ${source.shown}: nothing was moved; begin again.`,
      );
}

/** Returns whether the target holds exactly the rows that a move would copy. */
async function isSame(
  counts: Readonly<Record<string, number>>,
  { source, target }: Ends,
  tables: readonly TransferTable[],
  report: Report,
): Promise<boolean> {
  const targetCounts = await countRows(target, tables);
  if (tables.some(({ name }) => targetCounts[name] !== counts[name])) return false;
  for (const table of tables) {
    const one = await sumOf(
      source,
      table,
      () => undefined,
      (text) => target.asHeld(text),
    );
    if (one.digest !== (await sumOf(target, table, report)).digest) return false;
  }
  return true;
}

function rejectUsed(shown: string): TransferRefused {
  return new TransferRefused(
    `${shown} is in use already, with other rows: name an empty database, or a file or folder that is not there yet.`,
  );
}
