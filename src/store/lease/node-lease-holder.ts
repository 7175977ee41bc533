/**
 * Holds the leases of one node on PostgreSQL: one for each environment, and one for the work of all environments. Each has an epoch and an end in the
 * database's time. The node renews its leases every few seconds, takes free ones, and gives back more than its share. It trusts a lease for a shorter
 * time than other nodes do, by the monotonic clock. Each background write also checks the epoch in its own transaction.
 */
import { type Clock, Loop, waitAtMost } from "../../base/clock.ts";
import { newId } from "../../base/id.ts";
import type { Nodes } from "../../base/limiter.ts";
import type { Log } from "../../base/log.ts";
import { formatCount, joinWords } from "../../base/text.ts";
import {
  EVERYTHING,
  type Fence,
  type FencedStore,
  type Reader,
  SERVICE_ROWS,
  type Store,
  StoreUnavailable,
  type Writer,
  type WriteScope,
} from "../port.ts";
import { adviseOn } from "../postgres/connection-advice.ts";
import {
  ALL_ENVIRONMENTS,
  type LeaseCount,
  type LeaseListener,
  type LeaseManager,
  type NodeView,
} from "./lease-holder.ts";
import {
  type Found,
  giveBackAll,
  hasLease,
  LEASE_MS,
  type LeaseRow,
  listNodes,
  lookAtLeases,
  RENEW_EVERY_MS,
  readDatabaseTime,
  takeLease,
} from "./node-lease.ts";

/** The time by which this node considers its lease expired earlier than other nodes do. */
const MARGIN_MS = 1_500;
/** The time after which this node tries to take another node's expired lease. */
const LATE_MS = 50;
/** The wait after a turn that failed, and at least after any other. A lease then outlasts two turns that fail. */
const AGAIN_MS = 1_000;

interface Held {
  epoch: number;
  store: FencedStore;
}

interface NodeDeps {
  store: Store;
  clock: Clock;
  log: Log;
  /** The configured public origin. Null without one. */
  baseUrl: string | null;
  /** Reads the database's time in milliseconds. */
  readNow?: (tx: Reader) => Promise<number>;
}

export class NodeLeaseManager implements LeaseManager {
  readonly holdsAll = false;
  readonly lostTo = null;
  readonly #id: string;
  readonly #deps: Required<NodeDeps>;
  readonly #loop: Loop;
  readonly #held = new Map<number, Held>();
  /** Leases to give back. The value is false while work of the environment still runs here. */
  readonly #leaving = new Map<number, boolean>();
  /** The last call of the listener for each environment. The next call waits for it. */
  readonly #following = new Map<number, Promise<void>>();
  readonly #lostStore: FencedStore;
  readonly #sharedStore: FencedStore;
  readonly #unlisten: () => void;
  #listener: LeaseListener | null = null;
  #url: string | null = null;
  #validUntilMs = Number.NEGATIVE_INFINITY;
  #takeovers = 0;
  #nodes: Nodes = { live: 1 };

