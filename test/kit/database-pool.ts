/**
 * Pools databases on the tests' PostgreSQL server. Creating a database copies 600 files and takes about thirty times as long as emptying one. Taking
 * a database ends other sessions, deletes every row, restores the rows of a new database and resets the sequences. A database whose schema or
 * settings a test changed is dropped. A session-level lock marks the holder, so processes can share the pool and a killed process releases its
 * databases.
 */
import { SQL } from "bun";
import { type FreshDatabase, freshDatabase, urlOf, usePostgres } from "./postgres.ts";

const POOLED = "relay_pool_";
/** The first key of the advisory locks. The second key is the database's number. */
const POOL_LOCK = 0x72706f;

/** The state of a new database. */
interface Pattern {
  schema: string;
  tables: string[];
  /** Rows of each table that has any, as JSON. */
  rows: [table: string, rows: string][];
  /** Statements that set each sequence as in a new database. */
  sequences: string;
}

/** Hashes everything except rows that a test could change. A copied database has the object ids of its template; user objects start at 16384. */
const SCHEMA_QUERY = `
  SELECT md5(string_agg(part, '|' ORDER BY part)) AS schema FROM (
    SELECT concat_ws(' ', 'column', attrelid, attnum, attname, atttypid, attnotnull, attisdropped) AS part FROM pg_attribute WHERE attrelid >= 16384
    UNION ALL SELECT concat_ws(' ', 'sequence', seqrelid, seqincrement, seqcache) FROM pg_sequence
    UNION ALL SELECT concat_ws(' ', 'relation', oid, relname, relkind, relacl) FROM pg_class WHERE oid >= 16384 AND relkind <> 't'
    UNION ALL SELECT concat_ws(' ', 'trigger', oid, tgname, tgenabled) FROM pg_trigger
    UNION ALL SELECT concat_ws(' ', 'constraint', oid, conname) FROM pg_constraint WHERE oid >= 16384
    UNION ALL SELECT concat_ws(' ', 'function', proname, md5(prosrc)) FROM pg_proc WHERE oid >= 16384
    UNION ALL SELECT concat_ws(' ', 'schema', nspname, nspacl) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'
    UNION ALL SELECT concat_ws(' ', 'setting', setconfig) FROM pg_db_role_setting
      WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
  ) AS parts`;

let pattern: Promise<Pattern> | null = null;
/** Sessions to the databases that this process cleaned. A reused session already knows the tables. */
const sessions = new Map<string, SQL>();

/** Takes a database that has the schema and no rows of an earlier test. Disposal returns it to the pool. */
export async function takeDatabase(): Promise<FreshDatabase> {
  const { server, sql } = await usePostgres();
  pattern ??= readPattern();
  const expected = await pattern;
  for (;;) {
    const number = await lockFree(sql);
    const name = `${POOLED}${number}`;
    const there = await sql`SELECT 1 FROM pg_database WHERE datname = ${name}`;
    if (there.length === 0) await makeAs(sql, name);
    else if (!(await clean(server, name, expected))) {
      await sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`);
      await makeAs(sql, name);
    }
    const { place, url } = urlOf(server, name);
    return {
      url,
      place,
      [Symbol.asyncDispose]: async () => void (await sql`SELECT pg_advisory_unlock(${POOL_LOCK}, ${number})`),
    };
  }
}

/** Locks the lowest number that no other test holds. */
async function lockFree(sql: SQL): Promise<number> {
  for (let number = 0; ; number++) {
    // A session can take the same lock twice, so a lock that this session holds does not count as free.
    const [row] = await sql`SELECT NOT EXISTS (
        SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = ${POOL_LOCK} AND objid = ${number} AND pid = pg_backend_pid()
      ) AND pg_try_advisory_lock(${POOL_LOCK}, ${number}) AS locked`;
    if (row.locked === true) return number;
  }
}

async function makeAs(sql: SQL, name: string): Promise<void> {
  const fresh = await freshDatabase();
  await sql.unsafe(`ALTER DATABASE ${fresh.place.database} RENAME TO ${name}`);
}

async function readPattern(): Promise<Pattern> {
  await using fresh = await freshDatabase();
  const sql = new SQL(fresh.url, { max: 1 });
  try {
    const [{ schema }] = await sql.unsafe(SCHEMA_QUERY);
    const tables = await listTables(sql);
    const rows: Pattern["rows"] = [];
    for (const table of tables) {
      const [{ text }] = await sql.unsafe(`SELECT json_agg(t)::text AS text FROM ${table} t`);
      if (text !== null) rows.push([table, text]);
    }
    const found =
      await sql`SELECT quote_ident(sequencename) AS name, start_value AS start, last_value AS last FROM pg_sequences WHERE schemaname = 'public'`;
    const sequences = found.map(({ name, start, last }: { name: string; start: string; last: string | null }) =>
      last === null ? `SELECT setval('${name}', ${start}, false)` : `SELECT setval('${name}', ${last}, true)`,
    );
    return { schema, tables, rows, sequences: sequences.join("; ") };
  } finally {
    await sql.close();
  }
}

async function listTables(sql: SQL): Promise<string[]> {
  const rows = await sql`SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`;
  return rows.map(({ name }: { name: string }) => name);
}

/** Empties the database. Returns false if its schema differs from a new one's. */
async function clean(server: string, name: string, expected: Pattern): Promise<boolean> {
  const sql = sessions.get(name) ?? new SQL(urlOf(server, name).url, { max: 1, idleTimeout: 0 });
  sessions.set(name, sql);
  try {
    await sql.unsafe(`SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`);
    const [{ schema }] = await sql.unsafe(SCHEMA_QUERY);
    if (schema !== expected.schema) throw new Error("A test changed the schema.");
    // This role disables triggers and foreign keys.
    const steps = ["SET session_replication_role = replica", ...expected.tables.map((table) => `DELETE FROM ${table}`), expected.sequences];
    await sql.unsafe(steps.filter((step) => step !== "").join("; "));
    for (const [table, text] of expected.rows) {
      await sql.unsafe(`INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${table}, $1::text::json)`, [text]);
    }
    return true;
  } catch {
    sessions.delete(name);
    await sql.close().catch(() => undefined);
    return false;
  }
}
