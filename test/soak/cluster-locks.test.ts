/**
 * Three nodes on one PostgreSQL, of which one environment's writes are held up: by a node that hangs in a transaction, by a row that another session
 * locks, and by a pause for longer than a lease. The other environments continue meanwhile. A test cannot keep a node's transaction open, because the
 * server ends it, so a test tries again until the transaction was still open after the other environments' events. The last test crashes the
 * database in the middle of many flushes, and then compares everything with the model.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { WRITER_LOCK } from "../../src/store/postgres/writer-lock.ts";
import { ClusterNode, Ground, Sender } from "../crash/cluster.ts";
import { CLUSTER_APPS, CLUSTER_RELAYS, compareCluster, seedCluster, settleCluster, TICK_MS } from "../crash/cluster-model.ts";
import { callApi, type Tenant } from "../kit/node.ts";
import { poll, TEST_MS } from "../kit/patience.ts";
import { startPostgres } from "../kit/postgres.ts";
import { signedCall } from "../kit/relay-definition.ts";
import { startSink } from "../kit/sink.ts";

const TICK_AFTER_MS = 18_000;
/** The user of the first node, by which its sessions are found. */
const USER = "relay_first";
const PASSWORD = "first";
const RESTARTS = 5;
/** The time for which a session locks a row. The server ends a write that waits for it after 15 s. */
const ROW_MS = 8_000;

const ended = new AsyncDisposableStack();
const senders: Sender[] = [];
let server: Awaited<ReturnType<typeof startPostgres>>;
let sink: ReturnType<typeof startSink>;
let ground: Ground;
let tenants: Tenant[];
let first: ClusterNode;
let second: ClusterNode;
let third: ClusterNode;
let tickMs: number;

beforeAll(async () => {
  server = ended.use(await startPostgres());
  sink = ended.use(startSink());
  tenants = await seedCluster(server.url);
  ground = ended.use(new Ground(server.url));
  await ground.rows(`CREATE ROLE ${USER} SUPERUSER LOGIN PASSWORD '${PASSWORD}'`);
  const own = new URL(server.url);
  own.username = USER;
  own.password = PASSWORD;
  tickMs = Math.ceil((Date.now() + 1) / TICK_MS) * TICK_MS;
  const place = { databaseUrl: server.url, aheadMs: tickMs - Date.now() - TICK_AFTER_MS, sinkUrl: sink.url };
  first = ended.use(new ClusterNode({ ...place, databaseUrl: own.href }));
  second = ended.use(new ClusterNode(place));
  third = ended.use(new ClusterNode(place));
  await Promise.all([first, second, third].map((node) => node.start()));
}, TEST_MS);

afterAll(() => ended.disposeAsync(), TEST_MS);

/** Sends events of these apps and relays until the end of the scope. */
function send(
  nodes: readonly ClusterNode[],
  { apps, relays, everyMs = 0 }: { apps: readonly string[]; relays: readonly string[]; everyMs?: number },
) {
  const sender = new Sender(nodes, `${senders.length}:`);
  senders.push(sender);
  sender.begin(apps, relays, everyMs);
  return { sender, [Symbol.asyncDispose]: async () => void (await sender.end()) };
}

/** A session that is open until the end of the scope. It holds what `statement` locks until `release`. */
async function hold(statement: string, values: readonly (string | number)[]) {
  const sql = new SQL(server.url, { max: 1 });
  const session = await sql.reserve();
  await session.unsafe("BEGIN");
  await session.unsafe(statement, [...values]);
  const [own] = (await session.unsafe("SELECT pg_backend_pid() AS pid")) as { pid: number }[];
  return {
    pid: own?.pid ?? 0,
    release: async () => void (await session.unsafe("COMMIT")),
    [Symbol.asyncDispose]: () => sql.close({ timeout: 0 }),
  };
}

/** A transaction of a node, named by its session and its begin. */
interface Open {
  name: string;
}

/** Lists the locks of environments that transactions hold whose node is the first one and sends nothing. */
const listHung = (): Promise<(Open & { environment: bigint })[]> =>
  ground.rows(
    `SELECT pid || ' ' || xact_start AS name, objid::bigint AS environment FROM pg_stat_activity JOIN pg_locks USING (pid)
     WHERE usename = '${USER}' AND state = 'idle in transaction' AND locktype = 'advisory' AND granted AND classid::bigint = $1 AND objsubid = 2`,
    WRITER_LOCK,
  );

