/**
 * What happens by itself, and whether this process is the one that does it: for each environment, and once for all of them (the house). On SQLite
 * one server holds everything for as long as it holds its directory's lease (directory-lease.ts); on PostgreSQL each node holds what it has a lease of
 * (node-lease-holder.ts). Every write of it goes through a store that asks in its own transaction, whatever this process believes.
 */
import type { Nodes } from "../../base/limiter.ts";
import type { FencedStore, Writer } from "../port.ts";

/** Stands among the environments' numbers for what is done once for all of them. */
export const ALL_ENVIRONMENTS = 0;

/** Begins and ends what happens by itself, as it is told. */
export interface LeaseListener {
  /** The environment's, or the house's, is this process's from now on. */
  begin(environmentId: number): Promise<void>;
  /** It is not any more, where it is lost; or soon, once this resolves: then nothing of it runs here. */
  end(environmentId: number, isLost: boolean): Promise<void>;
  /** Another server took all of it over, for good; `by` says which. */
  lost(by: string): void;
  /** What seemed over for a while is this process's still: what it left alone meanwhile is to be looked for. */
  regained(): void;
  /** A removed lock file was made anew. */
  renewed(): void;
}

/** What a room needs that works for each environment. */
export interface LeaseHolder {
  /** Whether the environment's own work may be begun here now. */
  holds(environmentId: number): boolean;
  /** For writes of the environment's own work: each is refused once it is another's. The same one for as long as it stays this process's. */
  storeOf(environmentId: number): FencedStore;
  /** Whether everything is this process's until it ends or loses it all. */
  readonly holdsAll: boolean;
}

/** A node as an owner sees it. */
export interface NodeView {
  id: string;
  host: string;
  pid: number;
  version: string;
  url: string | null;
  startedAt: number;
  seenAt: number;
  /** Whether it was seen lately. */
  live: boolean;
  /** This very process. */
  own: boolean;
  /** Whether it does what is done once for all. */
  house: boolean;
  /** The environments that it runs. */
  environments: number[];
}

/** For metrics and /readyz: what this node holds. */
export interface LeaseCount {
  node: string;
  house: boolean;
  environments: number;
  /** Leases that it took from a node that did not give them back. */
  takeovers: number;
}

export interface LeaseManager extends LeaseHolder {
  /** Who runs everything instead of this process, in words; null while it may run. */
  readonly lostTo: string | null;
  /** With whom limits are shared. */
  readonly nodes: Nodes;
  /** Whom to tell from now on. */
  watch(keeper: LeaseListener): void;
  /** Begins; `url` is where this process listens. */
  start(url: string): Promise<void>;
  /** A write that reaches the disk. */
  probe(tx: Writer): Promise<unknown>;
  /** null: one process does it all. */
  count(): LeaseCount | null;
  /** Every node and what it holds; null: there are none. */
  listNodes(): Promise<NodeView[] | null>;
  /** Gives back what is held. */
  release(): Promise<void>;
}
