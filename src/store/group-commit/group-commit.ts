/**
 * Group commit: every write that waits when the writer is free runs inside one transaction, and all are answered after the one durable
 * commit. The group runs plainly first; when anything in it fails, it is undone and run again with a savepoint a work, so that one that
 * throws is undone alone. It never lets two transactions overlap. What begins and ends a transaction is its database's.
 */
import { systemClock } from "../../base/clock.ts";
import {
  type BatchWork,
  type ChangedTopics,
  type Fence,
  type Origin,
  type Prefetch,
  StoreUnavailable,
  WorkUndone,
  type Writer,
} from "../port.ts";
import type { CommitResult, GroupDatabase, WorkWatch } from "./group-database.ts";
import { GroupTransaction } from "./group-transaction.ts";
import { type Outcome, type QueuedWork, rejectAll, settleAll, takeBatch } from "./queued-work.ts";
import { CommitEffects, GroupWriter, type Shared } from "./transaction.ts";

interface GroupResult extends CommitResult {
  outcomes: readonly Outcome[];
}

/** A bound on one transaction, so that a burst cannot make the first writer wait for the last. */
const MAX_GROUP = 512;
/** Where a group begins behind the one before it, half of those who wait are one: they are written while the others are read. So few are one whole. */
const SMALL_GROUP = 64;
/** Of a group that its database lost: with the first one. */
const MAX_COMMIT_ATTEMPTS = 3;

/** Writes of these origins are not captured; what is written by another connection's SQL is. */
const UNCAPTURED: ReadonlySet<Origin> = new Set(["relay", "erasure"]);

export class GroupCommit {
  readonly #database: GroupDatabase;
  readonly #writer: { scheduled: boolean; running: boolean } = { scheduled: false, running: false };
  readonly #onGroup: (size: number) => void;
  readonly #onChanges: (changes: ChangedTopics) => void;
  readonly #onEnd: (error: unknown) => void;
  #waiting: QueuedWork[] = [];
  /** Of the next call: as many as took half a group's time at most lately. After a start each may wait for the disk. */
  #drafts: number;
  /** Of the open transaction: whether what is written now is captured. */
  #captured = true;
  #closed = false;
  #idle: (() => void)[] = [];
  /** Groups that are committed and not durable yet, and their works. */
  #settling = 0;
  #untold = 0;
  /** Resolves once the last of them was told. */
  #told: Promise<void> = Promise.resolve();
  /** The next group's transaction, where it was begun already. */
  #begun: GroupTransaction | null = null;

