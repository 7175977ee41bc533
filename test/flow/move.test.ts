/** Tests moving a stopped service to PostgreSQL and back, atomically. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { type DatabaseUrl, readDatabaseUrl } from "../../src/base/database-url.ts";
import { type Store, StoreUnavailable } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { lockDataDirectory } from "../../src/store/sqlite/directory-lock.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { NewSqliteEnd, SqliteEnd } from "../../src/store/sqlite/transfer.ts";
import { moves } from "../../src/store/transfer/tables.ts";
import { moveRows } from "../../src/store/transfer/transfer.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { runCommand } from "../kit/cli-io.ts";
import { dumpTables, isWhole, makeFolder } from "../kit/data-directory.ts";
import { startNode } from "../kit/node.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { addRandomRows } from "../kit/random-rows.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { APP, startBareService, startRunningService } from "../kit/running-service.ts";
import { openShop, signStripe } from "../kit/shop.ts";

const folder = makeFolder();
const filled = join(folder, "filled");
let made = 0;

beforeAll(async () => {
  await using running = await startRunningService();
  await openShop(running);
  for (let number = 0; number < 3; number++) {
    const session = { id: `cs_${number}`, payment_intent: `pi_${number}`, customer_details: { email: `buyer${number}@example.com` } };
    await running.hook("checkout", await signStripe(running, `evt_${number}`, "checkout.session.completed", session));
  }
  // Exceeds the size limit of a PostgreSQL index entry, in the format of an indexed value.
  const text = `fil_${Array.from({ length: 4_000 }, () => String.fromCodePoint(0x2_0000 + Math.floor(Math.random() * 0xa000))).join("")}`;
  await running.api("POST", "/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } });
  expect((await running.api("POST", "/collections/notes/records", { data: { text } })).status).toBe(201);
  await running.drain();
  await running.service[Symbol.asyncDispose]();
  cpSync(running.dataDir, filled, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Copies a stopped server's data directory. */
const copyFilled = (): string => copyOf(filled);

const move = (line: readonly string[], env: Record<string, string> = {}) => runCommand(["move", ...line], { cwd: folder, env });
const rowsOf = (dataDir: string) => Object.fromEntries(Object.entries(dumpTables(join(dataDir, "relay.db"))).filter(([name]) => moves(name)));

function copyOf(dataDir: string): string {
  const copy = join(folder, `data-${++made}`);
  cpSync(dataDir, copy, { recursive: true });
  return copy;
}

const asyncDisposable = (held: Disposable | AsyncDisposable | undefined): AsyncDisposable => ({
  [Symbol.asyncDispose]: async () => {
    if (held !== undefined && Symbol.asyncDispose in held) await held[Symbol.asyncDispose]();
    else held?.[Symbol.dispose]();
  },
});

/** Creates the schema. */
async function makeSchema(url: string): Promise<void> {
  await (await openPostgres(readDatabaseUrl(url) as DatabaseUrl, { clock: systemClock })).close();
}

async function ask(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const database = new SQL({ url, max: 1 });
  try {
    return await database.unsafe(sql);
  } finally {
    await database.close();
  }
}

