/**
 * Moves every row of a stopped service from SQLite to PostgreSQL or back, atomically (`relay move`). The source keeps its rows and records
 * where they are now. `--undo` removes that record.
 */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { type DatabaseUrl, readDatabaseUrl } from "../../../base/database-url.ts";
import { partOf, placeFile, syncFile } from "../../../base/durable-file.ts";
import { writeJson } from "../../../base/json.ts";
import { backupFile, databaseFile } from "../../../operator/backup/backup.ts";
import { removePartialFiles } from "../../../operator/backup/restore.ts";
import { findLocalEnvironment } from "../../../platform/account/environment.ts";
import { masterKeyFile } from "../../../platform/secret/master-key.ts";
import { DirectoryLease } from "../../../store/lease/directory-lease.ts";
import { PostgresEnd } from "../../../store/postgres/transfer.ts";
import { type DirectoryLock, lockDataDirectory } from "../../../store/sqlite/directory-lock.ts";
import { openSqlite } from "../../../store/sqlite/sqlite.ts";
import { foldMarked, NewSqliteEnd, SqliteEnd, unmarkFile } from "../../../store/sqlite/transfer.ts";
import { TransferRefused } from "../../../store/transfer/tables.ts";
import { type Moved, type MoveStep, moveRows } from "../../../store/transfer/transfer.ts";
import { type Command, CommandFailure, type Input, UsageError } from "../command.ts";
import { JSON_OUTPUT, openExclusively } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { DATA, readDatabase, readDataDir, underCwd } from "../service-option.ts";
import { count } from "../sync/plan-lines.ts";
import { formatProgress } from "../terminal/progress.ts";
import { explainDirectory } from "./start-refusal.ts";

export const move: Command = {
  words: ["move"],
  summary: "move a stopped service to PostgreSQL or back",
  details:
    "--database or --data-dir names the source. --to names an empty PostgreSQL database, or a new file or data directory. The command copies every row, reads it again and compares it. If anything differs, nothing is moved. Secrets stay sealed, so the target needs the same master key. The source keeps its rows, but no server starts on it until --undo.",
  options: [
    {
      name: "to",
      value: "<url, file or folder>",
      env: "RELAY_MOVE_TO",
      help: "postgres://…, or a data directory or file; the variable hides a password from the process list",
    },
    { name: "undo", help: "let a server start on the source again, with its rows from before the move" },
    ...DATA,
    JSON_OUTPUT,
  ],
  examples: [
    "relay move --data-dir /var/lib/relay --to postgres://relay@db.example.com/relay",
    "relay move --database postgres://relay@db.example.com/relay --to /var/lib/relay",
    "relay move --undo --data-dir /var/lib/relay",
  ],
  async run(input, io) {
    const from = readDatabase(input);
    if (input.on("undo")) return await undo(from, input, io);
    const to = readTarget(input, io);
    const done = from === null ? await toPostgres(to, input, io) : await toFile(from, to, io);
    if (input.on("json")) io.print(writeJson(done.answer, 2));
    else printMoved(done, io);
  },
};

interface Done {
  answer: { from: string; to: string } & Moved;
  /** The lines about what to start next, and how to go back. */
  next: readonly string[];
}

/** Reads the target: a database, or the path of a file. Throws UsageError. */
function readTarget(input: Input, io: Io): DatabaseUrl | string {
  const text = input.text("to");
  if (text === null)
    throw new UsageError("--to is missing: name the target, postgres://… or a data directory or file.");
  if (!/^postgres(ql)?:/i.test(text)) return underCwd(text, io);
  const url = readDatabaseUrl(text);
  if (typeof url === "string") throw new UsageError(`--to ${url}`);
  return url;
}

