/**
 * Opens a data directory for one command, while a server may run on it. It finds the app and environment that the command means, and the
 * running service's address. It never takes the runner's lock.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { DatabaseUrl } from "../../base/database-url.ts";
import { listApps } from "../../platform/account/app.ts";
import { type Environment, listEnvironments } from "../../platform/account/environment.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, Store } from "../../store/port.ts";
import { requireDatabaseFile } from "../../store/sqlite/database-file.ts";
import {
  DataDirectoryTaken,
  type DirectoryLock,
  lockDataDirectory,
} from "../../store/sqlite/directory-lock.ts";
import type { MigrationProgress } from "../../store/sqlite/migrate.ts";
import { openSqlite } from "../../store/sqlite/sqlite.ts";
import { CommandFailure, type Input, type Option } from "./command.ts";
import type { Io } from "./io.ts";
import { explainDirectory, explainWrite } from "./server/start-refusal.ts";
import { ALLOW_PRIVATE, DATA, readDatabase, readDataDir } from "./service-option.ts";
import { formatProgress } from "./terminal/progress.ts";

export const APP: Option = {
  name: "app",
  value: "<app id>",
  env: "RELAY_APP",
  otherwise: "the only app",
  help: "the app's id",
  of: "app",
};
export const ENVIRONMENT: Option = {
  name: "environment",
  value: "<name>",
  env: "RELAY_ENVIRONMENT",
  otherwise: "the only one, else development",
  help: "development, production or local",
  of: ["development", "production", "local"],
};
export const JSON_OUTPUT: Option = { name: "json", help: "print JSON" };
/** The options that choose an environment of a data directory. */
export const OF_ENVIRONMENT: readonly Option[] = [APP, ENVIRONMENT, ...DATA];

/** Runs `work` on the data directory's store, and closes it. Fails if there is no data directory, unless `create` is set. */
export async function withStore<Result>(
  input: Input,
  io: Io,
  work: (store: Store) => Promise<Result>,
  options: { create?: boolean } = {},
): Promise<Result> {
  const folder = readDataDir(input, io);
  const file = join(folder, "relay.db");
  const database = readDatabase(input);
  if (database !== null) return await withShared(database, io, work, options.create === true);
  if (!existsSync(file) && options.create !== true) {
    throw new CommandFailure(
      "not_found",
      `There is no data directory at ${folder}: name that of the server with --data-dir or RELAY_DATA_DIR, or start a service with relay dev or relay serve.`,
    );
  }
  requireDatabaseFile(folder);
  const isNew = !existsSync(file);
  let store: Store;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    store = await openExclusively(folder, file, io, lockForMigration);
  } catch (error) {
    throw explainDirectory(error, folder, io) ?? error;
  }
  try {
    const done = await work(store);
    if (isNew)
      io.inform(
        `The command created a new data directory at ${resolve(folder)}. If your server uses another one, remove this directory, and name the server's with --data-dir or RELAY_DATA_DIR.`,
      );
    return done;
  } catch (error) {
    throw explainWrite(error, folder, io) ?? error;
  } finally {
    await store.close();
  }
}

