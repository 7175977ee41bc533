/**
 * Reports a command's refusal or failure: one sentence on stderr, then the registered code and where it is explained. With --json, stdout
 * gets the same as an object for scripts. This module never decides the exit code.
 */
import { resolve } from "node:path";
import { toIso } from "../../base/clock.ts";
import type { RefusalCode } from "../../base/code/refusal-code.ts";
import { maskPasswords } from "../../base/database-url.ts";
import { writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { MigrationRefused } from "../../store/migrate/migrations.ts";
import { SchemaDiffers } from "../../store/migrate/schema-difference.ts";
import { StoreUnavailable } from "../../store/port.ts";
import { adviseOn } from "../../store/postgres/connection-advice.ts";
import { NotReached, ReadOnly, UnfitServer } from "../../store/postgres/error.ts";
import { UpgradeBackupFailed } from "../../store/sqlite/database-copy.ts";
import { DatabaseRefused } from "../../store/sqlite/database-file.ts";
import { DataDirectoryTaken } from "../../store/sqlite/directory-lock.ts";
import { DatabaseTransferred } from "../../store/transfer/mark.ts";
import { TransferRefused } from "../../store/transfer/tables.ts";
import { readProfiles } from "./api/profile.ts";
import { CommandFailure, type Input, UsageError } from "./command.ts";
import { readRunningUrl } from "./data-directory.ts";
import { type Io, programWord } from "./io.ts";
import { DEFAULT_PORT } from "./service-option.ts";

/** Reports the error that ended a command. It reads options from the raw words, because the rest of the line may be invalid. */
export function printRefusal(error: unknown, line: readonly string[], io: Io): void {
  const described = describeError(error);
  const { code } = described;
  const message = nameOption(maskPasswords(described.message), line);
  const extra = error instanceof Refusal ? error.extra : {};
  const docs = typeof extra.details?.docs === "string" ? extra.details.docs : docsOf(code, line, io);
  io.inform(message);
  io.inform(writeLine(code, docs, io));
  if (!line.includes("--json")) return;
  const { problems, resetAtMs, details } = extra;
  const more = {
    ...(problems === undefined ? {} : { problems }),
    ...(resetAtMs === undefined ? {} : { resetAt: toIso(resetAtMs) }),
    ...details,
  };
  io.print(writeJson({ code, message, docs, ...more }, 2));
}

/** Names the option that gave the refused field: `--person is not valid: …`. */
function nameOption(message: string, line: readonly string[]): string {
  const [, field = ""] = /^(\w+) is not valid:/.exec(message) ?? [];
  return field !== "" && readOption(line, field) !== undefined ? `--${message}` : message;
}

/** Formats the code and where it is explained. `relay help` explains it without a running service too. */
export function writeCodeLine(code: RefusalCode, line: readonly string[], io: Io): string {
  return writeLine(code, docsOf(code, line, io), io);
}

function writeLine(code: RefusalCode, docs: string, io: Io): string {
  return `${code}  ${docs}  (or: ${programWord(io)} help ${code})`;
}

/** Returns the docs page of a code: at --docs-url or RELAY_DOCS_URL, otherwise at the command's service, otherwise at the default address. */
export function docsOf(code: RefusalCode, line: readonly string[], io: Io): string {
  const base =
    readOption(line, "docs-url") ||
    io.env.RELAY_DOCS_URL ||
    `${findService(line, io) ?? `http://127.0.0.1:${DEFAULT_PORT}`}/docs`;
  return `${maskPasswords(base).replace(/\/+$/, "")}/errors/${code}`;
}

/** Lists the flags of a parsed command that choose its service. */
export function pointersOf(input: Input): string[] {
  return ["url", "profile", "data-dir"]
    .filter((name) => input.given(name))
    .map((name) => `--${name}=${input.text(name) ?? ""}`);
}

/** Finds the command's service, in the order of target.ts. It skips values that target.ts refuses. */
function findService(line: readonly string[], io: Io): string | null {
  const { RELAY_URL: url, RELAY_KEY: key, RELAY_PROFILE: profile, RELAY_DATA_DIR: folder } = io.env;
  const dataDir = readOption(line, "data-dir");
  const running = () => readRunningUrl(resolve(io.cwd, dataDir || folder || ".relay"));
  const explicit = originOf(readOption(line, "url")) ?? profileUrl(readOption(line, "profile"), io);
  if (explicit !== null || dataDir !== undefined) return explicit ?? running();
  const named = (key ? originOf(url) : null) ?? profileUrl(profile, io);
  return named ?? running() ?? originOf(url) ?? profileUrl(null, io);
}

function originOf(text: string | undefined): string | null {
  const parsed = URL.parse(text ?? "");
  return parsed !== null && /^https?:$/.test(parsed.protocol) ? parsed.origin : null;
}

/** Returns the address of the named profile, or of the default profile for null. Returns null if the file cannot be read. */
function profileUrl(name: string | null | undefined, io: Io): string | null {
  if (name === undefined || name === "") return null;
  try {
    const held = readProfiles({ ...io, inform: () => undefined });
    return held.profiles.find((one) => one.name === (name ?? held.default))?.url ?? null;
  } catch {
    return null;
  }
}

function readOption(line: readonly string[], name: string): string | undefined {
  const at = line.findLastIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`));
  const word = line[at];
  return word?.includes("=") ? word.slice(name.length + 3) : line[at + 1 || line.length];
}

/** Returns the registered code and the sentence for a person. */
export function describeError(error: unknown): { code: RefusalCode; message: string } {
  if (error instanceof UsageError) return { code: "usage", message: error.message };
  if (error instanceof CommandFailure || error instanceof Refusal)
    return { code: error.code, message: error.message };
  if (error instanceof DataDirectoryTaken) return { code: "directory_taken", message: error.message };
  if (error instanceof DatabaseRefused) return { code: "database_refused", message: error.message };
  if (error instanceof UpgradeBackupFailed) return { code: "backup_refused", message: error.message };
  if (
    error instanceof DatabaseTransferred ||
    error instanceof TransferRefused ||
    error instanceof UnfitServer ||
    error instanceof SchemaDiffers
  )
    return { code: "database_refused", message: error.message };
  if (error instanceof MigrationRefused) return { code: "newer_schema", message: error.message };
  if (error instanceof StoreUnavailable || isDatabaseTrouble(error)) {
    const explicit = error.message.replace(/\.?$/, ".");
    const message = /^The database /.test(explicit)
      ? explicit
      : `The database cannot be used now: ${explicit}`;
    return { code: "store_unavailable", message: `${message} ${adviseOnStore(error)}` };
  }
  if (isFileTrouble(error)) {
    return {
      code: "file_unusable",
      message: `${error.path} cannot be used (${error.message}): check the path, and that this user can read and write it.`,
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  return {
    code: "internal",
    message: `The command failed because of a bug: ${message} RELAY_DEBUG=1 shows the code line.`,
  };
}

function adviseOnStore(error: Error): string {
  const advice = isPostgresTrouble(error)
    ? adviseOn(error)
    : isUnfitStatement(error)
      ? "compare its tables with this version's with relay doctor"
      : "check the disk and the permissions of the data directory";
  return `To do: ${advice}.`;
}

/** Reports whether the error comes from PostgreSQL, or from a PostgreSQL that does not answer. */
function isPostgresTrouble(error: unknown): boolean {
  if (error instanceof NotReached || error instanceof ReadOnly) return true;
  return error instanceof Error && (error.name === "PostgresError" || isPostgresTrouble(error.cause));
}

/** Reports whether the error comes from SQLite itself, before a store exists that could wrap it. */
function isDatabaseTrouble(error: unknown): error is Error {
  return error instanceof Error && "code" in error && /^SQLITE_/.test(String(error.code));
}

/** Reports whether a statement names a missing table or column, for which SQLite has this code. The disk is not the cause. */
function isUnfitStatement(error: Error): boolean {
  if ("code" in error && error.code === "SQLITE_ERROR") return true;
  return error.cause instanceof Error && isUnfitStatement(error.cause);
}

/** Reports whether the system refused a file or a folder. */
function isFileTrouble(error: unknown): error is Error & { path: string } {
  const { code, path } = error as { code?: unknown; path?: unknown };
  return (
    error instanceof Error &&
    typeof path === "string" &&
    /^(EACCES|EEXIST|EISDIR|ENOENT|ENOTDIR|EPERM|EROFS|ENOSPC)$/.test(String(code))
  );
}