const listOpen = (): Promise<Open[]> =>
  ground.rows<Open>(`SELECT pid || ' ' || xact_start AS name FROM pg_stat_activity WHERE usename = '${USER}' AND state LIKE 'idle in transaction%'`);

/** Lists the transactions of nodes that wait for the session. */
const listBlocked = (pid: number): Promise<Open[]> =>
  ground.rows<Open>(
    `SELECT pid || ' ' || xact_start AS name FROM pg_stat_activity
     WHERE application_name = 'relay writer' AND $1 = ANY(pg_blocking_pids(pid)) ORDER BY xact_start`,
    pid,
  );

/**
 * Stops the first node inside a transaction of the environment, while its writes of the environment come. A session that holds the lock of everything
 * lets its next transaction wait for its locks, with all that it sent. Returns the transaction, or null if the node was stopped in another one or in
 * several.
 */
async function hang(environment: number): Promise<string | null> {
  await using gate = await hold("SELECT pg_advisory_xact_lock($1)", [WRITER_LOCK]);
  const waits = () => ground.rows<Open>(`SELECT pid AS name FROM pg_stat_activity WHERE usename = '${USER}' AND wait_event = 'advisory'`);
  await poll(
    async () => (await waits()).length,
    (count) => count > 0,
  );
  first.signal("SIGSTOP");
  await gate.release();
  await poll(
    async () => (await waits()).length,
    (count) => count === 0,
  );
  const [hung, more] = await listHung();
  return hung !== undefined && more === undefined && Number(hung.environment) === environment ? hung.name : null;
}

/** Waits until the nodes have shared all leases, of the environments and of the work for all. Returns the environments of the first node. */
async function listLeased(): Promise<Tenant[]> {
  const rows = await poll(
    () => ground.rows<{ node: string; id: bigint }>("SELECT node, environment_id AS id FROM node_lease WHERE node IS NOT NULL AND until > now_ms()"),
    (all) => all.length === tenants.length + 1 && new Set(all.map(({ node }) => node)).size === 3,
  );
  const held = rows.filter(({ node }) => node === first.id).map(({ id }) => Number(id));
  return tenants.filter(({ id }) => held.includes(id));
}

/**
 * Finds an environment whose lease the first node holds, and the apps of the environments that other nodes run. If the first node holds only the lease
 * of the work for all environments, it starts again, because the other nodes then take that lease and give it an environment.
 */
async function findLeased(): Promise<{ own: Tenant; apps: string[] }> {
  let leased = await listLeased();
  if (leased.length === 0) {
    await first.stop();
    await first.start();
    leased = await listLeased();
  }
  const [own] = leased;
  if (own === undefined) throw new Error("The first node holds no environment.");
  return { own, apps: tenants.filter((tenant) => !leased.includes(tenant)).map(({ app }) => app) };
}

/** A try of a few seconds can fail by chance, because the node was stopped in another transaction. */
const MOST_TRIES = 40;

/** Tries until it succeeds. Resolves with false if no try did. */
async function tryOften(tryOnce: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < MOST_TRIES; tries++) if (await tryOnce()) return true;
  return false;
}

/** Counts what the sender recorded, and the events of these apps that ended. */
async function countEvents(sender: Sender, apps: readonly string[]): Promise<number[]> {
  const done = await ground.rows<{ app: string; events: bigint }>(
    `SELECT app_id AS app, count(*) AS events FROM event JOIN environment ON environment.id = environment_id WHERE state = 'done' GROUP BY app_id`,
  );
  const ended = apps.map((app) => Number(done.find((row) => row.app === app)?.events ?? 0));
  return [...[...sender.recorded.values()].map((ids) => ids.length), ...ended];
}

/**
 * Waits until each pair of app and relay recorded this many more events and each app ended as many, or until the transaction ended. Returns whether
 * the transaction is still open.
 */
async function continueWhile(sender: Sender, { apps, more }: { apps: readonly string[]; more: number }, isOpen: () => Promise<boolean>) {
  const before = await countEvents(sender, apps);
  await poll(
    async () => ({ counts: await countEvents(sender, apps), open: await isOpen() }),
    ({ counts, open }) => !open || counts.every((count, at) => count >= (before[at] ?? 0) + more),
  );
  return await isOpen();
}

/** Sends an event that no answer is awaited for, because its node is stopped meanwhile. */
function sendWithout(node: ClusterNode, app: string, id: string): void {
  const call = signedCall({ id, type: "order.paid", amount: 1, email: "ada@example.com" });
  void fetch(`${node.url}/hooks/${app}/writes`, { method: "POST", ...call }).catch(() => undefined);
}

