/**
 * Implements the store on PostgreSQL. One node writes an environment at a time, in groups, and reads have their own connections. The store recovers by itself after
 * an outage. It notifies this process's listeners of changes by other nodes and by SQL of other programs.
 */
import { type Clock, Loop, systemClock } from "../../base/clock.ts";
import type { DatabaseUrl } from "../../base/database-url.ts";
import type { DiskSpace } from "../disk-space.ts";
import { GroupCommit } from "../group-commit/group-commit.ts";
import { ScopedGroups } from "../group-commit/scoped-groups.ts";
import { CommitListeners } from "../group-commit/transaction.ts";
import {
  type BatchOptions,
  type BatchWork,
  type ChangedTopics,
  EVERYTHING,
  type Fence,
  type FencedStore,
  type Origin,
  type Reader,
  type Store,
  StoreUnavailable,
  type Topic,
  type Writer,
  type WriteScope,
} from "../port.ts";
import { hearChannel } from "./channel-listener.ts";
import { makeDiskSpace } from "./disk-space.ts";
import { ConnectionLost, NoRoom } from "./error.ts";
import { PostgresGroup } from "./group.ts";
import { PostgresLiveness, LOOK_EVERY_MS as SILENCE_EVERY_MS } from "./liveness.ts";
import { migrateServer, type PostgresMigrationOptions } from "./migrate.ts";
import { CHANGES_CHANNEL, readNotice } from "./notification.ts";
import { Readers } from "./reader-pool.ts";
import { type LockLevel, PostgresWriters } from "./writers.ts";

const LOOK_EVERY_MS = 1_000;
/** After this time without a notification, a node sends itself one. After DEAF_AFTER_MS, it listens on a new connection. */
const ASK_AFTER_MS = 5_000;
const DEAF_AFTER_MS = 12_000;
const READ_ONLY = "The database accepted no writes, so the service connects again.";

interface PostgresOptions extends PostgresMigrationOptions {
  clock: Clock;
  /** Receives the size of every committed group, for metrics. */
  onGroup?: (size: number) => void;
  /** Receives how long each group waited for a lock. */
  onLock?: (waitedMs: number, level: LockLevel) => void;
  /** Receives a sentence when the database cannot be used, and null when it can be used again. */
  onTrouble?: (trouble: string | null) => void;
}

/** A PostgreSQL store, with the members that only a cluster needs. */
export interface PostgresStore extends Store {
  /** Identifies this process among all that write to the database. */
  readonly node: string;
  /**
   * The number of open connections, without the listening one, of reads that wait for a connection, and of groups of writes that have one or wait for
   * one.
   */
  readonly pool: { connections: number; waitingReads: number; runningGroups: number; waitingGroups: number };
}