test.each([
  ["unchanged", 0],
  ["with random rows in every table", 25],
])("a filled service moves to PostgreSQL and back, %s", async (_how, rows) => {
  const dataDir = copyFilled();
  if (rows > 0) addRandomRows(join(dataDir, "relay.db"), { rows, random: randomOf(20_261_122) });
  const before = rowsOf(dataDir);
  await using database = await freshDatabase();
  const there = await move(["--data-dir", dataDir, "--json"], { RELAY_MOVE_TO: database.url });
  expect(there).toMatchObject({ code: 0 });
  expect(Object.keys(JSON.parse(there.said).rows).sort()).toEqual(Object.keys(before).sort());
  const back = join(folder, `back-${++made}`);
  const returned = await move(["--to", back], { RELAY_DATABASE: database.url });
  expect(returned).toMatchObject({ code: 0, said: expect.stringContaining("read them again and found them equal") });
  expect(rowsOf(back)).toEqual(before);
  expect(isWhole(join(back, "relay.db"))).toBe(true);
  // SQLite may or may not list a table that never had a row.
  const numbers = (of: string) => dumpTables(join(of, "relay.db"))["sqlite_sequence"]?.filter((row) => !/\bseq: 0,/.test(row));
  expect(numbers(back)).toEqual(numbers(dataDir));
  // Lists of events read these blocks.
  using moved = new Database(join(back, "relay.db"));
  const [kept, due] = ["SELECT of_name, block FROM event_block ORDER BY 1, 2", "SELECT DISTINCT name_key, seq >> 11 FROM event ORDER BY 1, 2"];
  expect(moved.query(kept).values()).toEqual(moved.query(due).values());
  expect(moved.query(kept).values().length).toBeGreaterThan(0);
});

function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe("a move is rejected without a change", () => {
  const REFUSED: readonly [
    why: string,
    arrange: (dataDir: string, url: string) => Promise<Disposable | AsyncDisposable | undefined>,
    code: string,
    sentence: RegExp,
  ][] = [
    [
      "while a server runs",
      async (dataDir) => {
        const lock = lockDataDirectory(dataDir, "relay serve", 0);
        return { [Symbol.dispose]: () => lock.release() };
      },
      "directory_taken",
      /is in use by relay serve, process \d+/,
    ],
    [
      "to a database with rows",
      async (_, url) => {
        const other = copyFilled();
        addRandomRows(join(other, "relay.db"), { rows: 2, random: randomOf(7) });
        expect(await move(["--data-dir", other], { RELAY_MOVE_TO: url })).toMatchObject({ code: 0 });
        return undefined;
      },
      "database_refused",
      /is in use already, with other rows: name an empty database/,
    ],
    [
      "to a database with changed tables",
      async (_, url) => {
        await makeSchema(url);
        await ask(url, "ALTER TABLE person ADD COLUMN shoe_size bigint");
        return undefined;
      },
      "database_refused",
      /differ from those of this version \(person\.shoe_size\)/,
    ],
    [
      "from a database with a value of a wrong type",
      async (dataDir) => {
        using database = new Database(join(dataDir, "relay.db"));
        database.run("UPDATE person SET created_at = 1.5");
        return undefined;
      },
      "database_refused",
      /\d+ rows of the table person .* have a value of the wrong type/,
    ],
  ];

  test.each(REFUSED)("%s", async (_why, arrange, code, sentence) => {
    const dataDir = copyFilled();
    await using database = await freshDatabase();
    await using _held = asyncDisposable(await arrange(dataDir, database.url));
    const before = rowsOf(dataDir);
    const refused = await move(["--data-dir", dataDir, "--json"], { RELAY_MOVE_TO: database.url });
    expect(refused).toMatchObject({ code: 1, told: expect.stringMatching(sentence) });
    expect(JSON.parse(refused.said).code).toBe(code);
    expect(rowsOf(dataDir)).toEqual(before);
    expect(dumpTables(join(dataDir, "relay.db"))["schema_migration"]?.join()).not.toContain("1000000000");
  });

  test.each([
    ["from SQLite to SQLite", ["--to", "other"], {}, /use relay backup and relay restore/],
    ["from PostgreSQL to PostgreSQL", ["--to", "postgres://a@b/c"], { RELAY_DATABASE: "postgres://a@b/d" }, /pg_dump and pg_restore/],
    ["without a target", [], {}, /--to is missing/],
    ["to an invalid URL", ["--to", "postgres://a:hunter2@b"], {}, /^--to names no database/],
  ])("%s", async (_where, line, env, sentence) => {
    const { code, told } = await move(["--data-dir", copyFilled(), ...line], env);
    expect({ code, told }).toEqual({ code: 2, told: expect.stringMatching(sentence) });
    expect(told).not.toContain("hunter2");
  });
});

