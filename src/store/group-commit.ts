/**
 * Group commit: every write that waits when the writer is free runs inside one transaction, and all are answered after the one durable
 * commit. The group runs plainly first; when anything in it fails, it is undone and run again with a savepoint a work, so that one that
 * throws is undone alone. It never lets two transactions overlap.
 */
import { sleep, systemClock } from "../ground/clock.ts";
import type { KeyLog } from "./key-log.ts";
import {
  type Fence,
  type GatheredWork,
  type Origin,
  StoreUnavailable,
  type Touched,
  type Writer,
} from "./port.ts";
import { Committed, isBusy, type SqliteConnection, SqliteWriter, Watch } from "./sqlite-connection.ts";

type Work = GatheredWork<unknown, unknown>;

interface Waiting {
  origin: Origin;
  fence: Fence | null;
  work: Work;
  draft: unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** Where the database stood when it was opened. */
interface Place {
  /** Why it does not any more, as it was found last. */
  readonly trouble: string | null;
  look(): string | null;
}

/** How one work of a group ended, kept until the commit decides. */
type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown };

/** A bound on one transaction, so that a burst cannot make the first writer wait for the last. */
const MAX_GROUP = 512;
/** Drafts of one call of their work, behind which the group looks at its time: at first, and at most, where they take little of it. */
const FIRST_DRAFTS = 8;
const MAX_DRAFTS = 64;
/** And on how long it holds the event loop: the works behind it are the next group. Real time under any clock, as that is what is held. */
const MAX_GROUP_MS = 12;

/**
 * How long a group waits for another process that holds the write lock. A command beside the server holds it for milliseconds. The wait is
 * for a real process, so it is a real one under any clock, and it is never SQLite's own, which would hold the event loop.
 */
const LOCK_WAIT_MS = 1_000;
const LOCK_RETRY_MS: readonly number[] = [1, 2, 5, 10, 15, 20, 25];

/** Writes of these origins are not captured; the flag is down again before the commit, so direct SQL is captured. */
const UNCAPTURED: ReadonlySet<Origin> = new Set(["relay", "erasure"]);

