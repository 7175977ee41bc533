/**
 * Repeats `scan.test.ts` for PostgreSQL. It plans all statements of a service and its API in PostgreSQL's dialect, over tables that the server
 * considers large. No statement may scan a growing table or an index without a condition on its first column, unless it stops after the first rows.
 * No statement runs and no time counts, so a busy machine has the same result.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { toPostgres } from "../../src/store/postgres/dialect.ts";
import { type FreshDatabase, freshDatabase } from "../kit/postgres.ts";
import { queryAll, RecordedStatements, runAllWork, SMALL } from "../kit/service-lifecycle.ts";

const PLANNED = /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b/;
/** Matches tables and functions that only SQLite has. */
const ONLY_SQLITE = /\b(capture_switch|dedupe|dedupe_log|dedupe_page|dedupe_segment|runner_lease|sqlite_\w+|pragma_\w+)\b/;
/** Sets the row count that the server assumes for each table. */
const ROWS = 1_000_000;

/** Lists scans that end soon although their table grows: the plan's text, the statement's text, and the reason. */
const BOUNDED: readonly { walk: RegExp; sql: RegExp; why: string }[] = [
  {
    walk: /^Index (Only )?Scan problem_open(_target)?$/,
    sql: /WHERE cleared_at IS NULL AND code (IN|<>|=)/,
    why: "the index holds the problems that stand, a few for each relay",
  },
  {
    walk: /^Seq Scan problem$/,
    sql: /max\(raised_at\) AS raisedAt FROM problem/,
    why: "a start asks once, and by itself, for all that ended and that retention has not taken yet",
  },
  {
    walk: /^Index Scan alert_channel_pkey$/,
    sql: /FROM alert_channel WHERE retry_at IS NULL/,
    why: "the table holds the alert channels, at most 20 for each environment",
  },
  {
    walk: /^Index Scan email_intended$/,
    sql: /WHERE state = 'intended'/,
    why: "the index holds the mails that are on their way, one a place of the runner at most",
  },
  {
    walk: /^Index Scan bulk_replay_running$/,
    sql: /WHERE state = 'running'/,
    why: "the index holds the bulk replays under way, one an environment",
  },
  {
    walk: /^Index Scan rejected_delivery_missing$/,
    sql: /rejected_delivery\.arrived_at IS NULL/,
    why: "the index holds the event ids that are missing after an outage, at most 1,000 for each relay",
  },
  {
    walk: /^Index Scan relay_key_pkey$/,
    sql: /AS relayId FROM relay_key\s+WHERE \(SELECT seq FROM event INDEXED BY event_ready/,
    why: "the table has a row for each relay that a person ever created, and one index entry answers for each",
  },
];

let fresh: FreshDatabase;
let sql: SQL;

beforeAll(async () => {
  fresh = await freshDatabase();
  sql = new SQL(fresh.url, { max: 1 });
  await fillTables();
  for (const setting of ["plan_cache_mode = force_generic_plan", "jit = off"]) await sql.unsafe(`SET ${setting}`);
});

afterAll(async () => {
  await sql.close();
  await fresh[Symbol.asyncDispose]();
});

test("no statement of a service or its API scans a growing table", async () => {
  const noted = new RecordedStatements();
  await using running = await runAllWork(noted);
  await queryAll(running, noted);
  const statements = [...noted.asked].filter((one) => PLANNED.test(one) && !ONLY_SQLITE.test(one));
  const first = await firstColumns();
  const walks: string[] = [];
  const used = new Set<string>();
  for (const text of statements)
    for (const walk of listWalks(await planOf(text), first)) {
      const bounded = BOUNDED.find((one) => one.walk.test(walk) && one.sql.test(text));
      if (bounded === undefined) walks.push(`${walk}: ${text.replace(/\s+/g, " ")}`);
      else used.add(bounded.why);
    }
  expect(walks).toEqual([]);
  expect(BOUNDED.map(({ why }) => why).filter((why) => !used.has(why))).toEqual([]);
  for (const seen of [
    "WHERE state = 'running'",
    "FROM audit WHERE seq >",
    "AS packed",
    "FROM record WHERE recipient_id",
    "UPDATE event SET state = 'queued'",
  ])
    expect([seen, statements.some((one) => one.includes(seen))]).toEqual([seen, true]);
  expect(listWalks(await planOf("SELECT seq FROM event WHERE reason = ?1"), first)).toEqual(["Seq Scan event"]);
  expect(listWalks(await planOf("SELECT seq FROM event WHERE reason = ?1 ORDER BY seq LIMIT 1"), first)).toEqual(["Index Scan event_pkey"]);
});

interface Plan {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Index Cond"?: string;
  Filter?: string;
  Plans?: Plan[];
}

/** Plans the statement for unknown values, except the number of requested rows. */
async function planOf(text: string): Promise<Plan> {
  let place = 0;
  const asked = toPostgres(text)
    .text.replace(/\bLIMIT nullif\(\$\d+, -1\)/g, "LIMIT 100")
    .replace(/\$\d+/g, () => `$${++place}`);
  await sql.unsafe(`PREPARE asked AS ${asked}`);
  try {
    const given = place === 0 ? "" : `(${Array(place).fill("NULL").join(", ")})`;
    const [row] = await sql.unsafe(`EXPLAIN (FORMAT JSON) EXECUTE asked${given}`);
    const told = row["QUERY PLAN"];
    return (typeof told === "string" ? JSON.parse(told) : told)[0].Plan;
  } finally {
    await sql.unsafe("DEALLOCATE asked");
  }
}

/** Lists the scans of a plan. `first` maps each index to its table and its first column. */
function listWalks(plan: Plan, first: ReadonlyMap<string, { table: string; column: string }>, above = ""): string[] {
  const {
    "Node Type": type,
    "Relation Name": table,
    "Index Name": name = "",
    "Index Cond": condition = "",
    Filter: filter,
    Plans: plans = [],
  } = plan;
  const below = plans.flatMap((one) => listWalks(one, first, type));
  const stops = above === "Limit" && filter === undefined;
  if (type === "Seq Scan") return stops || SMALL.has(table ?? "") ? below : [`${type} ${table}`, ...below];
  const index = first.get(name);
  if (index === undefined || SMALL.has(index.table)) return below;
  return stops || new RegExp(`\\b${index.column}\\b`).test(condition) ? below : [`${type} ${name}`, ...below];
}

async function firstColumns(): Promise<Map<string, { table: string; column: string }>> {
  const rows = await sql<{ name: string; table: string; column: string }[]>`
    SELECT c.relname AS name, i.indrelid::regclass::text AS table, pg_get_indexdef(i.indexrelid, 1, true) AS column
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE c.relnamespace = 'public'::regnamespace`;
  return new Map(rows.map(({ name, ...of }) => [name, of]));
}

/** Lists states that occur in partial indexes, because each such index needs a row. */
const STATES: Readonly<Record<string, readonly string[]>> = {
  event: ["queued", "running", "dead"],
  bulk_replay: ["running"],
  email: ["intended", "unknown"],
};
const VALUES: Readonly<Record<string, (number: number) => string>> = {
  text: (number) => `'x${number}'`,
  bigint: (number) => `${number}`,
  bytea: (number) => `'x${number}'`,
};

interface Column {
  table: string;
  column: string;
  type: string;
  isNeeded: boolean;
  /** Holds the first value that a check constraint allows. */
  word: string | null;
}

/** Inserts a few rows into each table, with and without optional values, and sets the server's row estimates to large numbers. */
async function fillTables(): Promise<void> {
  const columns = await sql<
    Column[]
  >`SELECT c.relname AS table, a.attname AS column, format_type(a.atttypid, NULL) AS type, a.attnotnull AS "isNeeded",
      (SELECT substring(pg_get_constraintdef(o.oid) FROM '(?:''|= )([a-z0-9]+)') FROM pg_constraint AS o
       WHERE o.contype = 'c' AND o.conrelid = c.oid AND o.conkey = ARRAY[a.attnum]) AS word
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''`;
  await sql.unsafe("SET session_replication_role = replica");
  for (const [table, of] of Map.groupBy(columns, (one) => one.table)) {
    let number = 0;
    for (const state of STATES[table] ?? [null])
      for (const isWhole of [true, false]) {
        number += 1;
        const values = of.map(({ column, type, word, isNeeded }) => {
          if (column === "state" && state !== null) return `'${state}'`;
          if (!isWhole && !isNeeded) return "NULL";
          return word === null ? VALUES[type]?.(number) : `'${word}'`;
        });
        await sql.unsafe(
          `INSERT INTO "${table}" (${of.map(({ column }) => `"${column}"`).join(", ")}) VALUES (${values.join(", ")}) ON CONFLICT DO NOTHING`,
        );
      }
  }
  await sql.unsafe("SET session_replication_role = origin");
  const ours = "WHERE relnamespace = 'public'::regnamespace AND relkind";
  await sql.unsafe(`UPDATE pg_class SET reltuples = ${ROWS}, relpages = 1 ${ours} = 'r'`);
  await sql.unsafe(`UPDATE pg_class SET reltuples = ${ROWS}, relpages = 2 ${ours} = 'i'`);
}