test(
  "a node that hangs in a transaction of one environment stops no event of the others",
  async () => {
    const { own, apps } = await findLeased();
    const { app, id } = own;
    await using others = send([second, third], { apps, relays: ["writes", "gives"] });
    let turn = 0;
    const tryOnce = async (): Promise<boolean> => {
      // Several events, because the first group can begin before the lock is held.
      const timer = setInterval(() => sendWithout(first, app, `hang${turn++}-0`), 5);
      const hung = await hang(id);
      clearInterval(timer);
      const isOpen = async () => (await listHung()).some(({ name }) => name === hung);
      const continued = hung !== null && (await continueWhile(others.sender, { apps, more: 5 }, isOpen));
      first.signal("SIGCONT");
      // The server ends what it left open, and the node goes on.
      await poll(
        async () => (await listOpen()).filter(({ name }) => name === hung).length,
        (count) => count === 0,
      );
      return continued;
    };
    expect(await tryOften(tryOnce)).toBe(true);
  },
  { timeout: TEST_MS },
);

test(
  "two environments continue on every node while another session locks a row that the third writes for eight seconds, and a write of everything waits",
  async () => {
    const [{ app, id }, ...more] = tenants as [Tenant, ...Tenant[]];
    const apps = more.map((one) => one.app);
    await using held = send([first, second, third], { apps: [app], relays: ["writes"], everyMs: 10 });
    await using others = send([first, second, third], { apps, relays: ["writes", "gives"] });
    await poll(
      () => held.sender.recorded.get(`${app} writes`)?.length ?? 0,
      (count) => count > 0,
    );
    let tries = 0;
    const tryOnce = async (): Promise<boolean> => {
      await using row = await hold("SELECT bytes FROM stored_bytes WHERE environment_id = $1 AND owner_id = '' FOR UPDATE", [id]);
      const [blocked] = await poll(
        () => listBlocked(row.pid),
        (all) => all.length > 0,
      );
      const isOpen = async () => (await listBlocked(row.pid)).some(({ name }) => name === blocked?.name);
      // A write of everything waits for the environment, and lets the others pass.
      const everything = callApi({ service: first }, more[0] as Tenant, "POST", "/collections", {
        name: `tried_${tries++}`,
        kind: "shared",
        fields: { order: { type: "text" } },
      });
      const locked = Bun.sleep(ROW_MS);
      const continued = await continueWhile(others.sender, { apps, more: 100 }, isOpen);
      await locked;
      const passed = continued && (await continueWhile(others.sender, { apps, more: 10 }, isOpen));
      await row.release();
      await everything;
      return passed;
    };
    expect(await tryOften(tryOnce)).toBe(true);
  },
  { timeout: TEST_MS },
);

test(
  "a node that is paused for longer than its lease between lock and commit leaves the environment to its successor",
  async () => {
    const { own: held } = await findLeased();
    const epoch = async () =>
      Number((await ground.rows<{ epoch: bigint }>("SELECT epoch FROM node_lease WHERE environment_id = $1", held.id))[0]?.epoch);
    const before = await epoch();
    // The other nodes record the events, so all that the first node writes in this environment depends on its lease.
    await using _sends = send([second, third], { apps: [held.app], relays: ["sends"] });
    const tryOnce = async (): Promise<boolean> => {
      const hung = await hang(held.id);
      if (hung !== null) await ground.timeTakeover(first.id);
      first.signal("SIGCONT");
      return hung !== null;
    };
    expect(await tryOften(tryOnce)).toBe(true);
    expect(await epoch()).toBeGreaterThan(before);
  },
  { timeout: TEST_MS },
);

test(
  "crashes of the database in the middle of many flushes lose, double and leave stuck nothing",
  async () => {
    {
      await using all = send([first, second, third], { apps: CLUSTER_APPS, relays: CLUSTER_RELAYS });
      for (let restart = 0; restart < RESTARTS; restart++) {
        const before = await countEvents(all.sender, []);
        await poll(
          () => countEvents(all.sender, []),
          (counts) => counts.every((count, at) => count >= (before[at] ?? 0) + 10),
        );
        await server.stop();
        await server.start();
      }
    }
    await settleCluster(ground, first, tenants);
    expect(await compareCluster(ground, { senders, sink, tickMs })).toEqual([]);
  },
  { timeout: TEST_MS },
);