describe("from PostgreSQL", () => {
  /** Opens a database with a moved service's rows. */
  async function openMoved() {
    const database = await freshDatabase();
    expect(await move(["--data-dir", copyFilled()], { RELAY_MOVE_TO: database.url })).toMatchObject({ code: 0 });
    return database;
  }
  const placeOf = (url: string) => readDatabaseUrl(url) as DatabaseUrl;
  const add = (store: Store, id: string) => store.write("app", (tx) => tx.run("INSERT INTO app (id, name, created_at) VALUES (?1, ?1, 0)", id));
  const appsIn = async (url: string) => (await ask(url, "SELECT id FROM app ORDER BY id")).map(({ id }) => id);

  test("is rejected while a node is live, and waits for a dead node's record to expire", async () => {
    await using database = await freshDatabase();
    const env = { RELAY_DATABASE: database.url };
    {
      await using _node = await startNode(database.url);
      const refused = await move(["--to", join(folder, `back-${++made}`)], env);
      expect(refused).toMatchObject({ code: 1, told: expect.stringMatching(/A server runs on postgres:.*stop every one, then move/) });
    }
    const gone =
      "INSERT INTO node (id, host, pid, version, schema_version, started_at, seen_at) VALUES ('nod_gone', 'there', 1, '', 0, 0, now_ms() - 8000)";
    await ask(database.url, gone);
    expect(await move(["--to", join(folder, `back-${++made}`)], env)).toMatchObject({ code: 0 });
  });

  test("a node with an open connection writes nothing after the mark, until an undo", async () => {
    await using database = await openMoved();
    const env = { RELAY_DATABASE: database.url };
    const open = await Promise.all([1, 2].map(() => openPostgres(placeOf(database.url), { clock: systemClock })));
    try {
      for (const [at, store] of open.entries()) await add(store, `before${at}`);
      const before = await appsIn(database.url);
      const back = join(folder, `back-${++made}`);
      expect(await move(["--to", back], env)).toMatchObject({ code: 0 });
      for (const store of open) {
        const refused = add(store, "after");
        await expect(refused).rejects.toThrow(StoreUnavailable);
        await expect(refused).rejects.toThrow(`were moved to ${join(back, "relay.db")}`);
        expect(store.trouble).toContain("were moved to");
      }
      expect(await appsIn(database.url)).toEqual(before);
      expect(await move(["--undo"], env)).toMatchObject({ code: 0 });
      for (const [at, store] of open.entries()) await add(store, `undone${at}`);
      expect(await appsIn(database.url)).toEqual([...before, "undone0", "undone1"]);
    } finally {
      for (const store of open) await store.close();
    }
  });

  test("a node that starts during the move is rejected at the mark", async () => {
    await using database = await openMoved();
    await ask(
      database.url,
      "INSERT INTO audit (environment_id, at, actor, action, target) SELECT 1, 0, '', '', i FROM generate_series(1, 30000) AS i",
    );
    const hold = new SQL({ url: database.url, max: 1 });
    // No move reads past this table before the node has started.
    await hold.unsafe("BEGIN; LOCK TABLE app");
    const moved = move(["--to", join(folder, `back-${++made}`)], { RELAY_DATABASE: database.url });
    const locked =
      "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while ((await ask(database.url, locked)).length === 0) await Bun.sleep(20);
    const store = await openPostgres(placeOf(database.url), { clock: systemClock });
    const added = add(store, "late").then(
      () => "written",
      (error: Error) => error.message,
    );
    await hold.unsafe("ROLLBACK");
    await hold.close();
    expect(await moved).toMatchObject({ code: 0 });
    expect(await added).toContain("were moved to");
    await expect(openPostgres(placeOf(database.url), { clock: systemClock })).rejects.toThrow("were moved to");
    await store.close();
  });
});

