/**
 * Commits the writes that wait together in one transaction and resolves them after its durable commit. A group first runs without savepoints. If
 * anything fails, the group is rolled back and runs again with a savepoint for each work, so that only the failed one is undone. Transactions never
 * overlap.
 */
import { systemClock } from "../../base/clock.ts";
import {
  type BatchWork,
  type ChangedTopics,
  EVERYTHING,
  type Fence,
  type Origin,
  type Prefetch,
  StoreUnavailable,
  WorkUndone,
  type Writer,
  type WriteScope,
} from "../port.ts";
import type { CommitResult, GroupDatabase, WorkWatch } from "./group-database.ts";
import { GroupTransaction } from "./group-transaction.ts";
import {
  type Outcome,
  type QueuedWork,
  rejectAll,
  resolveAll,
  takeBatch,
  takeOverdue,
} from "./queued-work.ts";
import { CommitEffects, GroupWriter, type Shared } from "./transaction.ts";

/** The limits of a work: it runs only while the fence holds, and changes only rows of its scope. */
export interface WorkGuards {
  fence?: Fence | null;
  scope?: WriteScope | undefined;
}

export interface DraftGuards<Draft> extends WorkGuards {
  prefetch?: Prefetch<Draft> | undefined;
}

interface GroupResult extends CommitResult {
  outcomes: readonly Outcome[];
}

/** Limits the works of one transaction, so that the first of a burst does not wait for the last. */
const MAX_GROUP = 512;
/**
 * The most waiting works that make one group. If the database can begin a group before the previous commit is durable, more are split in half, so
 * that one half is written while the other is read.
 */
const SMALL_GROUP = 64;
/** The most optimistic groups whose transactions have not ended. */
const MOST_OPTIMISTIC = 2;
/** Attempts to commit a group after a transient database error, including the first. An optimistic transaction does not count. */
const MAX_COMMIT_ATTEMPTS = 3;

/** The origins whose writes change capture skips. It does capture SQL of other connections. */
const UNCAPTURED: ReadonlySet<Origin> = new Set(["relay", "erasure", "move"]);

export class GroupCommit {
  readonly #database: GroupDatabase;
  /** `committing` is true while a commit is under way and the next group's transaction may begin but has not. */
  readonly #writer = { scheduled: false, running: false, committing: false };
  readonly #onGroup: (size: number) => void;
  readonly #onChanges: (changes: ChangedTopics) => void;
  readonly #onEnd: (error: unknown) => void;
  #waiting: QueuedWork[] = [];
  /** The number of works that were added. */
  #added = 0;
  /**
   * The number of drafts that the next call gets. The call must take at most half of a group's duration. The number begins low, because the first
   * reads wait for the disk.
   */
  #drafts: number;
  /** True if the open transaction's writes are captured now. */
  #captured = true;
  #closed = false;
  #idle: (() => void)[] = [];
  /** The number of groups that are committed but not durable yet. */
  #pendingGroups = 0;
  /** The number of works in these groups. */
  #pendingWorks = 0;
  /** Resolves when the callers of the last of these groups have their results. */
  #reported: Promise<void> = Promise.resolve();
  /** The optimistic groups whose transactions have not ended, and the number of works in the last of them. */
  readonly #optimistic = { groups: 0, works: 0 };
  /** True if the transaction of the last run was optimistic. */
  #isOptimistic = false;
  /** The next group's transaction, if it began before the previous group was durable. */
  #begun: GroupTransaction | null = null;

  /** `onEnd` receives null for each durable group, and the error of each group that was undone. */
  constructor(
    database: GroupDatabase,
    {
      onGroup,
      onChanges,
      onEnd = () => undefined,
    }: {
      onGroup: (size: number) => void;
      onChanges: (changes: ChangedTopics) => void;
      onEnd?: (error: unknown) => void;
    },
  ) {
    this.#database = database;
    this.#onEnd = onEnd;
    this.#drafts = database.limit.firstDrafts;
    this.#onGroup = onGroup;
    this.#onChanges = onChanges;
  }

  add<Result>(
    origin: Origin,
    work: (tx: Writer) => Promise<Result>,
    guards: WorkGuards = {},
  ): Promise<Result> {
    return this.addDraft<undefined, Result>(origin, async (tx) => [await work(tx)], undefined, guards);
  }

