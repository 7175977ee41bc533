/** A database of 0.10.0 whose records hold texts that only begin like a file's id: both forget those and know the files, and take longer ones. */
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/ground/clock.ts";
import { MIGRATIONS } from "../../src/store/migrate.ts";
import type { Store } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { olderDatabase } from "../kit/older-postgres.ts";

/** The schema of 0.10.0. */
const BEFORE = 41;
const folder = mkdtempSync(join(tmpdir(), "relay-record-file-"));
afterAll(() => rmSync(folder, { recursive: true }));

const FILE_ID = `fil_${"0123456789abcdef".repeat(2)}`;
const LONG = `fil_${Array.from({ length: 4_000 }, () => String.fromCodePoint(0x2_0000 + Math.floor(Math.random() * 0xa000))).join("")}`;
const TABLE = "CREATE TABLE schema_migration (number BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)";
const write = (id: string, data: object): string =>
  `INSERT INTO record (id, environment_id, collection, data, written_by, created_at, updated_at)
   VALUES ('${id}', 1, 'notes', '${JSON.stringify(data)}', 'sql', 1, 1)`;

const UPGRADES: readonly { on: string; open: (records: readonly string[]) => Promise<AsyncDisposable & { store: Store }> }[] = [
  {
    on: "a database file",
    async open(records) {
      const file = join(folder, "relay.db");
      const old = new Database(file, { create: true, readwrite: true });
      old.run("PRAGMA journal_mode = WAL");
      old.run(TABLE);
      for (const { number, name, sql } of MIGRATIONS.filter((one) => one.number <= BEFORE)) {
        old.run(sql);
        old.run("INSERT INTO schema_migration VALUES (?1, ?2, 0)", [number, name]);
      }
      for (const record of records) old.run(record);
      old.close();
      const store = await openSqlite(file, { clock: systemClock });
      return { store, [Symbol.asyncDispose]: () => store.close() };
    },
  },
  {
    on: "PostgreSQL",
    async open(records) {
      const older = await olderDatabase(BEFORE, records);
      const store = await openPostgres(older.place, { clock: systemClock });
      return {
        store,
        async [Symbol.asyncDispose]() {
          await store.close();
          await older[Symbol.asyncDispose]();
        },
      };
    },
  },
];

test.each([...UPGRADES])("$on", async ({ open }) => {
  await using opened = await open([write("rec_1", { file: FILE_ID, text: "fil_ing cabinet" }), write("rec_2", { text: `${FILE_ID} and more` })]);
  const { store } = opened;
  const known = () => store.read((tx) => tx.all("SELECT file_id AS file, record.id FROM record_file JOIN record ON seq = record_seq ORDER BY id"));
  expect(await known()).toEqual([{ file: FILE_ID, id: "rec_1" }]);
  await store.write("app", async (tx) => {
    await tx.run(write("rec_3", { text: LONG, file: FILE_ID }));
    await tx.run("UPDATE record SET data = ?1 WHERE id = 'rec_1'", JSON.stringify({ text: LONG }));
  });
  expect(await known()).toEqual([{ file: FILE_ID, id: "rec_3" }]);
});
