/**
 * Reads and writes the rows of nodes and leases, in the database's time: registering, renewing, taking and giving back. node-lease-holder.ts decides
 * what the node does with the result.
 */
import { hostname } from "node:os";
import { DAY_MS } from "../../base/limit.ts";
import { VERSION } from "../../base/release/version.ts";
import { SCHEMA_VERSION } from "../migrate/migrations.ts";
import { type Reader, StoreUnavailable, type Writer } from "../port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../table.ts";
import { ALL_ENVIRONMENTS, type NodeView } from "./lease-holder.ts";
import { type SharedLease, shareOf } from "./lease-share.ts";

export const LEASE_MS = 10_000;
export const RENEW_EVERY_MS = 3_000;
/** A node that was seen within this time gets a share. A node that missed two turns gets none. */
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
    /** The start in the database's time, as `seenAt` is. */
    startedAt: integer(),
    seenAt: integer(),
    /** The configured public origin. Empty without one. */
    baseUrl: orNull(text()),
    /** The node's own clock at `seenAt`. */
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

/** Returns the database's time in milliseconds. */
export async function readDatabaseTime(tx: Reader): Promise<number> {
  const row = await tx.get<{ ms: number }>("SELECT now_ms() AS ms");
  if (row === null) throw new StoreUnavailable("The database does not tell its time.");
  return row.ms;
}

/** The node that looks, with the state that it knows. */
interface Looking {
  id: string;
  url: string | null;
  baseUrl: string;
  nowMs: number;
  /** The time of the node's own clock. */
  clockAt: number;
  /** True if the node looked before. */
  known: boolean;
  /** The epochs of the leases that the node knows to hold, by environment. */
  held: ReadonlyMap<number, number>;
  /** Leases to give back, by environment. The value is true if the lease can go now. */
  leaving: ReadonlyMap<number, boolean>;
}

/** The result of a look, as its transaction left the rows. */
export interface Found {
  /** The epochs of the leases that this node holds, by environment. */
  own: Map<number, number>;
  /** The number of leases that it took before their holder gave them back. */
  takeovers: number;
  /** Leases to give back after their work has stopped. */
  giveBack: number[];
  /** Milliseconds until the first lease of another node expires. Null if there is none. */
  nextEndMs: number | null;
  live: string[];
}

/**
 * Runs a node's whole turn: registers the node, renews its leases, takes free ones, and gives back those that can go. A turn that only renews does
 * not wake other nodes.
 */
export async function lookAtLeases(tx: Writer, looking: Looking): Promise<Found> {
  const { id, nowMs, held, leaving } = looking;
  const until = nowMs + LEASE_MS;
  await showUp(tx, looking);
  // The other nodes then give the new node its share.
  if (!looking.known) tx.notify("lease");
  await keepLeases(tx, until);
  for (const [environmentId, mayGo] of leaving)
    if (mayGo) await giveBackLease(tx, environmentId, held.get(environmentId));
  const leases = await NODE_LEASE.all(tx, "ORDER BY environment_id");
  const shared = leases.map(({ environmentId, ...lease }): SharedLease => {
    // A lease in this node's name that the node does not know was taken by a turn whose result was lost. It counts as free.
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
  // Corrects rows from the future after the database's clock was set back.
  await tx.run("UPDATE node SET seen_at = ?1 WHERE seen_at > ?1", nowMs);
}

/** Creates the missing leases, one for each environment and one for all, and deletes those of deleted environments. */
async function keepLeases(tx: Writer, latest: number): Promise<void> {
  const insertFree = "INSERT INTO node_lease (environment_id, node, epoch, until)";
  await tx.run(`${insertFree} VALUES (?1, NULL, 0, 0) ON CONFLICT DO NOTHING`, ALL_ENVIRONMENTS);
  await tx.run(
    `${insertFree} SELECT id, NULL, 0, 0 FROM environment WHERE NOT EXISTS (
       SELECT 1 FROM node_lease WHERE node_lease.environment_id = environment.id) ON CONFLICT DO NOTHING`,
  );
  await tx.run(
    `DELETE FROM node_lease WHERE environment_id <> ?1
       AND NOT EXISTS (SELECT 1 FROM environment WHERE environment.id = node_lease.environment_id)`,
    ALL_ENVIRONMENTS,
  );
  await tx.run("UPDATE node_lease SET until = ?1 WHERE until > ?1", latest);
}

/** Frees the lease, so that other nodes take it at once. Does nothing if another node has it already. */
async function giveBackLease(tx: Writer, environmentId: number, epoch: number | undefined): Promise<void> {
  if (epoch === undefined) return;
  const sql = "UPDATE node_lease SET node = NULL, until = 0 WHERE environment_id = ?1 AND epoch = ?2";
  await tx.run(sql, environmentId, epoch);
  tx.notify("lease");
}

/** Frees all leases of the node and deletes its row when the node stops. */
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

/** Lists every node that was seen within a day, with its leases. `own` is the node that asks. */
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