async function toPostgres(to: DatabaseUrl | string, input: Input, io: Io): Promise<Done> {
  if (typeof to === "string")
    throw new UsageError(
      "Source and target are both SQLite. To copy one, use relay backup and relay restore, or move the folder of a stopped server. Name a PostgreSQL database with --to or --database.",
    );
  const dataDir = readDataDir(input, io);
  const file = databaseFile(dataDir);
  if (!existsSync(file))
    throw new CommandFailure(
      "not_found",
      `There is no data directory at ${dataDir}: name that of the stopped server with --data-dir or RELAY_DATA_DIR.`,
    );
  const lock = lockDataDirectory(dataDir, "relay move", io.clock.now());
  try {
    await prepare(dataDir, lock, io);
    await using target = await PostgresEnd.open(to, io.clock);
    await using source = new SqliteEnd(file, { making: false });
    const tables = source.listTables();
    await target.requireTables(tables);
    const moved = await watched(io, (onStep) => moveRows(source, target, tables, onStep));
    await source.mark(target.shown, io.clock.now());
    return {
      answer: { from: source.shown, to: target.shown, ...moved },
      next: [
        `Start: relay serve --data-dir ${io.system.quote(dataDir)}, with the whole URL in RELAY_DATABASE.`,
        ...formatKeyAdvice(dataDir, io),
        `To go back with all later events: relay move --to ${io.system.quote(dataDir)}, with RELAY_DATABASE. To go back to the rows of now: relay move --undo --data-dir ${io.system.quote(dataDir)}.`,
      ],
    };
  } catch (error) {
    throw explainDirectory(error, dataDir, io) ?? error;
  } finally {
    lock.release();
  }
}

/** Requires that the database belongs to a server that does not run, and migrates it to this version's schema. */
async function prepare(dataDir: string, lock: DirectoryLock, io: Io): Promise<void> {
  const file = databaseFile(dataDir);
  const store = await openExclusively(dataDir, file, io, null);
  try {
    if ((await store.read(findLocalEnvironment)) !== null)
      throw new CommandFailure(
        "database_refused",
        `The data directory ${dataDir} belongs to local development (relay dev). Deploy its definition files to a server with relay sync.`,
      );
    await (await DirectoryLease.take({ store, file, lock, clock: io.clock })).release();
  } finally {
    await store.close();
  }
}

async function toFile(from: DatabaseUrl, to: DatabaseUrl | string, io: Io): Promise<Done> {
  if (typeof to !== "string")
    throw new UsageError(
      "Source and target are both PostgreSQL: copy with pg_dump and pg_restore. Name a data directory or file with --to, or leave out --database.",
    );
  const isFolder = existsSync(to) ? statSync(to).isDirectory() : !to.endsWith(".db");
  const dataDir = isFolder ? to : dirname(to);
  const file = isFolder ? databaseFile(to) : to;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = isFolder ? lockDataDirectory(dataDir, "relay move", io.clock.now()) : null;
  const part = partOf(file);
  try {
    if (isFolder) removePartialFiles(dataDir);
    await using source = await PostgresEnd.open(from, io.clock);
    const marked = await foldMarked(file);
    const exists = existsSync(file) && !marked;
    if (!exists) await (await openSqlite(part, { clock: io.clock })).close();
    const moved = await watched(io, async (onStep) => {
      await using target = new NewSqliteEnd(exists ? file : part, { making: !exists });
      const tables = target.listTables();
      await source.requireTables(tables);
      return await moveRows(source, target, tables, onStep);
    });
    if (!exists) {
      syncFile(part);
      if (marked) keepOld(dataDir, file, io);
      if (!placeFile(part, file, { replace: false }))
        throw new TransferRefused(`Another program created ${file} meanwhile: nothing was moved.`);
    }
    await source.mark(file, io.clock.now());
    const start = isFolder
      ? `relay serve --data-dir ${io.system.quote(dataDir)}, without RELAY_DATABASE`
      : `relay serve with a data directory where this file is relay.db, without RELAY_DATABASE`;
    return {
      answer: { from: source.shown, to: file, ...moved },
      next: [
        `Start: ${start}.`,
        ...formatKeyAdvice(isFolder ? dataDir : null, io),
        "To go back with all later events: relay move --to with the URL of an empty database. To go back to the rows of now: relay move --undo, with RELAY_DATABASE.",
      ],
    };
  } finally {
    for (const ending of ["", "-journal", "-wal", "-shm"]) rmSync(part + ending, { force: true });
    lock?.release();
  }
}

