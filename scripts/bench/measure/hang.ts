/**
 * Measures how long webhooks of two environments take while the node of a third hangs in a transaction of it, next to the same nodes without trouble.
 * The server ends the transaction after five seconds, so a load is shorter.
 */
import { SQL } from "bun";
import { WRITER_LOCK } from "../../../src/store/postgres/writer-lock.ts";
import { poll } from "../../../test/kit/patience.ts";
import { compareAmounts, type Figure, median } from "../figure.ts";
import type { Measure } from "../measure.ts";
import { fresh, listApart, openServer, startNodes, warmUp } from "../postgres.ts";
import { SECRET, startClient } from "../process.ts";

const CALLERS = 16;
const WARM_UP_CALLS = 20_000;
const LOAD_SECONDS = 2;
/** Tries to stop the node while it writes in its environment and nowhere else. */
const TRIES = 20;

/** The open transactions that hold the lock of an environment and wait for their node. */
const HUNG = `SELECT pid || ' ' || xact_start AS name, objid::int AS environment FROM pg_stat_activity JOIN pg_locks USING (pid)
  WHERE datname = current_database() AND state = 'idle in transaction' AND locktype = 'advisory' AND granted
    AND classid::bigint = $1 AND objsubid = 2`;

/** Has the node's next groups read first. A group that needs no read sends its COMMIT at once, so its transaction never waits for the node. */
const DISTURB = "UPDATE writer_scope SET node = '' WHERE scope = $1";
const DISTURBANCES = 8;

const WAITING = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'relay writer'
  AND wait_event = 'advisory'`;

export const hang: Measure = {
  name: "hang",
  what: "webhooks of two environments on PostgreSQL while the node of a third hangs in a transaction",
  // Nodes, database and load are more processes than there are processors.
  pinned: false,
  async measure(run) {
    await using server = await openServer(run);
    await using database = await fresh(server.url);
    await using nodes = await startNodes(database.url, { nodes: 3, apps: 3, kind: "paused" });
    await using client = startClient(SECRET);
    await using hanging = startClient(SECRET);
    await using sql = new SQL(database.url, { max: 2 });
    const calls = run.tiny ? 100 : WARM_UP_CALLS;
    await warmUp(database.url, client, nodes.servers, { connections: 64, calls });
    const [first, ...others] = listApart(nodes.servers);
    if (first === undefined) throw new Error("no node");
    const [held] = (await sql.unsafe("SELECT min(id)::int AS id FROM environment")) as { id: number }[];
    const seconds = run.tiny ? run.seconds : LOAD_SECONDS;
    const load = async () => (await client.load(others, { seconds, connections: CALLERS })).p99Ms;
    const listHung = async (): Promise<string[]> => {
      const rows = (await sql.unsafe(HUNG, [WRITER_LOCK])) as { name: string; environment: number }[];
      return rows.filter(({ environment }) => environment === held?.id).map(({ name }) => name);
    };
    const countWaiting = async (): Promise<number> => (await sql.unsafe(WAITING)).length;
    /** Returns the time during the hang, or null if the node was stopped elsewhere. */
    const loadHung = async (): Promise<number | null> => {
      const sent = hanging.load([first], { seconds: 1, connections: 4 });
      const gate = await sql.reserve();
      for (let time = 0; time < DISTURBANCES; time++) {
        await sql.unsafe(DISTURB, [held?.id]);
        await Bun.sleep(20);
      }
      await gate.unsafe("BEGIN");
      await gate.unsafe("SELECT pg_advisory_xact_lock($1)", [WRITER_LOCK]);
      await poll(countWaiting, (count) => count > 0);
      process.kill(first.pid, "SIGSTOP");
      try {
        await gate.unsafe("COMMIT");
        gate.release();
        await poll(countWaiting, (count) => count === 0);
        const [hung] = await listHung();
        const p99Ms = hung === undefined ? 0 : await load();
        return hung !== undefined && (await listHung()).includes(hung) ? p99Ms : null;
      } finally {
        process.kill(first.pid, "SIGCONT");
        await sent.catch(() => undefined);
      }
    };
    const [calm, hung]: [number[], number[]] = [[], []];
    const turns = run.tiny ? 1 : Math.max(1, run.rounds);
    for (let tries = 0; hung.length < turns; tries++) {
      if (tries === TRIES * turns)
        throw new Error("The other environments never continued while the node hung.");
      const before = await load();
      const during = await loadHung();
      if (during === null) continue;
      calm.push(before);
      hung.push(during);
    }
    const limit = { name: "no node hangs", amount: median(calm) };
    const figures: Figure[] = [
      compareAmounts("99 % of the webhooks are stored within", "ms", median(hung), limit, { timesAtMost: 2 }),
    ];
    return figures;
  },
};
