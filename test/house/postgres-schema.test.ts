/**
 * Checks that both databases have the same schema: tables, columns, types, nullability, defaults, keys, indexes with their conditions, foreign keys
 * and checks. Differences are listed here.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { PostgresConnection } from "../../src/store/postgres/connection.ts";
import { toPostgres } from "../../src/store/postgres/dialect.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { readPostgresShape } from "../../src/store/postgres/schema-shape.ts";
import { readExpected } from "../kit/expected-schema.ts";
import { openMigrated } from "../kit/migrated-database.ts";
import { type FreshDatabase, freshDatabase } from "../kit/postgres.ts";

/**
 * Lists SQLite's own tables: used dedupe keys, the blocks of a relay's events, the server's lease, and the capture switch. PostgreSQL uses a unique
 * index of events for the keys, and a setting for the switch.
 */
const ONLY_SQLITE = [
  "capture_switch",
  "dedupe",
  "dedupe_log",
  "dedupe_page",
  "dedupe_segment",
  "event_block",
  "ready_block",
  "runner_lease",
  "sqlite_sequence",
];
/** Lists PostgreSQL's own tables: rate limits, nodes, leases, each writer's newest commit, and the last writers. */
const ONLY_POSTGRES = ["limit_window", "node", "node_lease", "writer_commit", "writer_scope", "writer_turn"];
/** Lists indexes that replace SQLite's key log and event blocks, or a NOCASE column. */
const POSTGRES_INDEXES: Readonly<Record<string, readonly string[]>> = {
  event: [
    "event_dedupe: unique (dedupe_hash) where dedupe_hash is not null",
    "event_of_relay: (name_key, seq)",
    "event_ready: (relay_key, seq) where state = 'queued' and next_attempt_at is null",
  ],
  owner: ["owner_email: unique (lower(email))"],
};

/** Describes a table in the same words for both databases. */
interface Table {
  columns: string[];
  primaryKey: string;
  uniques: string[];
  indexes: string[];
  foreignKeys: string[];
  checks: string[];
}
type Schema = Record<string, Table>;

let fresh: FreshDatabase;
let sqlite: Schema;
let postgres: Schema;

beforeAll(async () => {
  // A copy of the tests' template has triggers that only test databases have.
  fresh = await freshDatabase({ empty: true });
  await (await openPostgres(fresh.place, { clock: systemClock })).close();
  sqlite = readSqlite();
  postgres = await readPostgres(fresh.url);
});

afterAll(() => fresh[Symbol.asyncDispose]());

test("both have the same tables, except those that only one needs", () => {
  const names = (schema: Schema, own: readonly string[]): string[] => Object.keys(schema).filter((name) => !own.includes(name));
  expect(names(postgres, ONLY_POSTGRES)).toEqual(names(sqlite, ONLY_SQLITE));
  for (const name of ONLY_SQLITE) expect(Object.keys(sqlite)).toContain(name);
  for (const name of ONLY_POSTGRES) expect(Object.keys(postgres)).toContain(name);
});

test("each table has the same columns, keys, indexes and checks in both", () => {
  const shared = Object.keys(sqlite).filter((name) => !ONLY_SQLITE.includes(name));
  const expected = Object.fromEntries(shared.map((name) => [name, withPostgresIndexes(name, sqlite[name])]));
  expect(Object.fromEntries(shared.map((name) => [name, postgres[name]]))).toEqual(expected);
});

test("a start and doctor compare with PostgreSQL's schema after the last migration", async () => {
  const connection = await PostgresConnection.open(fresh.place, "relay test");
  const found = await readPostgresShape(connection);
  await connection.close();
  expect(found).toEqual(readExpected("postgres", found));
});