/** Renames the file whose rows were moved away before, so that the new file can take its path. */
function keepOld(dataDir: string, file: string, io: Io): void {
  const kept = backupFile(dataDir, "before-move", io.clock.now());
  mkdirSync(dirname(kept), { recursive: true, mode: 0o700 });
  renameSync(file, kept);
  io.inform(`The previous database is saved in ${kept}: remove it when you no longer need it.`);
}

/** Shows the progress, and after any error reports that nothing was moved. */
async function watched(io: Io, work: (onStep: (step: MoveStep) => void) => Promise<Moved>): Promise<Moved> {
  const words = { copying: "Copying", comparing: "Comparing" } as const;
  let doing: MoveStep["doing"] | null = null;
  const onStep = ({ table, done, of, ...step }: MoveStep): void => {
    if (io.watched) io.redraw(`${words[step.doing]} ${formatProgress(done, of, "rows")}, ${table}`);
    else if (doing !== step.doing) io.inform(`${words[step.doing]} ${count(of, "row")}.`);
    doing = step.doing;
  };
  try {
    return await work(onStep);
  } catch (error) {
    io.redraw(null);
    io.inform("Nothing was moved: both databases are unchanged.");
    throw error;
  } finally {
    io.redraw(null);
  }
}

function formatKeyAdvice(dataDir: string | null, { env }: Io): string[] {
  if (env.RELAY_MASTER_KEY) return ["The secrets are still sealed: the same RELAY_MASTER_KEY opens them."];
  const file =
    dataDir === null ? "the previous master.key, in the folder of the file" : masterKeyFile(dataDir);
  const hasFile = dataDir !== null && existsSync(file);
  return [
    hasFile
      ? `The secrets are still sealed: the same master key opens them, ${file}.`
      : `The secrets are still sealed: before the start, copy the same master key to ${file}${dataDir === null ? "" : ", or set RELAY_MASTER_KEY"}.`,
  ];
}

function printMoved({ answer, next }: Done, io: Io): void {
  const { from, to, rows, before, replaced } = answer;
  const total = count(
    Object.values(rows).reduce((sum, one) => sum + one, 0),
    "row",
  );
  io.print(
    before
      ? `${total} of ${from} are in ${to} already, and all are equal: that move is complete now.`
      : `Moved ${total} (${count(rows.event ?? 0, "event")}) from ${from} to ${to}, read them again and found them equal.`,
  );
  for (const [place, texts] of Object.entries(replaced))
    io.inform(
      `${count(texts, "text")} of ${place} contained U+0000, which PostgreSQL cannot store: � replaces it.`,
    );
  for (const line of next) io.inform(line);
}

async function undo(from: DatabaseUrl | null, input: Input, io: Io): Promise<void> {
  if (input.text("to") !== null && input.given("to"))
    throw new UsageError("--undo takes no --to: name the source of the move with --data-dir or --database.");
  const dataDir = readDataDir(input, io);
  const shown = from === null ? databaseFile(dataDir) : String(from);
  const to = from === null ? await undoFile(dataDir, io) : await PostgresEnd.unmark(from);
  if (to === null) throw new CommandFailure("not_found", `${shown} was not moved: there is nothing to undo.`);
  if (input.on("json")) io.print(writeJson({ database: shown, movedTo: to }, 2));
  else {
    io.print(`A server can start on ${shown} again, with its rows from before the move.`);
    io.inform(`Do not run a server on ${to} any more: both would do the same work twice.`);
  }
}

async function undoFile(dataDir: string, io: Io): Promise<string | null> {
  const file = join(dataDir, "relay.db");
  if (!existsSync(file)) return null;
  const lock = lockDataDirectory(dataDir, "relay move", io.clock.now());
  try {
    return await unmarkFile(file);
  } finally {
    lock.release();
  }
}