  /** Adds a draft. Adjacent drafts of the same `work` are one call of it, unless it fails. */
  addDraft<Draft, Result>(
    origin: Origin,
    work: BatchWork<Draft, Result>,
    draft: Draft,
    { fence = null, scope = EVERYTHING, prefetch }: DraftGuards<Draft> = {},
  ): Promise<Result> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("The store is closed."));
    return new Promise<unknown>((resolve, reject) => {
      this.#waiting.push({
        origin,
        fence,
        scope,
        work: work as QueuedWork["work"],
        prefetch: prefetch as Prefetch<unknown> | undefined,
        draft,
        order: this.#added++,
        addedMs: this.#database.limit.waitMs === Number.POSITIVE_INFINITY ? 0 : systemClock.monotonicMs(),
        resolve,
        reject,
        losses: 0,
      });
      if (this.#begun === null) this.#schedule();
      else if (this.#waiting.length <= this.#most) this.#begun.join(this.#waiting);
    }) as Promise<Result>;
  }

  /** Rejects new writes and resolves when the accepted ones have their results. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /**
   * Starts a group in the next macrotask, so that every request that was already read from its socket joins it. If works arrived meanwhile, it waits
   * one more macrotask, because more are likely. A single write does not wait. During a commit it only begins the transaction.
   */
  #schedule(): void {
    const writer = this.#writer;
    if (writer.scheduled || (writer.running && !writer.committing) || this.#mustGather) return;
    writer.scheduled = true;
    const begin = (): void => {
      writer.scheduled = false;
      if (writer.committing) this.#beginNext();
      else if (!writer.running) void this.#commitGroup();
    };
    const { length } = this.#waiting;
    setImmediate(() => (this.#waiting.length > length ? setImmediate(begin) : begin()));
  }

  /**
   * True while the next group waits for an optimistic one to end. It does not wait if it is as large, because then both are on the way to the
   * database at the same time, and no more groups are needed.
   */
  get #mustGather(): boolean {
    const { groups, works } = this.#optimistic;
    return groups === MOST_OPTIMISTIC || (groups > 0 && this.#waiting.length < works);
  }

  /** The maximum number of works in the next group. */
  get #most(): number {
    const all = this.#waiting.length + this.#pendingWorks;
    return this.#database.beginsAhead && all > SMALL_GROUP
      ? Math.min(MAX_GROUP, Math.ceil(all / 2))
      : MAX_GROUP;
  }

  async #commitGroup(): Promise<void> {
    this.#writer.running = true;
    if (this.#database.beginsAhead) {
      this.#begun ??= this.#begin();
      await this.#begun.version.catch(() => undefined);
    }
    const group = this.#waiting.splice(0, this.#most);
    const committed = new CommitEffects();
    try {
      const { outcomes, durable, ended } = await this.#runWithRetry(group, committed);
      this.#waiting.unshift(...group.splice(outcomes.length));
      if (ended !== undefined) void this.#gatherUntil(ended, group.length);
      const report = (): void => {
        this.#onEnd(null);
        resolveAll(group, outcomes);
        committed.notify(this.#onChanges);
      };
      if (durable === null && this.#pendingGroups === 0) report();
      else void this.#reportWhenDurable(group, durable, report);
    } catch (error) {
      this.#onEnd(error);
      rejectAll(group, error);
    } finally {
      this.#writer.running = false;
    }
    this.#onGroup(group.length);
    if (this.#begun !== null) void this.#commitGroup();
    else this.#continue();
  }

  async #gatherUntil(ended: Promise<void>, works: number): Promise<void> {
    const optimistic = this.#optimistic;
    optimistic.groups += 1;
    optimistic.works = works;
    await ended;
    optimistic.groups -= 1;
    this.#continue();
  }

  /** Waits until a group is durable, and then calls `report`. If the commit was lost, works may run again. The next group runs meanwhile. */
  async #reportWhenDurable(
    group: readonly QueuedWork[],
    durable: Promise<void> | null,
    report: () => void,
  ): Promise<void> {
    this.#pendingGroups += 1;
    this.#pendingWorks += group.length;
    // Groups are reported in their order, because listeners rely on the latest change.
    const [before, ended] = [this.#reported, Promise.withResolvers<void>()];
    this.#reported = ended.promise;
    try {
      await durable;
      await before;
      report();
    } catch (error) {
      await before;
      this.#onEnd(error);
      this.#retryLost(group, error);
    }
    ended.resolve();
    this.#pendingGroups -= 1;
    this.#pendingWorks -= group.length;
    this.#continue();
  }

  /** Puts the works of a lost group back to their place among the waiting ones, and rejects those that were lost too often. */
  #retryLost(group: readonly QueuedWork[], error: unknown): void {
    const mayRetry = this.#database.mayRunAgain(error);
    const [again, rejected]: [QueuedWork[], QueuedWork[]] = [[], []];
    for (const waiting of group) {
      if (mayRetry && waiting.losses + 1 < MAX_COMMIT_ATTEMPTS) again.push(waiting);
      else rejected.push(waiting);
    }
    for (const waiting of again) waiting.losses += 1;
    rejectAll(rejected, error);
    this.#waiting.push(...again);
    this.#waiting.sort((one, other) => one.order - other.order);
  }

  #continue(): void {
    if (this.#waiting.length > 0) this.#schedule();
    else if (this.#isIdle) for (const resolve of this.#idle.splice(0)) resolve();
  }

  get #isIdle(): boolean {
    return this.#waiting.length === 0 && !this.#writer.running && this.#pendingGroups === 0;
  }

  /** Runs the group, and again if the database lost all of it and accepts it now. */
  async #runWithRetry(group: QueuedWork[], committed: CommitEffects): Promise<GroupResult> {
    for (let run = 1; ; ) {
      try {
        return (
          (await this.#runGroup(group, { careful: false }, committed)) ??
          (await this.#runGroup(group, { careful: true }, committed)) ?? { outcomes: [], durable: null }
        );
      } catch (error) {
        if (run === MAX_COMMIT_ATTEMPTS || !this.#database.mayRunAgain(error)) throw error;
        if (!this.#isOptimistic) run += 1;
        rejectAll(this.#takeOverdue(group), error);
        if (group.length === 0) throw error;
      }
    }
  }

  #takeOverdue(group: QueuedWork[]): QueuedWork[] {
    return takeOverdue(group, systemClock.monotonicMs() - this.#database.limit.waitMs);
  }

  /**
   * Runs one transaction for the group, or for as many of its first works as its duration allows. If not `careful`, there are no savepoints, because
   * they would copy every page that a work changes. Returns null if a work failed and everything was rolled back. Throws if the transaction is lost.
   */
  async #runGroup(
    group: readonly QueuedWork[],
    { careful }: { careful: boolean },
    committed: CommitEffects,
  ): Promise<GroupResult | null> {
    const outcomes: Outcome[] = [];
    const passed = new Set<Fence>();
    committed.clear();
    const database = this.#database;
    this.#isOptimistic = false;
    const begun = this.#begun ?? (database.beginsAhead ? new GroupTransaction(database) : null);
    this.#begun = null;
    begun?.close(group);
    const version = await (begun?.version ?? database.begin());
    const isOptimistic = database.expectedVersion !== null;
    this.#isOptimistic = isOptimistic;
    const watch = database.watch();
    // Measures real time, even under a test's clock, because the writer is held for real time.
    const endMs = systemClock.monotonicMs() + database.limit.groupMs;
    this.#captured = true;
    const transaction = careful ? null : committed.sharedTransaction(() => this.#setCaptured(false));
    const shared = { version, committed, transaction };
    try {
      while (outcomes.length < group.length) {
        const beganMs = systemClock.monotonicMs();
        if (outcomes.length > 0 && beganMs >= endMs) break;
        const { origin, fence, work, drafts } = takeBatch(group, outcomes.length, careful ? 1 : this.#drafts);
        const refused = fence === null || passed.has(fence) ? null : await this.#checkFence(fence);
        if (refused !== null) {
          for (const _ of drafts) outcomes.push(refused);
          continue;
        }
        if (fence !== null) passed.add(fence);
        this.#setCaptured(!UNCAPTURED.has(origin));
        const outcome = await this.#runOne((tx) => work(tx, drafts), watch, shared);
        if (outcome === null || (!careful && !outcome.ok)) {
          database.rollBack();
          committed.clear();
          // A single work that failed needs no second run, unless it may have failed because an expectation was wrong.
          const isFinal = group.length === 1 && outcome !== null && !isOptimistic;
          return isFinal ? { outcomes: [outcome], durable: null } : null;
        }
        this.#adaptBatchSize(drafts.length, systemClock.monotonicMs() - beganMs);
        if (!outcome.ok) outcomes.push(outcome);
        else for (let at = 0; at < drafts.length; at++) outcomes.push({ ok: true, value: outcome.value[at] });
      }
    } catch (error) {
      database.rollBack();
      throw error;
    } finally {
      watch.stop();
    }
    try {
      const committing = database.commit(committed.changes, { isQuiet: committed.isQuiet });
      if (database.beginsAhead && !isOptimistic && outcomes.length === group.length) this.#beginNext();
      return { outcomes, ...(await committing) };
    } catch (error) {
      // A posted statement failed, so the group runs again with savepoints to find which one.
      if (careful || error instanceof StoreUnavailable) throw error;
      committed.clear();
      return null;
    } finally {
      this.#writer.committing = false;
    }
  }

  /** Begins the next group's transaction after the commit was sent, without waiting for its response. Without a work, the next one does this. */
  #beginNext(): void {
    const isNeeded = this.#waiting.length > 0;
    if (isNeeded) this.#begun = this.#begin();
    this.#writer.committing = !isNeeded;
  }

  #begin(): GroupTransaction {
    const overdue = this.#takeOverdue(this.#waiting);
    if (overdue.length > 0)
      rejectAll(overdue, new StoreUnavailable("The write waited too long for earlier ones."));
    const begun = new GroupTransaction(this.#database);
    begun.prefetch(this.#waiting.slice(0, this.#most));
    return begun;
  }

  #adaptBatchSize(drafts: number, tookMs: number): void {
    const { groupMs, mostDrafts } = this.#database.limit;
    const fit = Math.floor((drafts * groupMs) / 2 / tookMs);
    if (drafts > 1 && fit < drafts) this.#drafts = Math.max(1, fit);
    else if (drafts === this.#drafts && fit >= drafts) this.#drafts = Math.min(mostDrafts, drafts * 2);
  }

  /** Returns null if the fence holds, otherwise the error for its works. */
  async #checkFence(fence: Fence): Promise<Outcome | null> {
    try {
      await fence(this.#database.connection);
      return null;
    } catch (error) {
      if (!this.#database.connection.inTransaction) throw error;
      return { ok: false, error };
    }
  }

  /** Runs one work. Returns null if the work continued after a failed attempt without a savepoint. */
  async #runOne(
    work: (tx: Writer) => Promise<readonly unknown[]>,
    watch: WorkWatch,
    shared: Shared,
  ): Promise<{ ok: true; value: readonly unknown[] } | { ok: false; error: unknown } | null> {
    const { connection, keys } = this.#database;
    const writer = new GroupWriter(connection, keys, shared);
    const run = () => watch.over(work(writer));
    try {
      const value = await (shared.transaction === null ? writer.attempt(run) : run());
      if (writer.failedAttempt) return null;
      shared.committed.add(writer, { captured: this.#captured });
      return { ok: true, value };
    } catch (error) {
      // An attempt with a savepoint has found the first failure already.
      const first = shared.transaction === null ? error : connection.firstOf(error);
      // SQLite rolls back the transaction by itself, for example on a full disk. Then no work is stored.
      if (!connection.inTransaction) throw first;
      // The error may be a consequence of the failed attempt's writes.
      if (writer.failedAttempt) return null;
      if (first instanceof StoreUnavailable && !(first instanceof WorkUndone)) throw first;
      return { ok: false, error: first };
    } finally {
      writer.end();
    }
  }

  #setCaptured(captured: boolean): void {
    if (captured === this.#captured) return;
    this.#captured = captured;
    this.#database.capture(captured);
  }
}