describe("a moved service", () => {
  test("is rejected at its old place until an undo, and a second move detects whether the copy is complete", async () => {
    const dataDir = copyFilled();
    await using database = await freshDatabase();
    const env = { RELAY_MOVE_TO: database.url };
    expect(await move(["--data-dir", dataDir], env)).toMatchObject({ code: 0 });
    for (const line of [["apps", "list"], ["keys", "list"], ["move"]]) {
      const refused = await runCommand([...line, "--data-dir", dataDir], { cwd: folder, env });
      expect(refused).toMatchObject({ code: 1, told: expect.stringMatching(/were moved to postgres:.* at 20.*relay move --undo/) });
    }
    await expect(startRunningService({ config: { dataDir: copyOf(dataDir) } })).rejects.toThrow(/were moved to postgres:/);
    expect(await move(["--undo", "--data-dir", dataDir])).toMatchObject({
      code: 0,
      told: expect.stringContaining("Do not run a server on postgres:"),
    });
    expect(await move(["--undo", "--data-dir", dataDir])).toMatchObject({ code: 1, told: expect.stringContaining("nothing to undo") });
    expect(await runCommand(["apps", "list", "--data-dir", dataDir], { cwd: folder })).toMatchObject({ code: 0 });
    expect(await move(["--data-dir", dataDir], env)).toMatchObject({ code: 0, said: expect.stringContaining("already, and all are equal") });
    await move(["--undo", "--data-dir", dataDir]);
    await ask(database.url, "UPDATE person SET email = overlay(email placing 'X' from 1) WHERE id = (SELECT min(id) FROM person)");
    expect(await move(["--data-dir", dataDir], env)).toMatchObject({ code: 1, told: expect.stringContaining("with other rows") });
  });

  test("moves back into its original folder, whose old file is stored as a backup", async () => {
    const dataDir = copyFilled();
    await using database = await freshDatabase();
    await move(["--data-dir", dataDir], { RELAY_MOVE_TO: database.url });
    await ask(database.url, "UPDATE app SET name = 'Renamed since'");
    const back = await move(["--to", dataDir], { RELAY_DATABASE: database.url });
    expect(back).toMatchObject({ code: 0, told: expect.stringMatching(/is saved in .*before-move-/) });
    expect(readdirSync(join(dataDir, "backups")).filter((name) => name.startsWith("before-move-"))).toHaveLength(1);
    expect(rowsOf(dataDir)["app"]?.join()).toContain("Renamed since");
    const refused = await runCommand(["apps", "list"], { cwd: folder, env: { RELAY_DATABASE: database.url } });
    expect(refused).toMatchObject({ code: 1, told: expect.stringContaining(`were moved to ${join(dataDir, "relay.db")}`) });
    expect(await move(["--undo"], { RELAY_DATABASE: database.url })).toMatchObject({ code: 0 });
    expect(await runCommand(["apps", "list"], { cwd: folder, env: { RELAY_DATABASE: database.url } })).toMatchObject({ code: 0 });
  });

  test("has U+FFFD where PostgreSQL cannot store U+0000, and the output says so", async () => {
    const dataDir = copyFilled();
    using database = new Database(join(dataDir, "relay.db"));
    database.query("UPDATE person SET created_by = ?1 WHERE id = (SELECT min(id) FROM person)").run("a\0b");
    database.close();
    await using fresh = await freshDatabase();
    const moved = await move(["--data-dir", dataDir], { RELAY_MOVE_TO: fresh.url });
    expect(moved).toMatchObject({ code: 0, told: expect.stringContaining("1 text of person.created_by contained U+0000") });
    const [person] = await ask(fresh.url, "SELECT created_by FROM person ORDER BY id LIMIT 1");
    expect(person).toEqual({ created_by: "a\ufffdb" });
  });
});

