/**
 * Reads and writes the rows of nodes and leases, in the database's time: registering, renewing, taking and giving back. node-lease-holder.ts decides
 * what the node does with the result.
 */
import { hostname } from "node:os";
import { DAY_MS } from "../../base/limit.ts";
import { VERSION } from "../../base/release/change.ts";
import { SCHEMA_VERSION } from "../migrate/migrations.ts";
import { type Reader, StoreUnavailable, type Writer } from "../port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../table.ts";
import { ALL_ENVIRONMENTS, type NodeView } from "./lease-holder.ts";
import { type SharedLease, shareOf } from "./lease-share.ts";

export const LEASE_MS = 10_000;
export const RENEW_EVERY_MS = 3_000;
/** Who turned up within this gets a share: who missed two turns gets none. */
const LIVE_MS = 2 * RENEW_EVERY_MS + 500;

const NODE = defineTable({
  name: "node",
  key: ["id"],
  columns: {
    id: text(),
    host: text(),
    pid: integer(),
    version: text(),
    schemaVersion: integer(),
    url: orNull(text()),
    /** As is `seenAt`: the database's time. */
    startedAt: integer(),
    seenAt: integer(),
    /** The public origin that it was given; "": none. */
    baseUrl: orNull(text()),
    /** Its own clock as it was seen. */
    clockAt: orNull(integer()),
  },
});

const NODE_LEASE = defineTable({
  name: "node_lease",
  key: ["environmentId"],
  columns: {
    environmentId: integer(),
    /** Null if no node holds it. */
    node: orNull(text()),
    /** Rises each time that a node takes the lease. */
    epoch: integer(),
    until: integer(),
  },
});

type LeaseRow = RowOf<typeof NODE_LEASE>;

/** Milliseconds by the database. */
export async function readDatabaseTime(tx: Reader): Promise<number> {
  const row = await tx.get<{ ms: number }>("SELECT now_ms() AS ms");
  if (row === null) throw new StoreUnavailable("The database does not tell its time.");
  return row.ms;
}

/** Who looks, and what it believes. */
interface Looking {
  id: string;
  url: string | null;
  baseUrl: string;
  nowMs: number;
  /** By its own clock. */
  clockAt: number;
  /** Whether it was there before. */
  known: boolean;
  /** By environment, the epoch of what it holds. */
  held: ReadonlyMap<number, number>;
  /** What it gives back: true where it may go now. */
  leaving: ReadonlyMap<number, boolean>;
}

/** What a look found, as its transaction left it. */
export interface Found {
  /** By environment, the epoch of what this node holds. */
  own: Map<number, number>;
  /** Of those that it took, how many others had not given back. */
  takeovers: number;
  /** To be given back, once nothing of it runs any more. */
  giveBack: number[];
  /** In how long the first lease of another is over. */
  nextEndMs: number | null;
  live: string[];
}

/** Shows up, renews, takes, and gives back what may go: all of a node's turn. One that only renews is nothing that others look anew for. */
export async function lookAtLeases(tx: Writer, looking: Looking): Promise<Found> {
  const { id, nowMs, held, leaving } = looking;
  const until = nowMs + LEASE_MS;
  await showUp(tx, looking);
  // The others give it its share.
  if (!looking.known) tx.notify("lease");
  await keepLeases(tx, until);
  for (const [environmentId, mayGo] of leaving)
    if (mayGo) await giveBackLease(tx, environmentId, held.get(environmentId));
  const leases = await NODE_LEASE.all(tx, "ORDER BY environment_id");
  const shared = leases.map(({ environmentId, ...lease }): SharedLease => {
    // One in its own name that it does not know of was taken by a look whose answer was lost.
    const isHeld = lease.node === id ? held.get(environmentId) === lease.epoch : lease.until > nowMs;
    return { environmentId, node: isHeld ? lease.node : null };
  });
  const live = (
    await NODE.pick("id").all(tx, "WHERE seen_at > $after ORDER BY id", { after: nowMs - LIVE_MS })
  ).map((node) => node.id);
  const { take, giveBack } = shareOf(shared, live, id, new Set(leaving.keys()));
  const found: Found = { own: new Map(), takeovers: 0, giveBack, nextEndMs: null, live };
  if (looking.known && take.length === 0 && ![...leaving.values()].includes(true)) tx.suppressWakeups();
  for (const [at, lease] of leases.entries()) {
    const { environmentId, node } = lease;
    const isTaken = take.includes(environmentId);
    if (isTaken || shared[at]?.node === id) {
      const epoch = lease.epoch + (isTaken ? 1 : 0);
      await NODE_LEASE.change(tx, { environmentId }, { node: id, epoch, until });
      found.own.set(environmentId, epoch);
      if (isTaken && node !== null && node !== id) found.takeovers += 1;
    } else if (node !== null && lease.until > nowMs)
      found.nextEndMs = Math.min(found.nextEndMs ?? LEASE_MS, lease.until - nowMs);
  }
  return found;
}