  /** `onEnd` receives what a group failed with, all of it undone, and null for each group that is durable. */
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
    fence: Fence | null = null,
  ): Promise<Result> {
    return this.addDraft<undefined, Result>(origin, async (tx) => [await work(tx)], undefined, { fence });
  }

  /** Drafts that wait side by side for the same `work` are one call of it, unless it fails. */
  addDraft<Draft, Result>(
    origin: Origin,
    work: BatchWork<Draft, Result>,
    draft: Draft,
    { fence = null, prefetch }: { fence?: Fence | null; prefetch?: Prefetch<Draft> | undefined } = {},
  ): Promise<Result> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("The store is closed."));
    return new Promise<unknown>((resolve, reject) => {
      const gathered = {
        work: work as QueuedWork["work"],
        prefetch: prefetch as Prefetch<unknown> | undefined,
      };
      this.#waiting.push({ origin, fence, ...gathered, draft, resolve, reject, losses: 0 });
      if (this.#begun === null) this.#schedule();
      else if (this.#waiting.length <= this.#most) this.#begun.join(this.#waiting);
    }) as Promise<Result>;
  }

  /** Refuses new writes and resolves when the begun ones are answered. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /**
   * A macrotask, so that every request already read from its socket joins the group; and one more where others came until then, as where many
   * come more are on their way. A lone write waits for nobody.
   */
  #schedule(): void {
    if (this.#writer.scheduled || this.#writer.running) return;
    this.#writer.scheduled = true;
    const begin = (): void => {
      this.#writer.scheduled = false;
      void this.#commitGroup();
    };
    const { length } = this.#waiting;
    setImmediate(() => (this.#waiting.length > length ? setImmediate(begin) : begin()));
  }

  /** As many as the next group takes. */
  get #most(): number {
    const all = this.#waiting.length + this.#untold;
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
      const { outcomes, durable } = await this.#runWithRetry(group, committed);
      this.#waiting.unshift(...group.splice(outcomes.length));
      const tell = (): void => {
        this.#onEnd(null);
        settleAll(group, outcomes);
        committed.tell(this.#onChanges);
      };
      if (durable === null && this.#settling === 0) tell();
      else void this.#settle(group, durable, tell);
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

  /** The next group runs meanwhile, as another process's would. */
  async #settle(
    group: readonly QueuedWork[],
    durable: Promise<void> | null,
    tell: () => void,
  ): Promise<void> {
    this.#settling += 1;
    this.#untold += group.length;
    // Whoever remembers what came last is told of groups in their order.
    const [before, over] = [this.#told, Promise.withResolvers<void>()];
    this.#told = over.promise;
    try {
      await durable;
      await before;
      tell();
    } catch (error) {
      await before;
      const again = this.#database.mayRunAgain(error)
        ? group.filter(({ losses }) => losses + 1 < MAX_COMMIT_ATTEMPTS)
        : [];
      for (const waiting of again) waiting.losses += 1;
      rejectAll(
        group.filter((waiting) => !again.includes(waiting)),
        error,
      );
      this.#waiting.unshift(...again);
    }
    over.resolve();
    this.#settling -= 1;
    this.#untold -= group.length;
    this.#continue();
  }

  #continue(): void {
    if (this.#waiting.length > 0) this.#schedule();
    else if (this.#isIdle) for (const resolve of this.#idle.splice(0)) resolve();
  }

  get #isIdle(): boolean {
    return this.#waiting.length === 0 && !this.#writer.running && this.#settling === 0;
  }

  /** Runs it again where its database lost it whole and would take it now. */
  async #runWithRetry(group: readonly QueuedWork[], committed: CommitEffects): Promise<GroupResult> {
    for (let run = 1; ; run++) {
      try {
        return (
          (await this.#runGroup(group, { careful: false }, committed)) ??
          (await this.#runGroup(group, { careful: true }, committed)) ?? { outcomes: [], durable: null }
        );
      } catch (error) {
        if (run === MAX_COMMIT_ATTEMPTS || !this.#database.mayRunAgain(error)) throw error;
      }
    }
  }

  /**
   * One transaction for the group, or for the first works of it that its time suffices for. Not careful: without savepoints, which would copy
   * every page each work touches; answers null when something in it failed, with all of it undone. Throws when the transaction as a whole is
   * lost; nothing is kept then either.
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
    const turn = this.#begun ?? (database.beginsAhead ? new GroupTransaction(database) : null);
    this.#begun = null;
    turn?.close(group);
    const version = await (turn?.version ?? database.begin());
    const watch = database.watch();
    // Real time under any clock, as that is what is held.
    const endMs = systemClock.monotonicMs() + database.limit.groupMs;
    this.#captured = true;
    const transaction = careful ? null : committed.sharedTransaction(() => this.#setCaptured(false));
    const shared = { version, committed, transaction };
    try {
      while (outcomes.length < group.length) {
        const beganMs = systemClock.monotonicMs();
        if (outcomes.length > 0 && beganMs >= endMs) break;
        const { origin, fence, work, drafts } = takeBatch(group, outcomes.length, careful ? 1 : this.#drafts);
        const refused = fence === null || passed.has(fence) ? null : await this.#ask(fence);
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
          // A work that failed alone has its answer already.
          return group.length === 1 && outcome !== null ? { outcomes: [outcome], durable: null } : null;
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
      const works = outcomes.length;
      const isFollowed = works < group.length || this.#waiting.length > 0;
      const kept = database.commit(committed.changes, { isQuiet: committed.isQuiet, isFollowed, works });
      if (works === group.length) this.#beginNext();
      return { outcomes, ...(await kept) };
    } catch (error) {
      // Something that a work had posted.
      if (careful || error instanceof StoreUnavailable) throw error;
      committed.clear();
      return null;
    }
  }

  /** The next group's transaction begins behind the commit, without waiting for its answer. */
  #beginNext(): void {
    if (this.#database.beginsAhead && this.#waiting.length > 0) this.#begun = this.#begin();
  }

  #begin(): GroupTransaction {
    const turn = new GroupTransaction(this.#database);
    turn.ask(this.#waiting.slice(0, this.#most));
    return turn;
  }

  #adaptBatchSize(drafts: number, tookMs: number): void {
    const { groupMs, mostDrafts } = this.#database.limit;
    const fit = Math.floor((drafts * groupMs) / 2 / tookMs);
    if (drafts > 1 && fit < drafts) this.#drafts = Math.max(1, fit);
    else if (drafts === this.#drafts && fit >= drafts) this.#drafts = Math.min(mostDrafts, drafts * 2);
  }

  /** null when the fence lets its works pass. */
  async #ask(fence: Fence): Promise<Outcome | null> {
    try {
      await fence(this.#database.connection);
      return null;
    } catch (error) {
      if (!this.#database.connection.inTransaction) throw error;
      return { ok: false, error };
    }
  }

  /** How the work ended; null when it went on after a failed attempt that nothing undid. */
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
      // A careful attempt has found it out by itself.
      const first = shared.transaction === null ? error : connection.firstOf(error);
      // A full disk and its like make SQLite undo the whole transaction by itself: then nobody's work is kept.
      if (!connection.inTransaction) throw first;
      // It may have failed of what the attempt left behind.
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
