/**
 * Measures the limit of PostgreSQL without the service. It writes rows like an event's over one connection, in transactions of 64. It pipelines
 * the statements of a transaction and waits for its result before the next one. Prints one JSON line: { perSecond }.
 *
 * bun scripts/bench/bare-postgres.ts <database URL> <seconds>
 */
import { SQL } from "bun";

const [url = "", seconds = "5"] = process.argv.slice(2);
const GROUP = 64;
const ROW_BYTES = 450;

const sql = new SQL(url, { max: 1 });
const connection = await sql.reserve();
await connection.unsafe(
  "CREATE TABLE IF NOT EXISTS bare_event (seq bigint PRIMARY KEY, key bytea NOT NULL UNIQUE, state text NOT NULL, payload text NOT NULL)",
);
await connection.unsafe("TRUNCATE bare_event");
const payload = "x".repeat(ROW_BYTES - 60);
let seq = 0;
const begun = performance.now();
const endMs = begun + 1_000 * Number(seconds);
while (performance.now() < endMs) {
  const sent = [connection.unsafe("BEGIN").execute()];
  for (let at = 0; at < GROUP; at++) {
    seq += 1;
    const key = crypto.getRandomValues(new Uint8Array(16));
    sent.push(
      connection
        .unsafe("INSERT INTO bare_event VALUES ($1, $2, $3, $4)", [seq, key, "queued", payload])
        .execute(),
    );
  }
  sent.push(connection.unsafe("COMMIT").execute());
  await Promise.all(sent);
}
console.log(JSON.stringify({ perSecond: seq / ((performance.now() - begun) / 1_000) }));
await connection.unsafe("DROP TABLE bare_event");
connection.release();
await sql.close();