  constructor(deps: NodeDeps) {
    const { store, clock, log } = deps;
    this.#deps = { readNow: readDatabaseTime, ...deps };
    this.#id = newId("nod", clock.now());
    this.#loop = new Loop({
      clock,
      everyMs: RENEW_EVERY_MS,
      turn: () =>
        this.#turn().catch((error: unknown) => {
          if (this.#loop.running)
            log.warn("the leases of this node cannot be renewed", {
              cause: (error as Error).message,
              todo: adviseOn(error),
            });
          return AGAIN_MS;
        }),
      onError(error) {
        throw error;
      },
    });
    this.#lostStore = store.withFence(async () => {
      throw new StoreUnavailable("This node no longer runs this environment.");
    });
    // Modules that work for all environments get their store only once, so this store looks up the current lease at each call.
    const current = (): FencedStore => this.#held.get(ALL_ENVIRONMENTS)?.store ?? this.#lostStore;
    this.#sharedStore = {
      read: (work) => store.read(work),
      write: (origin, work, scope) => current().write(origin, work, scope),
      vacuumStep: (options) => current().vacuumStep(options),
      fenceHolds: (tx) => current().fenceHolds(tx),
    };
    this.#unlisten = store.listen(() => this.#loop.wake(), ["environment", "lease"]);
  }

  holds(environmentId: number): boolean {
    return this.#held.has(environmentId) && this.#deps.clock.monotonicMs() < this.#validUntilMs;
  }

  storeOf(environmentId: number): FencedStore {
    if (environmentId === ALL_ENVIRONMENTS) return this.#sharedStore;
    return this.#held.get(environmentId)?.store ?? this.#lostStore;
  }

  get nodes(): Nodes {
    const known = (): Nodes => this.#nodes;
    return {
      get live() {
        return known().live;
      },
    };
  }

  watch(listener: LeaseListener): void {
    this.#listener = listener;
  }

  /** Resolves when the work of the first leases has begun. */
  async start(url: string): Promise<void> {
    this.#url = url;
    await this.#loop.start();
    await Promise.all(this.#following.values());
  }

  probe(tx: Writer): Promise<unknown> {
    tx.suppressWakeups();
    return tx.run("UPDATE node SET probes = probes + 1 WHERE id = ?1", this.#id);
  }

  count(): LeaseCount {
    const environments = [...this.#held.keys()].filter(
      (id) => id !== ALL_ENVIRONMENTS && this.holds(id),
    ).length;
    return { node: this.#id, house: this.holds(ALL_ENVIRONMENTS), environments, takeovers: this.#takeovers };
  }

  listNodes(): Promise<NodeView[]> {
    const { store, readNow } = this.#deps;
    return store.read(async (tx) => listNodes(tx, this.#id, await readNow(tx)));
  }

  /** Gives back all leases. All background work must have ended. */
  async release(): Promise<void> {
    this.#unlisten();
    await this.#loop.stop();
    this.#held.clear();
    // If this fails, other nodes take the leases when they expire.
    await this.#deps.store
      .write("app", (tx) => giveBackAll(tx, this.#id), SERVICE_ROWS)
      .catch(() => undefined);
  }

  async #turn(): Promise<number> {
    const { store, clock, baseUrl, readNow } = this.#deps;
    const askedMs = clock.monotonicMs();
    const held = new Map([...this.#held].map(([environmentId, { epoch }]) => [environmentId, epoch]));
    const known = this.#validUntilMs > Number.NEGATIVE_INFINITY;
    const about = { id: this.#id, url: this.#url, baseUrl: baseUrl ?? "" };
    const believed = { ...about, known, held, leaving: new Map(this.#leaving) };
    const found = await store.write(
      "app",
      async (tx) => lookAtLeases(tx, { ...believed, clockAt: clock.now() }, readNow, SERVICE_ROWS),
      SERVICE_ROWS,
    );
    const seemedOver = known && clock.monotonicMs() >= this.#validUntilMs;
    // Counts from before the request, so that this end is never later than the database's.
    this.#validUntilMs = askedMs + LEASE_MS - MARGIN_MS;
    // A lease whose environment is held up must not delay the renewal of the others. If it is taken later, it counts as free until the turn after.
    const taking = Promise.all(found.take.map((lease) => this.#takeFree(lease, found)));
    await waitAtMost(clock, RENEW_EVERY_MS, taking);
    this.#follow(found);
    if (seemedOver && clock.monotonicMs() < this.#validUntilMs) this.#listener?.regained();
    // Counts from the begin of this turn, so that a slow turn does not delay the next.
    const nextMs = Math.max(AGAIN_MS, askedMs + RENEW_EVERY_MS - clock.monotonicMs());
    return Math.min(nextMs, (found.nextEndMs ?? RENEW_EVERY_MS) + LATE_MS);
  }

  /** Takes a free lease and adds it to `found`. A lease that cannot be taken is free at the next turn, too. */
  async #takeFree(lease: LeaseRow, found: Found): Promise<void> {
    const { store, log, readNow } = this.#deps;
    const { environmentId } = lease;
    try {
      const work = async (tx: Writer) => takeLease(tx, this.#id, lease, (await readNow(tx)) + LEASE_MS);
      const taken = await store.write("app", work, scopeOf(environmentId));
      if (taken === null) return;
      found.own.set(environmentId, taken.epoch);
      if (taken.isTakeover) found.takenOver.push(environmentId);
    } catch (error) {
      log.warn("a free lease cannot be taken", { environmentId, cause: (error as Error).message });
    }
  }

  #follow({ own, takenOver, giveBack, live }: Found): void {
    this.#nodes = { live: Math.max(1, live.length) };
    const ended = [...this.#held].filter(([id, { epoch }]) => own.get(id) !== epoch).map(([id]) => id);
    const givenBack = ended.filter((id) => this.#leaving.get(id) === true);
    for (const id of ended) this.#recordLoss(id);
    const taken = [...own].filter(([id]) => !this.#held.has(id));
    for (const [id, epoch] of taken) this.#take(id, epoch);
    for (const id of giveBack) if (!this.#leaving.has(id)) this.#leave(id);
    this.#takeovers += takenOver.length;
    if (ended.length + taken.length === 0) return;
    const changes: [ids: number[], words: (leases: string) => string][] = [
      [takenOver, (leases) => `took over ${leases} from a node that stopped responding`],
      [
        taken.map(([id]) => id).filter((id) => !takenOver.includes(id)),
        (leases) => `started to run ${leases}`,
      ],
      [givenBack, (leases) => `gave ${leases} to other nodes`],
      [
        ended.filter((id) => !givenBack.includes(id)),
        (leases) => `no longer runs ${leases}, which another node took over or an owner deleted`,
      ],
    ];
    const said = changes.flatMap(([ids, words]) => (ids.length === 0 ? [] : [words(formatLeases(ids))]));
    this.#deps.log.info(`this node ${joinWords(said)}`, { runs: formatLeases([...this.#held.keys()]) });
  }

  #take(environmentId: number, epoch: number): void {
    const fence: Fence = async (tx) => {
      if (await hasLease(tx, environmentId, epoch, this.#id)) return;
      if (this.#held.get(environmentId)?.epoch === epoch) this.#recordLoss(environmentId);
      throw new StoreUnavailable(
        "This node no longer runs this environment, because another one took it over.",
      );
    };
    const store = this.#deps.store.withFence(fence, scopeOf(environmentId));
    this.#held.set(environmentId, { epoch, store });
    this.#notify(environmentId, (listener) => listener.begin(environmentId));
  }

  #recordLoss(environmentId: number): void {
    this.#held.delete(environmentId);
    // The listener was already asked to end the work of a lease that is leaving.
    if (!this.#leaving.delete(environmentId))
      this.#notify(environmentId, (listener) => listener.end(environmentId, true));
  }

  /** Stops an environment's work, then gives its lease back. */
  #leave(environmentId: number): void {
    this.#leaving.set(environmentId, false);
    this.#notify(environmentId, async (listener) => {
      await listener.end(environmentId, false);
      if (!this.#leaving.has(environmentId)) return;
      this.#leaving.set(environmentId, true);
      this.#loop.wake();
    });
  }

  #notify(environmentId: number, call: (listener: LeaseListener) => Promise<void>): void {
    const listener = this.#listener;
    if (listener === null) return;
    const before = this.#following.get(environmentId) ?? Promise.resolve();
    const after = before
      .then(() => call(listener))
      .catch((error) => this.#deps.log.error("a lease was not followed", { environmentId, error }));
    this.#following.set(environmentId, after);
  }
}

/** Formats leases for the log, such as `2 environments and the tasks for all environments`. */
function formatLeases(ids: readonly number[]): string {
  const count = ids.filter((id) => id !== ALL_ENVIRONMENTS).length;
  const words = count === 0 ? [] : [count === 1 ? "1 environment" : `${formatCount(count)} environments`];
  if (ids.includes(ALL_ENVIRONMENTS)) words.push("the tasks for all environments");
  return words.length === 0 ? "nothing" : joinWords(words);
}

/** The scope of the work of a lease. The lease of the work for all environments excludes all writes while it is taken. */
function scopeOf(environmentId: number): WriteScope {
  return environmentId === ALL_ENVIRONMENTS ? EVERYTHING : environmentId;
}