/** Runs `work` on a PostgreSQL database. Only a server migrates its schema, because nodes of an older version would not know the new tables. */
async function withShared<Result>(
  database: DatabaseUrl,
  io: Io,
  work: (store: Store) => Promise<Result>,
  create: boolean,
): Promise<Result> {
  const onMigrate = ({ from, to }: { from: number; to: number }): void => {
    if (from === 0 && create) return;
    throw from === 0
      ? new CommandFailure(
          "not_found",
          `The database ${database} has no service yet: name another database, or start relay serve with this one.`,
        )
      : new CommandFailure(
          "database_refused",
          `${database} has schema ${from}, but this version needs ${to}: start a server of this version first, which migrates the database.`,
        );
  };
  const { openPostgres } = await import("../../store/postgres/postgres.ts");
  const store = await openPostgres(database, { clock: io.clock, onMigrate });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/**
 * Opens a database file. It migrates an older schema only if no server runs, because an older server would not know the new tables. `take`
 * takes the lock that ensures this, and null means that the caller holds it.
 */
export async function openExclusively(
  folder: string,
  file: string,
  io: Io,
  take: typeof lockForMigration | null,
): Promise<Store> {
  let lock: DirectoryLock | null = null;
  const onMigrate = (_schema: object, begun: boolean): void => {
    lock = take?.(folder, io) ?? null;
    const how = begun ? "and continues an earlier migration" : "after a copy into backups/";
    io.inform(`The command first migrates the database to this version's schema, ${how}.`);
  };
  try {
    const onMigrationProgress: MigrationProgress = ({ rows, of }) => {
      if (!io.watched) {
        if (of !== null) io.inform(`Rows moved: ${rows}.`);
      } else io.redraw(of === null ? null : `Moving ${formatProgress(rows, of, "rows")}`);
    };
    return await openSqlite(file, { clock: io.clock, onMigrate, onMigrationProgress });
  } finally {
    (lock as DirectoryLock | null)?.release();
  }
}

function lockForMigration(folder: string, io: Io): DirectoryLock {
  try {
    return lockDataDirectory(folder, "a relay command", io.clock.now());
  } catch (error) {
    if (!(error instanceof DataDirectoryTaken)) throw error;
    throw new DataDirectoryTaken(
      `${error.message} The database does not have this version's schema yet. A running server of this version migrates it now: wait until it is done. An older server must first be started with this version.`,
    );
  }
}

/** Opens the sealer of this data directory's secrets. Refuses with `invalid_input` if the server's own key is not available. */
export async function openSealerHere(store: Store, input: Input, io: Io): Promise<Sealer> {
  const [dataDir, masterKey] = [readDataDir(input, io), io.env.RELAY_MASTER_KEY || null];
  // The sealer is imported late, because most commands need none of it.
  const { openSealer } = await import("../../rules/relay/master-key-proof.ts");
  return await openSealer(store, { dataDir, masterKey });
}

/** Runs `withStore` with the environment that --app and --environment name. Fails with the names that exist. */
export function withEnvironment<Result>(
  input: Input,
  io: Io,
  work: (store: Store, environment: Environment) => Promise<Result>,
): Promise<Result> {
  return withStore(input, io, async (store) =>
    work(store, await store.read((tx) => chooseEnvironment(tx, input))),
  );
}

async function chooseEnvironment(tx: Reader, input: Input): Promise<Environment> {
  const apps = await listApps(tx);
  const appId = input.text("app") ?? (apps.length === 1 ? apps[0]?.id : undefined);
  if (appId === undefined) throw new CommandFailure("not_found", formatAppChoice(apps));
  const environments = await listEnvironments(tx, appId);
  if (environments.length === 0) {
    throw new CommandFailure(
      "not_found",
      `There is no app with the id ${appId}: relay apps list shows the ones that exist.`,
    );
  }
  const name =
    input.text("environment") ?? (environments.length === 1 ? environments[0]?.name : "development");
  const found = environments.find((environment) => environment.name === name);
  if (found !== undefined) return found;
  const known = environments.map((environment) => environment.name).join(", ");
  throw new CommandFailure(
    "not_found",
    `The app ${appId} has no environment ${name}: name one of ${known} with --environment.`,
  );
}

function formatAppChoice(apps: readonly { id: string }[]): string {
  if (apps.length === 0) return "There is no app yet: create one with relay apps create <name>.";
  const known = apps.map((app) => app.id).join(", ");
  return `There are ${apps.length} apps: name one with --app (${known}).`;
}

const FILE_NAME = "running.json";

/** The data that a running server stores for commands on the same machine. */
interface RunningServer {
  /** The public origin. */
  url: string;
  /** The server's address on this machine. */
  near: string;
  /** The limits that the server started with. */
  limits: Readonly<Record<string, number>>;
  /** The private addresses that the server may reach. */
  allowPrivate: readonly string[];
}

/** Writes the note of a running server. The returned function removes it. A disk error only leaves commands without an address. */
export function recordRunning(dataDir: string, running: RunningServer): () => void {
  const file = join(dataDir, FILE_NAME);
  const quietly = (work: () => void): void => {
    try {
      work();
    } catch {}
  };
  quietly(() => writeFileSync(file, `${JSON.stringify(running)}\n`));
  return () => quietly(() => rmSync(file, { force: true }));
}

/** Returns the origin in the note, or null. */
export function readRunningUrl(dataDir: string): string | null {
  const { url } = readRunning(dataDir);
  return typeof url === "string" ? url : null;
}

/** Returns the origin in the note that only this machine can reach, or null. */
export function readNearUrl(dataDir: string): string | null {
  const { near } = readRunning(dataDir);
  return typeof near === "string" ? near : null;
}

/** Returns the limits in the note, or null without a note. */
export function readRunningLimits(dataDir: string): Record<string, number> | null {
  const { limits } = readRunning(dataDir);
  if (typeof limits !== "object" || limits === null) return null;
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => Number.isSafeInteger(value)));
}

/** Returns the private addresses that this command may reach: its own option, or else those of the server here. */
export function readAllowPrivate(input: Input, io: Io): readonly string[] {
  const given = input.list(ALLOW_PRIVATE.name);
  if (given.length > 0) return given;
  return readRunningAllowPrivate(readDataDir(input, io));
}

/** Returns the private hosts that the running server may call, or the last one on this data directory. */
export function readRunningAllowPrivate(dataDir: string): readonly string[] {
  const { allowPrivate } = readRunning(dataDir);
  return Array.isArray(allowPrivate) ? allowPrivate.filter((one) => typeof one === "string") : [];
}

/** Reads the note. Callers check each field, because the file may hold anything. */
function readRunning(dataDir: string): Partial<Record<keyof RunningServer, unknown>> {
  try {
    const running: unknown = JSON.parse(readFileSync(join(dataDir, FILE_NAME), "utf8"));
    return running ?? {};
  } catch {
    return {};
  }
}
