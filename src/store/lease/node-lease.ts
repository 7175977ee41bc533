/**
 * Reads and writes the rows of nodes and leases, in the database's time: registering, renewing, taking and giving back. node-lease-holder.ts decides
 * what the node does with the result.
 */
import { hostname } from "node:os";
import { DAY_MS } from "../../base/limit.ts";
import { VERSION } from "../../base/release/version.ts";
import { SCHEMA_VERSION } from "../migrate/migrations.ts";
import {
  EVERYTHING,
  type Reader,
  type SqlNames,
  StoreUnavailable,
  type Writer,
  type WriteScope,
} from "../port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../table.ts";
import { ALL_ENVIRONMENTS, type NodeView } from "./lease-holder.ts";
import { type SharedLease, shareOf } from "./lease-share.ts";

export const LEASE_MS = 10_000;
export const RENEW_EVERY_MS = 3_000;
/**
 * The remaining time of a lease from which its renewal is counted. A session that is idle in its transaction ends sooner, so no other node takes a
 * lease with more time left during a renewal.
 */
const SURE_MS = 5_500;
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

export type LeaseRow = RowOf<typeof NODE_LEASE>;

/** Returns the database's time in milliseconds. */
export async function readDatabaseTime(tx: Reader): Promise<number> {
  const row = await tx.get<{ ms: number }>("SELECT now_ms() AS ms");
  if (row === null) throw new StoreUnavailable("The database did not return its time.");
  return row.ms;
}

/** The node that looks, with the state that it knows. */
interface Looking {
  id: string;
  url: string | null;
  baseUrl: string;
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
  /** The environments whose leases it took before their holder gave them back. */
  takenOver: number[];
  /** Free leases that this node must take, each as the transaction read it, with `takeLease` in a transaction of its environment. */
  take: LeaseRow[];
  /** Leases to give back after their work has stopped. */
  giveBack: number[];
  /** Milliseconds until the first lease of another node expires. Null if there is none. */
  nextEndMs: number | null;
  live: string[];
}

/**
 * Runs a node's turn: registers the node, renews its leases, and gives back those that can go. With the scope of everything, it also takes free ones.
 * A turn that only renews does not wake other nodes. It reads in one round trip and awaits no write, because all nodes wait for the transaction.
 */
export async function lookAtLeases(
  tx: Writer,
  looking: Looking,
  readNow: (tx: Reader) => Promise<number> = readDatabaseTime,
  scope: WriteScope = EVERYTHING,
): Promise<Found> {
  const { id, held, leaving } = looking;
  const [nowMs, nodes, rows, environments] = await Promise.all([
    readNow(tx),
    NODE.pick("id", "seenAt").all(tx, "ORDER BY id"),
    NODE_LEASE.all(tx, "ORDER BY environment_id"),
    tx.all<{ id: number }>("SELECT id FROM environment ORDER BY id"),
  ]);
  const until = nowMs + LEASE_MS;
  await showUp(tx, looking, nodes, nowMs);
  // The other nodes then give the new node its share.
  if (!looking.known) tx.notify("lease");
  const kept = await keepLeases(tx, rows, [ALL_ENVIRONMENTS, ...environments.map((one) => one.id)], until);
  const leases: LeaseRow[] = [];
  for (const lease of kept) {
    const goes = leaving.get(lease.environmentId) === true && held.get(lease.environmentId) === lease.epoch;
    if (goes) await giveBackLease(tx, lease);
    leases.push(goes ? { ...lease, node: null, until: 0 } : lease);
  }
  const shared = leases.map(({ environmentId, ...lease }): SharedLease => {
    // A lease in this node's name that the node does not know was taken by a turn whose result was lost. It counts as free.
    const isHeld = lease.node === id ? held.get(environmentId) === lease.epoch : lease.until > nowMs;
    return { environmentId, node: isHeld ? lease.node : null };
  });
  const live = [
    id,
    ...nodes.filter((one) => one.id !== id && one.seenAt > nowMs - LIVE_MS).map((one) => one.id),
  ];
  live.sort();
  const { take, giveBack } = shareOf(shared, live, id, new Set(leaving.keys()));
  const free = leases.filter(({ environmentId }) => take.includes(environmentId));
  const takesHere = scope === EVERYTHING;
  const found: Found = {
    own: new Map(),
    takenOver: [],
    take: takesHere ? [] : free,
    giveBack,
    nextEndMs: null,
    live,
  };
  const changesHolder = (takesHere && free.length > 0) || [...leaving.values()].includes(true);
  if (looking.known && !changesHolder) tx.suppressWakeups();
  const renewals: (SqlNames & LeaseRow)[] = [];
  for (const [at, lease] of leases.entries()) {
    const { environmentId, node, epoch } = lease;
    if (shared[at]?.node === id) {
      renewals.push({ ...lease, until });
      found.own.set(environmentId, epoch);
    } else if (node !== null && lease.until > nowMs)
      found.nextEndMs = Math.min(found.nextEndMs ?? LEASE_MS, lease.until - nowMs);
  }
  const isSure = ({ environmentId }: LeaseRow): boolean =>
    leases.some((one) => one.environmentId === environmentId && one.until - nowMs >= SURE_MS);
  await tx.postEach(RENEW, renewals.filter(isSure));
  for (const renewal of renewals.filter((one) => !isSure(one)))
    if ((await tx.run(RENEW, renewal)) === 0) found.own.delete(renewal.environmentId);
  for (const lease of takesHere ? free : []) {
    const taken = await takeLease(tx, id, lease, until);
    if (taken === null) continue;
    found.own.set(lease.environmentId, taken.epoch);
    if (taken.isTakeover) found.takenOver.push(lease.environmentId);
  }
  return found;
}

