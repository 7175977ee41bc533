/** Tests messages of a start and of `relay doctor` for a PostgreSQL that is unusable or unusual: each says what to do. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { type DatabaseUrl, readDatabaseUrl } from "../../src/base/database-url.ts";
import { describeError } from "../../src/interfaces/cli/refusal-text.ts";
import { classifyError } from "../../src/store/postgres/error.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { runCommand } from "../kit/cli-io.ts";
import { makeFolder } from "../kit/data-directory.ts";
import { type FreshDatabase, freshDatabase } from "../kit/postgres.ts";

const folder = makeFolder();
/** Contains characters that are special in a name, in a URL and in SQL. */
const PASSWORD = "p:w/?#%@ ü\"''\\$&";
const stranger = `relay_stranger_${process.pid}`;
let database: FreshDatabase;
let latin: string;

beforeAll(async () => {
  database = await freshDatabase({ empty: true });
  latin = `${new URL(database.url).pathname.slice(1)}_latin`;
  await run(`CREATE ROLE ${stranger} LOGIN PASSWORD '${PASSWORD}'`, `CREATE DATABASE ${latin} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
});
afterAll(async () => {
  await run(`DROP DATABASE ${latin}`, `DROP ROLE ${stranger}`);
  await database[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function run(...statements: string[]): Promise<void> {
  await using sql = new SQL({ url: database.url, max: 1 });
  for (const statement of statements) await sql.unsafe(statement);
}

function urlWith(change: (url: URL) => void): string {
  const url = new URL(database.url);
  change(url);
  return url.href;
}

async function start(text: string): Promise<string> {
  const place = readDatabaseUrl(text);
  if (typeof place === "string") throw new Error(place);
  try {
    await openPostgres(place, { clock: systemClock });
    return "started";
  } catch (error) {
    const { code, message } = describeError(error);
    return `${code}: ${message}`;
  }
}

interface Found {
  check: string;
  state: string;
  message: string;
  todo: string | null;
}

async function look(url: string): Promise<Found[]> {
  const { said } = await runCommand(["doctor", "--json"], { cwd: folder, env: { RELAY_DATABASE: url }, clock: systemClock });
  return (JSON.parse(said) as { items: Found[] }).items;
}

const STRANGER = (url: URL): void => {
  url.username = stranger;
  url.password = encodeURIComponent(PASSWORD.replace("''", "'"));
};

const CASES: [what: string, change: (url: URL) => void, check: string, why: string, todo: string][] = [
  [
    "a wrong password",
    (url) => {
      url.password = "none";
    },
    "connection",
    "password authentication failed",
    "check the user and the password in the URL",
  ],
  [
    "a missing database",
    (url) => {
      url.pathname = "/nothing_there";
    },
    "connection",
    'database "nothing_there" does not exist',
    "create the database with createdb",
  ],
  [
    "a port without a server",
    (url) => {
      url.port = "1";
    },
    "connection",
    "no server accepts connections at 127.0.0.1:1",
    "check that PostgreSQL runs there",
  ],
  [
    "an unknown host",
    (url) => {
      url.hostname = "unknown.invalid";
    },
    "connection",
    "no address was found for the host unknown.invalid",
    "check that PostgreSQL runs there",
  ],
  [
    "a database of another encoding",
    (url) => {
      url.pathname = `/${latin}`;
    },
    "encoding",
    "LATIN1: it cannot store every text",
    "create the database again with ENCODING 'UTF8' TEMPLATE template0",
  ],
];

test.each(CASES)("%s is reported with a remedy", async (_what, change, check, why, todo) => {
  const url = urlWith(change);
  const refused = await start(url);
  expect(refused).toStartWith(check === "connection" ? "store_unavailable: " : "database_refused: ");
  expect(refused).toContain(why);
  expect(refused).toContain(`To do: ${todo}`);
  const found = (await look(url)).find((one) => one.state === "fail");
  expect(found?.check).toBe(check);
  expect(found?.message).toContain(why);
  expect(found?.todo).toContain(todo);
});

test("a user who cannot create tables gets the administrator's command, and a password can hold any character", async () => {
  const url = urlWith(STRANGER);
  const refused = await start(url);
  expect(refused).toStartWith("store_unavailable: The database cannot be used now: permission denied for schema public (42501).");
  expect(refused).toContain("ALTER DATABASE … OWNER TO");
  expect((await look(url)).find(({ state }) => state === "fail")?.check).toBe("privileges");
});

test("a user without a schema for new tables gets a message", async () => {
  const name = new URL(database.url).pathname.slice(1);
  await run(`ALTER DATABASE ${name} SET search_path = ''`);
  const refused = await start(database.url);
  await run(`ALTER DATABASE ${name} RESET search_path`);
  expect(refused).toStartWith("store_unavailable: The database cannot be used now: no schema has been selected to create in (3F000).");
  expect(refused).toContain("ALTER ROLE … SET search_path = public");
});

test("a database with another program's tables stays unchanged", async () => {
  await using other = await freshDatabase({ empty: true });
  await using sql = new SQL({ url: other.url, max: 1 });
  await sql.unsafe("CREATE TABLE event (id integer)");
  expect(await start(other.url)).toBe(
    'database_refused: The database cannot be used. It contains objects of another program: relation "event" already exists. To do: give this service its own database.',
  );
  expect([...(await sql.unsafe("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))]).toEqual([{ tablename: "event" }]);
});

test("a database's default formats for text and bytes have no effect", async () => {
  await using other = await freshDatabase({ empty: true });
  const name = new URL(other.url).pathname.slice(1);
  const own = [
    "standard_conforming_strings = off",
    "bytea_output = 'escape'",
    "backslash_quote = off",
    "extra_float_digits = -15",
    "array_nulls = off",
  ];
  const odd = ["client_encoding = 'LATIN1'", "datestyle = 'SQL, DMY'", "intervalstyle = 'sql_standard'", "transform_null_equals = on"];
  await run(...[...own, ...odd].map((setting) => `ALTER DATABASE ${name} SET ${setting}`));
  const store = await openPostgres(other.place, { clock: systemClock });
  const app = "o'x\\\\y \u{1F600}";
  const bytes = new Uint8Array(512).map((_, at) => at % 256);
  await store.write("app", (tx) => tx.run("INSERT INTO app (id, name, created_at) VALUES (?1, ?2, 1)", "odd", app));
  const found = await store.read((tx) => tx.get<{ name: string }>("SELECT name FROM app WHERE id = ?1", "odd"));
  const back = await store.read((tx) => tx.get<{ bytes: Uint8Array }>("SELECT ?1::bytea AS bytes", bytes));
  await store.close();
  expect([found?.name, [...(back?.bytes ?? [])]]).toEqual([app, [...bytes]]);
});

test("for a user with disabled triggers, the service enables them or reports that it cannot", async () => {
  await using other = await freshDatabase({ empty: true });
  const name = new URL(other.url).pathname.slice(1);
  const url = urlWith((there) => {
    STRANGER(there);
    there.pathname = `/${name}`;
  });
  await run(`ALTER DATABASE ${name} OWNER TO ${stranger}`, `ALTER ROLE ${stranger} SET session_replication_role = 'replica'`);
  try {
    const refused = await start(url);
    expect(refused).toStartWith(
      "store_unavailable: The database cannot be reached: session_replication_role is replica for this user, so triggers would not run",
    );
    expect(refused).toContain("To do: as an administrator, run ALTER ROLE … RESET session_replication_role");
    const failed = (await look(url)).find(({ state }) => state === "fail");
    expect(failed).toMatchObject({ check: "connection", todo: expect.stringContaining("GRANT SET ON PARAMETER session_replication_role") });
    await run(`GRANT SET ON PARAMETER session_replication_role TO ${stranger}`);
    const store = await openPostgres(readDatabaseUrl(url) as DatabaseUrl, { clock: systemClock });
    const role = "SELECT current_setting('session_replication_role') AS role";
    const roles = [await store.read((tx) => tx.get(role)), await store.write("app", (tx) => tx.get(role))];
    await store.close();
    expect(roles).toEqual([{ role: "origin" }, { role: "origin" }]);
    expect((await look(url)).find(({ check }) => check === "triggers")).toMatchObject({ state: "warn" });
  } finally {
    await run(`REVOKE SET ON PARAMETER session_replication_role FROM ${stranger}`, `ALTER ROLE ${stranger} RESET ALL`);
    await run(`REASSIGN OWNED BY ${stranger} TO CURRENT_USER`);
  }
});

test("a database's name can hold any letter", async () => {
  const name = `${new URL(database.url).pathname.slice(1)}/a?#%&=+ ü"'\\`;
  const quoted = `"${name.replaceAll('"', '""')}"`;
  await run(`CREATE DATABASE ${quoted} TEMPLATE template0 ENCODING 'UTF8'`);
  try {
    const url = urlWith((there) => {
      there.pathname = `/${encodeURIComponent(name)}`;
    });
    const found = (await look(url)).find(({ check }) => check === "connection");
    expect(found).toMatchObject({ state: "ok", message: `${readDatabaseUrl(url)} answers.` });
    const store = await openPostgres(readDatabaseUrl(url) as DatabaseUrl, { clock: systemClock });
    const there = await store.read((tx) => tx.get<{ name: string }>("SELECT current_database() AS name"));
    await store.close();
    expect(there?.name).toBe(name);
  } finally {
    await run(`DROP DATABASE ${quoted} WITH (FORCE)`);
  }
});

test("a server's time zone and commit mode are shown and have no effect", async () => {
  const name = new URL(database.url).pathname.slice(1);
  await run(`ALTER DATABASE ${name} SET timezone = 'Pacific/Auckland'`, `ALTER DATABASE ${name} SET synchronous_commit = 'off'`);
  const found = Object.fromEntries((await look(database.url)).map((one) => [one.check, one]));
  expect(found["time zone"]).toMatchObject({ state: "ok", message: expect.stringContaining("Pacific/Auckland") });
  // The tests' own server does not survive a power cut, which is reported first.
  if (found.durability?.state === "ok") expect(found.durability.message).toContain("synchronous_commit is off");
});

test.each(["26000", "42P05"])("statements that a pooler mixed up (%s) are reported as the pooler's error, not as the service's", (errno) => {
  const told = classifyError(Object.assign(new Error('prepared statement "P0" already exists'), { name: "PostgresError", errno }));
  const { code, message } = describeError(told);
  expect(code).toBe("store_unavailable");
  expect(message).toContain("connect to the server directly instead of through a pooler");
});
