/**
 * Defines which process runs the background work: for each environment, and once for all of them. On SQLite, one server holds a lease on everything
 * (directory-lease.ts). On PostgreSQL, each node holds its own leases (node-lease-holder.ts). Each background write checks its lease in its own
 * transaction.
 */
import type { Nodes } from "../../base/limiter.ts";
import type { FencedStore, Writer } from "../port.ts";

/** The number, in place of an environment's, of the lease for work that is done once for all environments. */
export const ALL_ENVIRONMENTS = 0;

/** Starts and stops the background work of an environment when this process gains or loses its lease. */
export interface LeaseListener {
  /** Runs when this process gains the lease of an environment, or the lease for all environments. */
  begin(environmentId: number): Promise<void>;
  /** Stops the work of an environment. If the lease is not lost yet, the node gives it back after this resolves. */
  end(environmentId: number, isLost: boolean): Promise<void>;
  /** Runs when another server took over everything. `by` names it. */
  lost(by: string): void;
  /** Runs when a lease that seemed expired is still held. The work that was skipped meanwhile must be found. */
  regained(): void;
  /** Runs when a removed lock file was created again. */
  renewed(): void;
}

/** Tells a module which environments this process runs, and gives it a fenced store for each. */
export interface LeaseHolder {
  /** Returns whether this process may start work of the environment now. */
  holds(environmentId: number): boolean;
  /** Returns the store for the environment's writes, which fail after another process takes its lease. The same object for one lease. */
  storeOf(environmentId: number): FencedStore;
  /** True if one lease covers all environments, as on SQLite. */
  readonly holdsAll: boolean;
}

/** A node as the API shows it. */
export interface NodeView {
  id: string;
  host: string;
  pid: number;
  version: string;
  url: string | null;
  startedAt: number;
  seenAt: number;
  /** True if the node renewed its row recently. */
  live: boolean;
  /** True if the node is this process. */
  own: boolean;
  /** True if the node runs the work for all environments. */
  house: boolean;
  /** The numbers of the environments that the node runs. */
  environments: number[];
}

/** Counts this node's leases, for metrics and /readyz. */
export interface LeaseCount {
  node: string;
  house: boolean;
  environments: number;
  /** Leases taken from a node that did not give them back. */
  takeovers: number;
}

export interface LeaseManager extends LeaseHolder {
  /** Names the server that took over everything. Null while this process may run. */
  readonly lostTo: string | null;
  /** The nodes that share limits. */
  readonly nodes: Nodes;
  /** Sets the listener of gained and lost leases. */
  watch(listener: LeaseListener): void;
  /** Starts to hold leases. `url` is the address of this process. */
  start(url: string): Promise<void>;
  /** Writes a row that must reach the disk, to show that writes work. */
  probe(tx: Writer): Promise<unknown>;
  /** Counts the leases. Null if one lease covers everything. */
  count(): LeaseCount | null;
  /** Lists every node with its leases. Null on SQLite, which has one server. */
  listNodes(): Promise<NodeView[] | null>;
  /** Gives back all leases. */
  release(): Promise<void>;
}
