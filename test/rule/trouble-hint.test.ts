/** Tests that the hints of a long list read the open alerts and the newest mails once, and not once for each item. */
import { expect, test } from "bun:test";
import { listHints } from "../../src/rules/relay/trouble-hint.ts";
import type { Reader, SqlArguments } from "../../src/store/port.ts";
import { openFreshStore } from "../kit/fresh-store.ts";

const fresh = await openFreshStore();

test("hints of 20 items read at most 2,000 open alerts and the newest mails once", async () => {
  const { id: environmentId } = await fresh.environment("development");
  const sql = `INSERT INTO alert (id, environment_id, code, target, message, count, at, last_at)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
    SELECT 'alt_' || (10000 + i), ?1, 'relay_failed', 'relay:r' || (i % 20), 'Dead.', 1, i, i FROM n`;
  await fresh.store.write("app", (tx) => tx.run(sql, environmentId));
  const rowsOf: Record<string, number[]> = { alert: [], email: [] };
  const count = (text: string, rows: number) => {
    for (const [table, counts] of Object.entries(rowsOf)) if (text.includes(`FROM ${table} `)) counts.push(rows);
  };
  const troubles = Array.from({ length: 20 }, (_, at) => ({ code: "relay_failed", target: `relay:r${at}`, sinceMs: 1 }));
  await fresh.store.read((tx) => {
    const reader: Reader = {
      async get<Row>(text: string, ...values: SqlArguments) {
        const row = await tx.get<Row>(text, ...values);
        count(text, 1);
        return row;
      },
      async all<Row>(text: string, ...values: SqlArguments) {
        const rows = await tx.all<Row>(text, ...values);
        count(text, rows.length);
        return rows;
      },
    };
    return listHints(reader, environmentId, troubles);
  });
  expect(rowsOf).toEqual({ alert: [2_000], email: [1] });
});