describe("an interrupted move", () => {
  const MANY = 8_000;
  let many = "";
  beforeAll(() => {
    many = copyFilled();
    using database = new Database(join(many, "relay.db"), { readwrite: true, create: false });
    const columns = "environment_id, name_key, relay_key, trigger, state, created_at, payload";
    database.run(
      `INSERT INTO event (${columns}, dedupe_hash) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MANY})
       SELECT ${columns.replace("payload", 'printf(\'{"event":{"id":%d,"text":"%s"}}\', i, hex(randomblob(200)))')}, randomblob(16)
       FROM n, (SELECT * FROM event LIMIT 1)`,
    );
  });

  /** Runs the command as a separate process, and calls `act` when the process begins to copy. */
  async function breakOff(
    line: readonly string[],
    env: Record<string, string>,
    act: (child: Bun.Subprocess) => unknown,
    shell = "",
  ): Promise<number> {
    const main = join(PROJECT_ROOT, "src/main.ts");
    const words = [process.execPath, main, "move", ...line].map((word) => `'${word}'`).join(" ");
    const child = Bun.spawn(["/bin/bash", "-c", `${shell} exec ${words}`], {
      cwd: folder,
      env: { ...process.env, ...env },
      stdout: "ignore",
      stderr: "pipe",
    });
    let told = "";
    for await (const chunk of child.stderr) {
      const before = told;
      told += Buffer.from(chunk).toString();
      if (told.includes("Copying") && !before.includes("Copying")) await act(child);
    }
    await child.exited;
    return child.exitCode ?? -1;
  }

  test("leaves nothing in PostgreSQL, and can run again", async () => {
    const dataDir = copyOf(many);
    await using database = await freshDatabase();
    const env = { RELAY_MOVE_TO: database.url };
    expect(await breakOff(["--data-dir", dataDir], env, (child) => child.kill("SIGKILL"))).not.toBe(0);
    const terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'relay move' AND datname = current_database()";
    await ask(database.url, terminate);
    const count = async () => (await ask(database.url, "SELECT (SELECT count(*) FROM event)::int + (SELECT count(*) FROM app)::int AS rows"))[0];
    expect(await count()).toEqual({ rows: 0 });
    expect(await breakOff(["--data-dir", dataDir], env, () => ask(database.url, terminate))).toBe(1);
    expect(await count()).toEqual({ rows: 0 });
    const moved = await move(["--data-dir", dataDir, "--json"], env);
    expect(moved.code).toBe(0);
    expect(JSON.parse(moved.said)).toMatchObject({ before: false, rows: { event: MANY + 3 } });
  });

  test("leaves no database in the folder, also if the disk is full, and can run again", async () => {
    await using database = await freshDatabase();
    const env = { RELAY_DATABASE: database.url };
    expect(await move(["--data-dir", copyOf(many)], { RELAY_MOVE_TO: database.url })).toMatchObject({ code: 0 });
    const back = join(folder, `back-${++made}`);
    const left = () => readdirSync(back).filter((name) => name.includes("relay.db"));
    expect(await breakOff(["--to", back], env, (child) => child.kill("SIGKILL"))).not.toBe(0);
    expect(left()).not.toContain("relay.db");
    // Limits files to four megabytes, which simulates a full disk.
    expect(await breakOff(["--to", back], env, () => undefined, "trap '' XFSZ; ulimit -f 4096;")).toBe(1);
    expect(left()).toEqual([]);
    expect(await move(["--to", back], env)).toMatchObject({ code: 0, said: expect.stringContaining("read them again and found them equal") });
    expect(left()).toEqual(["relay.db"]);
    expect(rowsOf(back)["event"]).toHaveLength(MANY + 3);
  });
});

