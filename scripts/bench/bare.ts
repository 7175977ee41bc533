/**
 * Bare servers whose speed is the limit that the product is compared with. Each does only what its letter says. Prints its port.
 *
 * - A: HTTP, HMAC-SHA256 and JSON.parse, without a store.
 * - B: A and one SQLite commit for each request.
 * - C: A and group commit, with the response after the commit.
 * - N: C without any index.
 * - D: C and a runner that claims events, writes one record and saves the result, in grouped transactions.
 * - E: C behind Elysia.
 *
 * All use synchronous=FULL and WAL.
 *
 *     bun scripts/bench/bare.ts <A|B|C|N|D|E> <database file> <secret> [port]
 */
import { Database } from "bun:sqlite";
import { createHmac, timingSafeEqual } from "node:crypto";
import { Elysia } from "elysia";

const [variant = "A", file = "bare.db", secret = "bench", port = "0"] = process.argv.slice(2);

const database = new Database(file, { create: true });
for (const pragma of ["journal_mode = WAL", "synchronous = FULL"]) database.exec(`PRAGMA ${pragma}`);
const indexed = variant !== "N";
database.exec(`CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY, id TEXT NOT NULL${indexed ? " UNIQUE" : ""}, payload TEXT NOT NULL, state TEXT NOT NULL, result TEXT);
  ${indexed ? "CREATE INDEX IF NOT EXISTS event_queued ON event (seq) WHERE state = 'queued';" : ""}
  CREATE TABLE IF NOT EXISTS record (id INTEGER PRIMARY KEY, event_seq INTEGER NOT NULL UNIQUE, data TEXT NOT NULL)`);
const insert = database.prepare(
  `INSERT INTO event (id, payload, state) VALUES (?1, ?2, 'queued')${indexed ? " ON CONFLICT (id) DO NOTHING" : ""}`,
);
const claim = database.prepare(
  "UPDATE event SET state = 'running' WHERE seq IN (SELECT seq FROM event WHERE state = 'queued' ORDER BY seq LIMIT 64) RETURNING seq, payload",
);
const record = database.prepare("INSERT INTO record (event_seq, data) VALUES (?1, ?2)");
const finish = database.prepare("UPDATE event SET state = 'done', result = ?2 WHERE seq = ?1");

interface Waiting {
  id: string;
  payload: string;
  resolve: () => void;
}
let waiting: Waiting[] = [];
let scheduled = false;
let running: { seq: number; payload: string }[] = [];

function commitGroup(): void {
  scheduled = false;
  const group = waiting;
  waiting = [];
  database.exec("BEGIN IMMEDIATE");
  for (const one of group) insert.run(one.id, one.payload);
  if (variant === "D") {
    for (const event of running) {
      record.run(event.seq, event.payload);
      finish.run(event.seq, '[{"type":"write_record","outcome":"done"}]');
    }
    running = claim.all() as { seq: number; payload: string }[];
  }
  database.exec("COMMIT");
  for (const one of group) one.resolve();
  if (waiting.length > 0 || running.length > 0) schedule();
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  setImmediate(commitGroup);
}

async function receive(request: Request): Promise<Response> {
  const body = new Uint8Array(await request.arrayBuffer());
  const given = Buffer.from(request.headers.get("x-signature") ?? "", "hex");
  const wanted = createHmac("sha256", secret).update(body).digest();
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted))
    return new Response(null, { status: 401 });
  const text = new TextDecoder().decode(body);
  const { id } = JSON.parse(text) as { id: string };
  if (variant === "B") insert.run(id, text);
  else if (variant !== "A") {
    await new Promise<void>((resolve) => {
      waiting.push({ id, payload: text, resolve });
      schedule();
    });
  }
  return Response.json({ received: true, eventId: id });
}

const server =
  variant === "E"
    ? new Elysia()
        .post("/hooks/:app/:name", ({ request }) => receive(request), { parse: "none" })
        .listen({ port: Number(port), hostname: "127.0.0.1" }).server
    : Bun.serve({ port: Number(port), hostname: "127.0.0.1", fetch: receive });
console.log(server?.port);