/** Connects, and creates or migrates the schema. Throws StoreUnavailable, UnfitServer or MigrationRefused. */
export async function openPostgres(place: DatabaseUrl, options: PostgresOptions): Promise<PostgresStore> {
  await migrateServer(place, options.clock, options);
  const store = new OpenPostgres(place, options);
  try {
    await store.hear();
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

class OpenPostgres implements PostgresStore {
  readonly node = crypto.randomUUID();
  readonly #place: DatabaseUrl;
  readonly #writers: PostgresWriters;
  readonly #groups: ScopedGroups;
  readonly #readers: Readers;
  readonly #silence: PostgresLiveness;
  readonly #space: DiskSpace;
  readonly #listeners = new CommitListeners();
  readonly #watchers = new Set<(seen: { foreignChange: boolean }) => void>();
  readonly #checks: Loop;
  /** Checks for overdue answers, in real time under any clock and even without watchers. */
  readonly #overdue = new Loop({
    clock: systemClock,
    everyMs: SILENCE_EVERY_MS,
    turn: async () => this.#checkForAnswers(),
    onError(error) {
      throw error;
    },
  });
  readonly #onTrouble: (trouble: string | null) => void;
  #stopHearing: () => Promise<void> = async () => undefined;
  #heardMs = systemClock.monotonicMs();
  #foreignChange = false;
  #trouble: string | null = null;
  #isReadOnly = false;
  #closed = false;

  constructor(
    place: DatabaseUrl,
    {
      clock,
      onGroup = () => undefined,
      onLock = () => undefined,
      onTrouble = () => undefined,
    }: PostgresOptions,
  ) {
    this.#place = place;
    this.#onTrouble = onTrouble;
    this.#silence = new PostgresLiveness(place);
    this.#writers = new PostgresWriters({
      server: this.#silence,
      node: this.node,
      onLock,
      onTrouble: (trouble) => this.#logTrouble(trouble),
      // If the group was stored, its notification has this node's ID, which this node ignores. So it counts as a foreign change.
      onUnknown: () => {
        this.#foreignChange = true;
      },
      onRefused: (error) => (error instanceof NoRoom ? this.#space.recordFull() : this.#recordReadOnly()),
    });
    this.#space = makeDiskSpace(
      (work) => this.read(work),
      (trouble) => this.#logTrouble(trouble),
    );
    this.#readers = new Readers(this.#silence);
    void this.#overdue.start(SILENCE_EVERY_MS);
    const report = {
      onGroup,
      onChanges: (changes: ChangedTopics) => this.#listeners.notify(changes),
      onEnd: (error: unknown) => {
        if (error === null) this.#space.recordSuccess();
      },
    };
    this.#groups = new ScopedGroups(
      (scope) => new GroupCommit(new PostgresGroup(this.#writers, scope), report),
    );
    this.#checks = new Loop({
      clock,
      everyMs: LOOK_EVERY_MS,
      turn: async () => this.#checkAll(),
      onError(error) {
        throw error;
      },
    });
  }

  /** Listens for changes of other nodes, and again after each lost connection. Throws StoreUnavailable. */
  async hear(): Promise<void> {
    this.#heardMs = systemClock.monotonicMs();
    const stop = await hearChannel(this.#place, CHANGES_CHANNEL, {
      onNotice: (notice) => this.#hearOthers(notice),
      // Notifications are missing from the time without a connection, so this counts as a foreign change.
      onBegin: () => {
        this.#foreignChange = true;
      },
    });
    if (this.#closed) return await stop();
    const stopEarlier = this.#stopHearing;
    this.#stopHearing = stop;
    this.#foreignChange = false;
    void stopEarlier();
  }

  read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("The store is closed."));
    return this.#readers.read(work);
  }

  write<Result>(origin: Origin, work: (tx: Writer) => Promise<Result>, scope?: WriteScope): Promise<Result> {
    return this.#groups.add(origin, work, { scope });
  }

  batchWrites<Draft, Result>(
    origin: Origin,
    work: BatchWork<Draft, Result>,
    { prefetch, scopeOf }: BatchOptions<Draft> = {},
  ): (draft: Draft) => Promise<Result> {
    return (draft) => this.#groups.addDraft(origin, work, draft, { prefetch, scope: scopeOf?.(draft) });
  }

  withFence(fence: Fence, scope?: WriteScope): FencedStore {
    /** The version at which the fence of an environment held. No process takes its lease without a write there, which changes the version. */
    let heldAt: number | null = null;
    const isOfEnvironment = scope !== undefined && scope !== EVERYTHING;
    return {
      read: (work) => this.read(work),
      write: (origin, work, own = scope) => this.#groups.add(origin, work, { fence, scope: own }),
      vacuumStep: () => this.vacuumStep(),
      fenceHolds: async (tx) => {
        const version = isOfEnvironment ? tx.foreignVersion : null;
        if (version !== null && version === heldAt) return true;
        const holds = await this.#fenceHolds(fence, tx);
        heldAt = holds ? version : null;
        return holds;
      },
    };
  }

  async fenceHolds(): Promise<boolean> {
    return true;
  }

  async #fenceHolds(fence: Fence, tx: Reader): Promise<boolean> {
    try {
      await fence(tx);
      return true;
    } catch (error) {
      if (error instanceof ConnectionLost) throw error;
      return false;
    }
  }

  listen(work: (changes: ChangedTopics) => void, topics?: readonly Topic[]): () => void {
    return this.#listeners.add(work, topics);
  }

  get pool(): PostgresStore["pool"] {
    const open = [...this.#writers.connections, ...this.#readers.connections].filter(({ lost }) => !lost);
    const { running, waiting } = this.#writers.pool.groups;
    return {
      connections: open.length,
      waitingReads: this.#readers.waiting,
      runningGroups: running,
      waitingGroups: waiting,
    };
  }

  get trouble(): string | null {
    return this.#trouble;
  }

  watch(work: (seen: { foreignChange: boolean }) => void): () => void {
    this.#watchers.add(work);
    if (this.#watchers.size === 1) void this.#checks.start();
    return () => {
      this.#watchers.delete(work);
      if (this.#watchers.size === 0) void this.#checks.stop();
    };
  }

  /** Does nothing, because the server vacuums its own files. */
  async vacuumStep(): Promise<boolean> {
    return false;
  }

  async warm(): Promise<void> {}

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#groups.close();
    this.#closed = true;
    await this.#checks.stop();
    await this.#readers.close();
    await this.#writers.close();
    await this.#overdue.stop();
    this.#silence.stop();
    await this.#stopHearing();
  }

  #recordReadOnly(): void {
    this.#isReadOnly = true;
  }

  #checkForAnswers(): undefined {
    // Closes the connections that write. New ones may reach the primary, or get a changed setting that open sessions do not.
    if (this.#isReadOnly) for (const one of this.#writers.connections) one.giveUp(READ_ONLY);
    this.#isReadOnly = false;
    this.#silence.check([...this.#writers.connections, ...this.#readers.connections]);
    this.#readers.closeIdle();
    this.#writers.pool.closeIdle();
    if (!this.#closed) this.#space.check();
  }

  #checkAll(): undefined {
    this.#checkForDeafness();
    const foreignChange = this.#foreignChange;
    this.#foreignChange = false;
    for (const work of [...this.#watchers]) work({ foreignChange });
  }

  /** Detects a listening connection that was cut off without an error. */
  #checkForDeafness(): void {
    const silentMs = systemClock.monotonicMs() - this.#heardMs;
    if (silentMs < ASK_AFTER_MS) return;
    const notice = JSON.stringify({ node: this.node });
    const asked = this.read((tx) => tx.get("SELECT pg_notify(?1, ?2)", CHANGES_CHANNEL, notice));
    void asked.catch(() => undefined);
    if (silentMs < DEAF_AFTER_MS) return;
    void this.hear().then(
      () => {
        this.#foreignChange = true;
      },
      // The earlier connection may recover, and the next check listens again.
      () => undefined,
    );
  }

  #hearOthers(notice: string): void {
    this.#heardMs = systemClock.monotonicMs();
    const { node, topics } = readNotice(notice);
    if (node === this.node) return;
    if (topics === undefined) this.#foreignChange = true;
    else this.#listeners.notify(new Map(topics));
  }

  #logTrouble(trouble: string | null): void {
    // A write that needs no new space can succeed on a full disk, so the disk's trouble stays.
    const shown = trouble ?? this.#space.trouble;
    if (shown === this.#trouble) return;
    this.#trouble = shown;
    this.#onTrouble(shown);
  }
}