async function showUp(tx: Writer, { id, url, baseUrl, nowMs, clockAt }: Looking): Promise<void> {
  const about = { host: hostname(), pid: process.pid, version: VERSION, schemaVersion: SCHEMA_VERSION };
  await NODE.insert(
    tx,
    { id, ...about, url, baseUrl, startedAt: nowMs, seenAt: nowMs, clockAt },
    "ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, url = excluded.url, clock_at = excluded.clock_at",
  );
  await tx.run("DELETE FROM node WHERE seen_at < ?1", nowMs - DAY_MS);
  // The database's clock was set back.
  await tx.run("UPDATE node SET seen_at = ?1 WHERE seen_at > ?1", nowMs);
}

/** Creates the missing leases, one for each environment and one for all, and deletes those of deleted environments. */
async function keepLeases(tx: Writer, latest: number): Promise<void> {
  const nobodys = "INSERT INTO node_lease (environment_id, node, epoch, until)";
  await tx.run(`${nobodys} VALUES (?1, NULL, 0, 0) ON CONFLICT DO NOTHING`, ALL_ENVIRONMENTS);
  await tx.run(
    `${nobodys} SELECT id, NULL, 0, 0 FROM environment WHERE NOT EXISTS (
       SELECT 1 FROM node_lease WHERE node_lease.environment_id = environment.id) ON CONFLICT DO NOTHING`,
  );
  await tx.run(
    `DELETE FROM node_lease WHERE environment_id <> ?1
       AND NOT EXISTS (SELECT 1 FROM environment WHERE environment.id = node_lease.environment_id)`,
    ALL_ENVIRONMENTS,
  );
  await tx.run("UPDATE node_lease SET until = ?1 WHERE until > ?1", latest);
}

/** So that others take it at once; nothing where it is another's by now. */
async function giveBackLease(tx: Writer, environmentId: number, epoch: number | undefined): Promise<void> {
  if (epoch === undefined) return;
  const sql = "UPDATE node_lease SET node = NULL, until = 0 WHERE environment_id = ?1 AND epoch = ?2";
  await tx.run(sql, environmentId, epoch);
  tx.notify("lease");
}

/** The node ends. */
export async function giveBackAll(tx: Writer, id: string): Promise<void> {
  await tx.run("UPDATE node_lease SET node = NULL, until = 0 WHERE node = ?1", id);
  await NODE.delete(tx, { id });
  tx.notify("lease");
}

/** Returns whether the node still holds the lease with this epoch. */
export async function hasLease(
  tx: Reader,
  environmentId: number,
  epoch: number,
  id: string,
): Promise<boolean> {
  const sql = "SELECT 1 FROM node_lease WHERE environment_id = ?1 AND epoch = ?2 AND node = ?3";
  return (await tx.get(sql, environmentId, epoch, id)) !== null;
}

/** Every node that was there within a day, and what it holds; `own`: who asks. */
export async function listNodes(tx: Reader, own: string, nowMs: number): Promise<NodeView[]> {
  const all = await NODE_LEASE.all(tx, "ORDER BY environment_id");
  const leases = all.filter(({ until }: LeaseRow) => until > nowMs);
  return (await NODE.all(tx, "ORDER BY started_at, id")).map((row) => {
    const { schemaVersion: _, baseUrl: _url, clockAt: _at, ...node } = row;
    const held = leases.filter((lease) => lease.node === node.id).map(({ environmentId }) => environmentId);
    return {
      ...node,
      live: node.seenAt > nowMs - LEASE_MS,
      own: node.id === own,
      house: held.includes(ALL_ENVIRONMENTS),
      environments: held.filter((environmentId) => environmentId !== ALL_ENVIRONMENTS),
    };
  });
}
