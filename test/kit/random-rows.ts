/** Fills every table of a SQLite database with rows that no version of the service wrote. A column gets any value that its table accepts. */
import { Database } from "bun:sqlite";
import { SqliteEnd } from "../../src/store/sqlite/transfer.ts";

const TEXTS = ["", " ", "a", "Ünïcödé ẞ", "😀 \u{10ffff}", "'\"\\\\\n\r\t\u0001\u2028\ufffd", '{"a":"\\u0000"}', "%s $1 ?1 null", "é", "e\u0301"];
const INTEGERS = [0n, 1n, -1n, 255n, 2n ** 31n, 2n ** 53n - 1n, 2n ** 53n + 1n, 2n ** 62n, -(2n ** 63n)];

/** Tables that get no rows: one has exactly one row already, and every command must be able to read the others. */
const LEFT = new Set(["event_last", "app", "environment"]);

export function addRandomRows(file: string, { rows, random }: { rows: number; random: () => number }): void {
  const tables = withTables(file);
  using database = new Database(file, { readwrite: true, create: false, safeIntegers: true });
  database.run("PRAGMA foreign_keys = ON");
  const triggers = database.query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all();
  for (const { name } of triggers) database.run(`DROP TRIGGER "${name}"`);
  const pick = <One>(from: readonly One[]): One | undefined => from[Math.floor(random() * from.length)];
  for (const { name, columns } of tables.filter((table) => !LEFT.has(table.name))) {
    const { sql } = database.query("SELECT sql FROM sqlite_master WHERE name = ?1").get(name) as { sql: string };
    const info = database.query<{ name: string; notnull: bigint }, []>(`PRAGMA table_xinfo("${name}")`).all();
    const parents = database.query<{ table: string; from: string; to: string }, []>(`PRAGMA foreign_key_list("${name}")`).all();
    const insert = `INSERT OR IGNORE INTO "${name}" (${columns.map((column) => `"${column.name}"`).join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
    for (let row = 0; row < rows; row++) {
      const values = columns.map((column) => {
        const parent = parents.find(({ from }) => from === column.name);
        const isNull = info.find((one) => one.name === column.name)?.notnull === 0n && random() < 0.3;
        if (isNull && !/PRIMARY KEY/.test(sql.match(new RegExp(`\\b${column.name}\\b[^,]*`))?.[0] ?? "")) return null;
        if (parent !== undefined) {
          const known = database.query(`SELECT "${parent.to}" AS value FROM "${parent.table}"`).all() as { value: string }[];
          return pick(known)?.value ?? null;
        }
        const words = new RegExp(`\\b${column.name} IN \\(([^)]*)\\)`).exec(sql)?.[1];
        if (words !== undefined) return pick(words.split(",").map((word) => word.trim().slice(1, -1))) ?? null;
        if (column.name === "one") return 1;
        if (column.kind === "integer") return random() < 0.5 ? BigInt(Math.floor(random() * 1e6)) : (pick(INTEGERS) ?? 0n);
        if (column.kind === "bytes") return Uint8Array.from({ length: Math.floor(random() * 40) }, () => random() * 256);
        return `${pick(TEXTS)}${random() < 0.5 ? Math.floor(random() * 1e9) : ""}`;
      });
      database.query(insert).run(...(values as string[]));
    }
  }
  for (const { sql } of triggers) database.run(sql);
}

function withTables(file: string) {
  const end = new SqliteEnd(file, { making: false });
  try {
    return end.listTables();
  } finally {
    end.database.close();
  }
}