export class GroupCommit {
  readonly #connection: SqliteConnection;
  readonly #writer: { scheduled: boolean; running: boolean } = { scheduled: false, running: false };
  readonly #onGroup: (size: number) => void;
  readonly #onTouch: (touched: Touched) => void;
  readonly #log: KeyLog;
  readonly #place: Place;
  #waiting: Waiting[] = [];
  /** Of the next call: as many as took half a group's time at most lately. After a start each may wait for the disk. */
  #drafts = FIRST_DRAFTS;
  /** Of the open transaction: whether what is written now is captured. */
  #captured = true;
  #version = 0;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(
    connection: SqliteConnection,
    log: KeyLog,
    place: Place,
    { onGroup, onTouch }: { onGroup: (size: number) => void; onTouch: (touched: Touched) => void },
  ) {
    this.#connection = connection;
    this.#log = log;
    this.#place = place;
    this.#onGroup = onGroup;
    this.#onTouch = onTouch;
  }

  add<Result>(
    origin: Origin,
    work: (tx: Writer) => Promise<Result>,
    fence: Fence | null = null,
  ): Promise<Result> {
    return this.addDraft<undefined, Result>(origin, async (tx) => [await work(tx)], undefined, fence);
  }

  /** Drafts that wait side by side for the same `work` are one call of it, unless it fails. */
  addDraft<Draft, Result>(
    origin: Origin,
    work: GatheredWork<Draft, Result>,
    draft: Draft,
    fence: Fence | null = null,
  ): Promise<Result> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("The store is closed."));
    return new Promise<unknown>((resolve, reject) => {
      this.#waiting.push({ origin, fence, work: work as Work, draft, resolve, reject });
      this.#schedule();
    }) as Promise<Result>;
  }

  /** Refuses new writes and resolves when the begun ones are answered. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#waiting.length === 0 && !this.#writer.running) return;
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
    setImmediate(() => {
      if (this.#waiting.length > length) setImmediate(begin);
      else begin();
    });
  }

  async #commitGroup(): Promise<void> {
    const group = this.#waiting.splice(0, MAX_GROUP);
    this.#writer.running = true;
    const committed = new Committed();
    try {
      if (this.#place.trouble !== null) this.#requirePlace();
      const outcomes =
        (await this.#runGroup(group, { careful: false }, committed)) ??
        (await this.#runGroup(group, { careful: true }, committed)) ??
        [];
      this.#waiting.unshift(...group.splice(outcomes.length));
      group.forEach((waiting, index) => {
        const outcome = outcomes[index] as Outcome;
        if (outcome.ok) waiting.resolve(outcome.value);
        else waiting.reject(outcome.error);
      });
    } catch (error) {
      committed.clear();
      const unavailable = asUnavailable(error);
      for (const waiting of group) waiting.reject(unavailable);
    } finally {
      this.#writer.running = false;
    }
    this.#onGroup(group.length);
    committed.tell(this.#onTouch);
    if (this.#waiting.length > 0) this.#schedule();
    else for (const resolve of this.#idle.splice(0)) resolve();
  }

  /**
   * One transaction for the group, or for the first works of it that its time suffices for. Not careful: without savepoints, which would copy every page each work touches; answers null
   * when something in it failed, with all of it undone. Throws when the transaction as a whole is lost; nothing is kept then either.
   */
  async #runGroup(
    group: readonly Waiting[],
    { careful }: { careful: boolean },
    committed: Committed,
  ): Promise<Outcome[] | null> {
    const outcomes: Outcome[] = [];
    const passed = new Set<Fence>();
    committed.clear();
    await this.#begin();
    const watch = new Watch();
    const endMs = systemClock.monotonicMs() + MAX_GROUP_MS;
    this.#captured = true;
    const whole = careful ? null : committed.whole(() => this.#setCaptured(false));
    const shared = { version: this.#version, committed, whole };
    try {
      while (outcomes.length < group.length) {
        const beganMs = systemClock.monotonicMs();
        if (outcomes.length > 0 && beganMs >= endMs) break;
        const { origin, fence, work, drafts } = takeAlike(group, outcomes.length, careful ? 1 : this.#drafts);
        const refused = fence === null || passed.has(fence) ? null : await this.#ask(fence);
        if (refused !== null) {
          for (const _ of drafts) outcomes.push(refused);
          continue;
        }
        if (fence !== null) passed.add(fence);
        this.#setCaptured(!UNCAPTURED.has(origin));
        const outcome = await this.#runOne((tx) => work(tx, drafts), watch, shared);
        if (outcome === null || (!careful && !outcome.ok)) {
          this.#rollBack();
          committed.clear();
          // A work that failed alone has its answer already.
          return group.length === 1 && outcome !== null ? [outcome] : null;
        }
        this.#weigh(drafts.length, systemClock.monotonicMs() - beganMs);
        if (!outcome.ok) outcomes.push(outcome);
        else for (let at = 0; at < drafts.length; at++) outcomes.push({ ok: true, value: outcome.value[at] });
      }
      this.#setCaptured(true);
      if (this.#log.used) await this.#log.write();
      this.#connection.exec("COMMIT");
      if (this.#log.used) this.#log.commit();
      // Looked at after the commit and before anyone is answered, so that what was written past the directory is never acknowledged.
      this.#requirePlace();
    } catch (error) {
      this.#rollBack();
      throw error;
    } finally {
      watch.stop();
    }
    return outcomes;
  }

  #weigh(drafts: number, tookMs: number): void {
    const fit = Math.floor((drafts * MAX_GROUP_MS) / 2 / tookMs);
    if (drafts > 1 && fit < drafts) this.#drafts = Math.max(1, fit);
    else if (drafts === this.#drafts && fit >= drafts) this.#drafts = Math.min(MAX_DRAFTS, drafts * 2);
  }

  /** Takes the write lock; another process that has it is waited for without holding the event loop. */
  async #begin(): Promise<void> {
    const startedMs = systemClock.monotonicMs();
    for (let turn = 0; ; turn++) {
      try {
        this.#connection.exec("BEGIN IMMEDIATE");
        this.#version = await this.#connection.foreignVersion();
        this.#log.locked = this.#version;
        return;
      } catch (error) {
        if (!isBusy(error) || systemClock.monotonicMs() - startedMs >= LOCK_WAIT_MS) throw error;
      }
      await sleep(systemClock, LOCK_RETRY_MS[turn] ?? 50);
    }
  }

  /** null when the fence lets its works pass. */
  async #ask(fence: Fence): Promise<Outcome | null> {
    try {
      await fence(this.#connection);
      return null;
    } catch (error) {
      if (!this.#connection.inTransaction) throw error;
      return { ok: false, error };
    }
  }

  /** Nothing is left to undo after a COMMIT. */
  #rollBack(): void {
    if (this.#connection.inTransaction) this.#connection.exec("ROLLBACK");
    if (this.#log.used) this.#log.undoTo(0);
  }

  #requirePlace(): void {
    const trouble = this.#place.look();
    if (trouble !== null) throw new StoreUnavailable(trouble);
  }

  /** How the work ended; null when it went on after a failed attempt that nothing undid. */
  async #runOne(
    work: (tx: Writer) => Promise<readonly unknown[]>,
    watch: Watch,
    shared: ConstructorParameters<typeof SqliteWriter>[2],
  ): Promise<{ ok: true; value: readonly unknown[] } | { ok: false; error: unknown } | null> {
    const writer = new SqliteWriter(this.#connection, this.#log, shared);
    const run = () => watch.over(work(writer));
    try {
      const value = await (shared.whole === null ? writer.attempt(run) : run());
      if (writer.passedOver) return null;
      shared.committed.add(writer, { captured: this.#captured });
      return { ok: true, value };
    } catch (error) {
      // A full disk and its like make SQLite undo the whole transaction by itself: then nobody's work is kept.
      if (error instanceof StoreUnavailable || !this.#connection.inTransaction) throw error;
      // It may have failed of what the attempt left behind.
      if (writer.passedOver) return null;
      return { ok: false, error };
    } finally {
      writer.end();
    }
  }

  #setCaptured(captured: boolean): void {
    if (captured === this.#captured) return;
    this.#captured = captured;
    this.#connection.exec(
      captured ? "UPDATE capture_switch SET captured = 1" : "UPDATE capture_switch SET captured = 0",
    );
  }
}

/** The work that is next, with the drafts side by side that it may be given together. */
function takeAlike(group: readonly Waiting[], from: number, most: number) {
  const { origin, fence, work } = group[from] as Waiting;
  let end = from + 1;
  while (end < from + most && group[end]?.work === work) end += 1;
  return { origin, fence, work, drafts: group.slice(from, end).map(({ draft }) => draft) };
}

function asUnavailable(error: unknown): StoreUnavailable {
  return error instanceof StoreUnavailable
    ? error
    : new StoreUnavailable("The transaction could not be committed.", { cause: error });
}