test("a row that was stored with another value than it had is detected, and the move fails", async () => {
  const file = join(copyFilled(), "relay.db");
  for (const name of ["person", "event", "relay"]) {
    const part = join(folder, `part-${++made}.db`);
    await (await openSqlite(part, { clock: systemClock })).close();
    await using source = new SqliteEnd(file, { making: false });
    await using target = new NewSqliteEnd(part, { making: true });
    const add = target.add.bind(target);
    target.add = async (table, rows) => {
      await add(table, rows);
      if (table.name === name) target.database.run(`UPDATE ${name} SET created_at = created_at + 1 WHERE rowid = 1`);
    };
    await expect(moveRows(source, target, source.listTables())).rejects.toThrow(`The table ${name} of ${part} is not what was read`);
  }
});

/** Moves the folder to the database and back to another folder. Yields the configuration of each, right after the move there. */
async function* moveThereAndBack(dataDir: string, url: string) {
  expect(await move(["--data-dir", dataDir], { RELAY_MOVE_TO: url })).toMatchObject({ code: 0 });
  const back = join(folder, `back-${++made}`);
  cpSync(dataDir, back, { recursive: true, filter: (path) => !path.includes("relay.db") });
  yield { dataDir, database: readDatabaseUrl(url) as DatabaseUrl };
  expect(await move(["--to", back], { RELAY_DATABASE: url })).toMatchObject({ code: 0 });
  yield { dataDir: back, database: null };
}

test("a moved service continues: a used dedupe key stays used, and numbers continue", async () => {
  const dataDir = copyFilled();
  const again = { id: "cs_0", payment_intent: "pi_0", customer_details: { email: "buyer0@example.com" } };
  await using database = await freshDatabase();
  for await (const config of moveThereAndBack(dataDir, database.url)) {
    await using running = await startBareService({ config });
    const counted = () => running.rows<{ count: number; last: number }>("SELECT count(*) AS count, max(seq) AS last FROM event");
    const [before] = await counted();
    if (config.database !== null) expect(await running.rows("SELECT last_value AS last FROM event_number")).toEqual([{ last: before?.last ?? 0 }]);
    const call = async (id: string) => {
      const { headers, body } = await signStripe(running, id, "checkout.session.completed", again);
      return await (await fetch(`${running.service.url}/hooks/${APP}/checkout`, { method: "POST", headers, body })).json();
    };
    expect(await call("evt_0")).toMatchObject({ duplicate: true });
    expect((await counted())[0]).toEqual({ count: 0, last: 0, ...before });
    expect(await call(`evt_${config.dataDir}_${config.database === null}`)).not.toHaveProperty("duplicate");
    const [after] = await counted();
    expect(after?.count).toBe((before?.count ?? 0) + 1);
    expect(after?.last).toBeGreaterThan(before?.last ?? 0);
  }
});

test("a receiver and its followers share the requests after a move and after the way back", async () => {
  await using first = await startRunningService();
  await makeOrders(first);
  await saveRelay(first, receiverDefinition({ name: "stripe" }));
  for (const name of ["archive", "paid"]) {
    const definition = receiverDefinition({ name, verify: { scheme: "receiver", receiver: "stripe" } });
    expect((await first.api("POST", "/relays", { definition })).status).toBe(201);
  }
  const { body } = await first.hook("stripe", signedCall({ id: "evt_0", amount: 1 }));
  await first.drain();
  await first.service[Symbol.asyncDispose]();
  await using database = await freshDatabase();
  const dataDir = copyOf(first.dataDir);
  for await (const config of moveThereAndBack(dataDir, database.url)) {
    await using running = await startBareService({ config });
    const call = async (id: string) => {
      const response = await fetch(`${running.service.url}/hooks/${APP}/stripe`, { method: "POST", ...signedCall({ id, amount: 1 }) });
      return (await response.json()) as { duplicate?: true; events: { relay: string }[] };
    };
    expect(await call("evt_0")).toEqual({ ...body, duplicate: true });
    const { events, duplicate } = await call(`evt_${config.database === null ? "back" : "there"}`);
    expect([events.map(({ relay }) => relay), duplicate]).toEqual([["stripe", "archive", "paid"], undefined]);
  }
});