test("every index that a statement can name is translated, whichever migration created it", () => {
  const followed: string[] = [];
  const named = Object.entries(postgres).flatMap(([table, { indexes }]) =>
    indexes.flatMap((index) => {
      const [, name = "", columns = ""] = /^(\w+): (?:unique )?\(([\w, ]+)\)/.exec(index) ?? [];
      const [first = "", second] = columns.split(", ");
      return second === undefined ? [] : [{ table, name, first, second }];
    }),
  );
  for (const { table, name, first, second } of named) {
    const { text } = toPostgres(`SELECT 1 FROM ${table} INDEXED BY ${name} WHERE ${first} = ?1 ORDER BY ${second}`);
    if (text.endsWith(` WHERE ${first} IN ($1, $2) ORDER BY ${first}, ${second}`)) followed.push(name);
  }
  expect(named.length).toBeGreaterThan(20);
  expect(followed).toEqual(named.map(({ name }) => name));
});

test("PostgreSQL compares every text byte by byte", async () => {
  await using sql = new SQL(fresh.url, { max: 1 });
  const rows = await sql`SELECT attrelid::regclass::text || '.' || attname AS column FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND atttypid = 'text'::regtype AND attcollation <> '"C"'::regcollation`;
  expect(rows.map(({ column }: { column: string }) => column)).toEqual([]);
});

function withPostgresIndexes(name: string, table: Table | undefined): Table | undefined {
  const own = POSTGRES_INDEXES[name];
  if (table === undefined || own === undefined) return table;
  const named = (index: string): string | undefined => index.split(":")[0];
  const others = table.indexes.filter((index) => !own.some((one) => named(one) === named(index)));
  return { ...table, uniques: table.uniques.filter((unique) => unique !== "email"), indexes: [...others, ...own].sort() };
}

interface SqliteColumn {
  name: string;
  type: string;
  notnull: number;
  dflt_value: string | null;
  pk: number;
  /** Is 2 for a generated column. */
  hidden: number;
}