/** Renews only what the node still holds, because another node can take an expired lease in a transaction of its environment. */
const RENEW =
  "UPDATE node_lease SET until = $until WHERE environment_id = $environmentId AND node = $node AND epoch = $epoch";

/**
 * Takes a free lease until the given time of the database. Returns null if it changed since it was read. The transaction holds the environment's
 * lock, so that no write of a former holder follows it: such a write checks its lease and commits under the same lock.
 */
export async function takeLease(
  tx: Writer,
  id: string,
  { environmentId, node, epoch, until }: LeaseRow,
  newUntil: number,
): Promise<{ epoch: number; isTakeover: boolean } | null> {
  const changed = await tx.run(TAKE, { environmentId, node, epoch, until, id, newUntil });
  return changed === 0 ? null : { epoch: epoch + 1, isTakeover: node !== null && node !== id };
}

const TAKE = `UPDATE node_lease SET node = $id, epoch = epoch + 1, until = $newUntil
  WHERE environment_id = $environmentId AND epoch = $epoch AND until = $until AND node IS $node`;

type Seen = Pick<RowOf<typeof NODE>, "id" | "seenAt">;

async function showUp(
  tx: Writer,
  { id, url, baseUrl, clockAt }: Looking,
  nodes: readonly Seen[],
  nowMs: number,
): Promise<void> {
  const about = { host: hostname(), pid: process.pid, version: VERSION, schemaVersion: SCHEMA_VERSION };
  await tx.post(SHOW_UP, { ...about, id, url, baseUrl, startedAt: nowMs, seenAt: nowMs, clockAt });
  if (nodes.some(({ seenAt }) => seenAt < nowMs - DAY_MS))
    await tx.post("DELETE FROM node WHERE seen_at < ?1", nowMs - DAY_MS);
  // Corrects rows from the future after the database's clock was set back.
  if (nodes.some(({ seenAt }) => seenAt > nowMs))
    await tx.post("UPDATE node SET seen_at = ?1 WHERE seen_at > ?1", nowMs);
}

const SHOW_UP = `INSERT INTO node (id, host, pid, version, schema_version, url, started_at, seen_at, base_url, clock_at)
  VALUES ($id, $host, $pid, $version, $schemaVersion, $url, $startedAt, $seenAt, $baseUrl, $clockAt)
  ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, url = excluded.url, clock_at = excluded.clock_at`;

/** Creates the missing leases of these environments and deletes the others. Returns all that are left, by environment. */
async function keepLeases(
  tx: Writer,
  rows: readonly LeaseRow[],
  environmentIds: readonly number[],
  latest: number,
): Promise<LeaseRow[]> {
  const missing = environmentIds.filter((id) => rows.every(({ environmentId }) => environmentId !== id));
  const free = missing.map((environmentId) => ({ environmentId, node: null, epoch: 0, until: 0 }));
  await tx.postEach(
    "INSERT INTO node_lease (environment_id, node, epoch, until) VALUES ($environmentId, $node, $epoch, $until)",
    free,
  );
  const absent = rows.filter(({ environmentId }) => !environmentIds.includes(environmentId));
  for (const { environmentId } of absent)
    await tx.post("DELETE FROM node_lease WHERE environment_id = ?1", environmentId);
  // The database's clock was set back.
  if (rows.some(({ until }) => until > latest))
    await tx.post("UPDATE node_lease SET until = ?1 WHERE until > ?1", latest);
  return [...rows.filter((row) => !absent.includes(row)), ...free]
    .map((row) => ({ ...row, until: Math.min(row.until, latest) }))
    .sort((one, other) => one.environmentId - other.environmentId);
}

/** Frees the lease, so that other nodes take it at once, unless another node has taken it. */
async function giveBackLease(tx: Writer, { environmentId, node, epoch }: LeaseRow): Promise<void> {
  const sql =
    "UPDATE node_lease SET node = NULL, until = 0 WHERE environment_id = $environmentId AND node = $node AND epoch = $epoch";
  await tx.post(sql, { environmentId, node, epoch });
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
