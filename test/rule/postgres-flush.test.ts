/** When a write on PostgreSQL is answered: once its commit is on the disk, and never for one that a crash took with it. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { SQL } from "bun";
import { systemClock } from "../../src/ground/clock.ts";
import type { Store } from "../../src/store/port.ts";
import { openPostgres } from "../../src/store/postgres.ts";
import { placeOf, startPostgres } from "../kit/postgres.ts";
import { addApp, listApps } from "../kit/store-conformance.ts";

let ended: AsyncDisposableStack;
let server: Awaited<ReturnType<typeof startPostgres>>;
let admin: SQL;

beforeEach(async () => {
  ended = new AsyncDisposableStack();
  server = ended.use(await startPostgres());
  admin = ended.adopt(new SQL(server.url, { max: 1 }), (sql) => sql.close());
}, 30_000);

afterEach(() => ended.disposeAsync());

async function openStore(url: string): Promise<Store> {
  return ended.adopt(await openPostgres(placeOf(url), { clock: systemClock }), (store) => store.close());
}

async function findProcess(condition: string): Promise<number> {
  const [row] = await admin.unsafe(`SELECT pid FROM pg_stat_activity WHERE ${condition}`);
  return row.pid;
}
const FLUSHER = "application_name = 'relay flusher'";

/** Adds an app of this name; `runs` counts how often that was tried. */
function add(store: Store, id: string): { runs: () => number; ended: Promise<string>; isAnswered: () => boolean } {
  let runs = 0;
  let answered = false;
  const written = store.write("app", (tx) => {
    runs += 1;
    return addApp(id)(tx);
  });
  written.then(
    () => {
      answered = true;
    },
    () => undefined,
  );
  return { runs: () => runs, ended: written, isAnswered: () => answered };
}

async function untilThere(store: Store, id: string): Promise<void> {
  while (!(await store.read(listApps)).includes(id)) await Bun.sleep(5);
}

test("what others see already is answered for only once it is on the disk; what a crash took with it is written again, once", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  const processes = [await findProcess(FLUSHER), await findProcess("backend_type = 'walwriter'")];
  for (const pid of processes) process.kill(pid, "SIGSTOP");
  const first = add(store, "b");
  await untilThere(store, "b");
  const second = add(store, "c");
  await untilThere(store, "c");
  expect([first, second].map(({ isAnswered }) => isAnswered())).toEqual([false, false]);
  // The server starts anew with what its disk has.
  for (const pid of processes) process.kill(pid, "SIGKILL");
  expect(await Promise.all([first.ended, second.ended])).toEqual(["b", "c"]);
  expect([first.runs(), second.runs(), await store.read(listApps)]).toEqual([2, 2, ["a", "b", "c"]]);
}, 30_000);

test("a flush whose connection breaks is asked for again, and the write that waits for it does not run again", async () => {
  const store = await openStore(server.url);
  await store.write("app", addApp("a"));
  const flusher = await findProcess(FLUSHER);
  process.kill(flusher, "SIGSTOP");
  const write = add(store, "b");
  await untilThere(store, "b");
  process.kill(flusher, "SIGCONT");
  await admin`SELECT pg_terminate_backend(${flusher})`;
  expect([await write.ended, write.runs(), await store.read(listApps)]).toEqual(["b", 1, ["a", "b"]]);
}, 30_000);

/** Passes bytes on to the server, until it is cut: then the store is told at once, and the server, which is at work, learns nothing. */
async function passThrough(url: string): Promise<{ url: string; cut: () => void }> {
  const { port, hostname } = new URL(url);
  const sockets: Socket[] = [];
  const passing = createServer((socket) => {
    const on = connect(Number(port), hostname);
    sockets.push(socket);
    socket.on("data", (bytes) => on.write(bytes)).on("error", () => undefined);
    on.on("data", (bytes) => socket.write(bytes)).on("error", () => undefined);
    on.on("close", () => socket.destroy());
  });
  await new Promise<void>((resolve) => passing.listen(0, "127.0.0.1", resolve));
  ended.defer(() => void passing.close());
  const passed = new URL(url);
  passed.port = String((passing.address() as { port: number }).port);
  const cut = (): void => {
    for (const socket of sockets.splice(0)) socket.destroy();
  };
  return { url: passed.href, cut };
}

test("a commit whose answer was lost while it is under way is waited for, and not run again", async () => {
  const { url, cut } = await passThrough(server.url);
  const store = await openStore(url);
  await admin.unsafe("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END $$");
  await admin.unsafe("CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON app DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()");
  const write = add(store, "a");
  while ((await admin`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`).length === 0) await Bun.sleep(10);
  cut();
  expect([await write.ended, write.runs(), await store.read(listApps)]).toEqual(["a", 1, ["a"]]);
}, 30_000);