function readSqlite(): Schema {
  using database = openMigrated();
  const rows = <Row>(sql: string): Row[] => database.query<Row, []>(sql).all();
  const tables = rows<{ name: string; sql: string }>("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  const schema: Schema = {};
  for (const { name, sql } of tables) {
    const columns = rows<SqliteColumn>(`SELECT * FROM pragma_table_xinfo('${name}')`);
    const keys = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    const indexes = rows<{ name: string; unique: number; origin: string }>(`SELECT * FROM pragma_index_list('${name}')`);
    const columnsOf = (index: string): string =>
      rows<{ name: string }>(`SELECT name FROM pragma_index_info('${index}') ORDER BY seqno`)
        .map((column) => column.name)
        .join(", ");
    const foreign = rows<{ from: string; table: string; to: string; on_delete: string }>(`SELECT * FROM pragma_foreign_key_list('${name}')`);
    schema[name] = {
      columns: columns.map(
        ({ name, type, notnull, dflt_value, pk, hidden }) =>
          // SQLite reports the type of a generated column as `INTEGER GENERATED ALWAYS`.
          `${name} ${TYPES[type.split(" ")[0] ?? ""]}${notnull === 1 || pk > 0 ? " not null" : ""}${hidden === 2 ? " generated" : ""}${dflt_value === null ? "" : ` = ${dflt_value}`}`,
      ),
      primaryKey: keys.map((key) => key.name).join(", "),
      uniques: indexes
        .filter(({ origin }) => origin === "u")
        .map((index) => columnsOf(index.name))
        .sort(),
      indexes: indexes
        .filter(({ origin }) => origin === "c")
        .map((index) => {
          const text = database.query<{ sql: string }, [string]>("SELECT sql FROM sqlite_schema WHERE name = ?1").get(index.name)?.sql ?? "";
          const where = / WHERE ([\s\S]*)$/.exec(text)?.[1];
          return showIndex(index.name, index.unique === 1, columnsOf(index.name), where);
        })
        .sort(),
      foreignKeys: foreign.map(({ from, table, to, on_delete }) => `${from} → ${table} (${to}) ${on_delete.toLowerCase()}`).sort(),
      checks: findChecks(sql).sort(),
    };
  }
  return schema;
}

const TYPES: Readonly<Record<string, string>> = { INTEGER: "number", TEXT: "text", BLOB: "bytes", REAL: "real" };
const POSTGRES_TYPES: Readonly<Record<string, string>> = { bigint: "number", text: "text", bytea: "bytes", "double precision": "real" };

/** Returns the conditions of `CHECK (…)`. */
function findChecks(sql: string): string[] {
  const checks: string[] = [];
  for (const { index } of sql.matchAll(/CHECK \(/g)) {
    const start = index + "CHECK (".length;
    let end = start;
    for (let depth = 1; depth > 0; end++) {
      if (sql[end] === "(") depth += 1;
      if (sql[end] === ")") depth -= 1;
    }
    checks.push(plain(sql.slice(start, end - 1)));
  }
  return checks;
}

function showIndex(name: string, isUnique: boolean, columns: string, where: string | undefined): string {
  return `${name}: ${isUnique ? "unique " : ""}(${columns})${where === undefined ? "" : ` where ${plain(where)}`}`;
}

/** Normalizes a condition: removes PostgreSQL's casts and parentheses, and restores IN. */
function plain(condition: string): string {
  return condition
    .replace(/ = ANY \(ARRAY\[([^\]]*)\]\)/g, " IN $1")
    .replace(/::(text|bigint|integer)/g, "")
    .replace(/[()]/g, "")
    .replace(/\s+/g, " ")
    .trim()
    .toLowerCase();
}

async function readPostgres(url: string): Promise<Schema> {
  await using sql = new SQL(url, { max: 1 });
  const columns = await sql<{ table: string; name: string; type: string; notNull: boolean; generated: string; fallback: string | null }[]>`
    SELECT attrelid::regclass::text AS table, attname AS name, format_type(atttypid, NULL) AS type, attnotnull AS "notNull",
      attgenerated AS generated, pg_get_expr(adbin, adrelid) AS fallback
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped ORDER BY relname COLLATE "C", attnum`;
  const constraints = await sql<{ table: string; type: string; definition: string }[]>`
    SELECT conrelid::regclass::text AS table, contype AS type, pg_get_constraintdef(oid) AS definition FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f', 'c')`;
  const indexes = await sql<{ table: string; name: string; unique: boolean; definition: string; condition: string | null }[]>`
    SELECT indrelid::regclass::text AS table, indexrelid::regclass::text AS name, indisunique AS unique, pg_get_indexdef(indexrelid) AS definition,
      pg_get_expr(indpred, indrelid) AS condition
    FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
    WHERE relnamespace = 'public'::regnamespace AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)`;
  const schema: Schema = {};
  for (const { table, name, type, notNull, generated, fallback } of columns) {
    schema[unquote(table)] ??= describeTable(table);
    const shown = generated !== "" ? " generated" : fallback === null ? "" : ` = ${fallback.replace(/::\w+/g, "").replace(/^'(-?\d+)'$/, "$1")}`;
    schema[unquote(table)]?.columns.push(`${name} ${POSTGRES_TYPES[type]}${notNull ? " not null" : ""}${shown}`);
  }
  return schema;

  function describeTable(table: string): Table {
    const own = constraints.filter((constraint) => constraint.table === table);
    const listed = (type: string): string[] =>
      own
        .filter((constraint) => constraint.type === type)
        .map(({ definition }) => /\(([^)]*)\)/.exec(definition)?.[1] ?? "")
        .sort();
    return {
      columns: [],
      primaryKey: listed("p").join(),
      uniques: listed("u"),
      indexes: indexes
        .filter((index) => index.table === table)
        .map(({ name, unique, definition, condition }) => {
          const columns = / USING btree \((.*?)\)(?: WHERE .*)?$/.exec(definition)?.[1] ?? definition;
          return showIndex(name, unique, columns, condition ?? undefined);
        })
        .sort(),
      foreignKeys: own
        .filter(({ type }) => type === "f")
        .map(({ definition }) => {
          const [, from, to, key, onDelete = "no action"] =
            /^FOREIGN KEY \((\w+)\) REFERENCES (\w+)\((\w+)\)(?: ON DELETE ([A-Z ]+))?$/.exec(definition) ?? [];
          return `${from} → ${to} (${key}) ${onDelete.toLowerCase()}`;
        })
        .sort(),
      checks: own
        .filter(({ type }) => type === "c")
        .map(({ definition }) => plain(definition.replace(/^CHECK /, "")))
        .sort(),
    };
  }
}

const unquote = (name: string): string => name.replaceAll('"', "");
