/**
 * Implements the transactions of one scope's groups on PostgreSQL. Advisory locks, which end with the transaction, allow one writer of a scope at a
 * time among all nodes. A commit notifies the other nodes of its changes.
 */
import { sleep, systemClock } from "../../base/clock.ts";
import type {
  CommitOptions,
  CommitResult,
  GroupDatabase,
  WorkWatch,
} from "../group-commit/group-database.ts";
import {
  type ChangedTopics,
  EVERYTHING,
  OutcomeUnknown,
  StoreUnavailable,
  WorkUndone,
  type WriteScope,
} from "../port.ts";
import type { PostgresConnection } from "./connection.ts";
import { LOCK_TIMEOUT } from "./connection-option.ts";
import { ConnectionLost, NoRoom, TransactionUndone } from "./error.ts";
import { EventKeys } from "./event-key.ts";
import { NumbersAhead } from "./event-number.ts";
import { askOnDisk, NUMBER, type WriterCommit } from "./flush.ts";
import { IdleWatch } from "./idle-watch.ts";
import { CHANGES_CHANNEL, type Notice } from "./notification.ts";
import { takeLocks, WRITER_LOCK } from "./writer-lock.ts";
import { MOST_WRITERS, type PooledWriter } from "./writer-pool.ts";
import { type Begun, COUNTS, type PostgresWriters, TELL } from "./writers.ts";

/**
 * Reads who wrote last: everything, with the number of such commits, and this scope. Lets the commit return before it is on the disk. The parameters
 * make this a prepared statement, which is planned once.
 */
const BEGUN = `SELECT turn.node, turn.number, (SELECT node FROM writer_scope WHERE scope = ?2) AS last,
    set_config('synchronous_commit', 'off', true) AS sync FROM writer_turn AS turn LIMIT ?1`;
const WROTE_EVERYTHING = "UPDATE writer_turn SET node = ?1, number = number + 1";
const WROTE_SCOPE =
  "INSERT INTO writer_scope (scope, node) VALUES (?1, ?2) ON CONFLICT (scope) DO UPDATE SET node = excluded.node";
/** Takes the locks of an optimistic transaction and checks what it expects. Lets the commit return before it is on the disk. */
const EXPECT = "SELECT begin_expected(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) AS waits";
/**
 * The time after which a waiting work is rejected. Its last transaction can then wait for two locks, 15 s each. The sum must stay below
 * `event_time_step`, because an event gets its number after this wait and its time before.
 */
const WAIT_MS = 20_000;
/** The age up to which an event needs no separate check of its time. Events arrive in nearly the order of their times. */
const OLDER_MS = 5_000;
const LOCK_WITHIN = "SELECT set_config('lock_timeout', ?1, true)";
const CAPTURE = "SELECT set_config('relay.captured', ?1, true)";
/** The scope that no write of everything has. */
const NO_SCOPE = -1;
/** The time that a write of everything stays in the queue, and the time that it then lets the others pass. */
const QUEUE_MS = 100;
const YIELD_MS = 300;
/** The time for which it does so. The server has ended a transaction by then that hangs or waits for a row. */
const YIELD_FOR_MS = 16_000;

/** The most plain transactions before the next optimistic one, after some that failed or writes of other processes. */
const MOST_PLAIN = 64;

/** A row of EXPECT: the microseconds of the wait for the lock of everything and for that of the environment, with a comma between them. */
interface Locked {
  waits: string;
}

/** A transaction whose COMMIT was sent. */
interface SentCommit {
  commit: WriterCommit;
  connection: PostgresConnection;
  part: ReturnType<PostgresConnection["endPart"]>;
  /** The notification that it carries, and its answer. Null if its changes are gathered. */
  notice: Notice | null;
  notified: Promise<unknown> | null;
  changes: ChangedTopics;
  committed: ReturnType<PostgresConnection["commit"]>;
  /** The flush behind the COMMIT on the same connection. */
  flushed: ReturnType<typeof askOnDisk> | undefined;
  isOptimistic: boolean;
}

export class PostgresGroup implements GroupDatabase {
  /** The limits are large, because each statement costs a round trip and blocks only other writers. */
  readonly limit = { groupMs: 50, waitMs: WAIT_MS, firstDrafts: 128, mostDrafts: 512 };
  readonly beginsAhead = true;
  readonly keys: EventKeys;
  readonly #shared: PostgresWriters;
  readonly #scope: WriteScope;
  /** The connection of the open transaction. */
  #writer: PooledWriter | null = null;
  #isBegun = false;
  /** The question whether the last commit is stored, while it has no answer. */
  #settling: Promise<boolean> | null = null;
  /** The nodes that wrote before the open transaction. */
  #begun: Begun = { node: "", number: 0, last: null };
  /** The number of begun transactions, and of those before which another process wrote this scope. */
  #count = 0;
  #foreign = 0;
  /** The number of plain transactions before the next optimistic one, and how many there will be after one that fails. */
  #plain = 1;
  #nextPlain = 1;
  /** The last commit of this scope that was sent. */
  #last: WriterCommit | null = null;
  /** The last write of everything that this process knew then. */
  #everything: PostgresWriters["everything"] | null = null;
  /** The connection of optimistic transactions that were sent and have not ended. `ended` resolves when all have. */
  #underWay: { writer: PooledWriter; ended: Promise<unknown> } | null = null;
  #ahead = new NumbersAhead();
  /** The name of this node in `writer_scope`. It changes after each commit without an answer, because the server may still run it. */
  #name: string;
  expectedVersion: number | null = null;

  constructor(shared: PostgresWriters, scope: WriteScope) {
    this.#shared = shared;
    this.#scope = scope;
    this.#name = shared.name;
    this.keys = new EventKeys(() => this.connection);
  }

  get connection(): PostgresConnection {
    return this.#open.connection;
  }

  /**
   * A write of everything gives up its place in the queue and asks again, as long as a transaction that holds up one environment may end by itself.
   * Otherwise the writes of all environments would wait behind it. If the connection breaks, the group begins on another one, because each free one
   * may have broken with it, and only its use shows that.
   */
  async begin(): Promise<number> {
    const expected = this.#beginOptimistic();
    if (expected !== null) return expected;
    while (this.#underWay !== null) await this.#underWay.ended;
    const askedMs = systemClock.monotonicMs();
    for (let losses = 0; ; ) {
      const yields = this.#scope === EVERYTHING && systemClock.monotonicMs() - askedMs < YIELD_FOR_MS;
      try {
        return await this.#beginOnce(askedMs, yields);
      } catch (error) {
        const first = this.#writer?.connection.firstOf(error) ?? error;
        // Rolls back, because a failed transaction would refuse the next statements.
        this.rollBack();
        if (
          first instanceof ConnectionLost &&
          losses < MOST_WRITERS &&
          !this.#shared.options.server.isCutOff
        ) {
          losses += 1;
          continue;
        }
        if (!yields || !(first instanceof TransactionUndone)) {
          this.#report(first);
          throw first;
        }
      }
      await sleep(systemClock, YIELD_MS);
    }
  }

  /**
   * Begins an optimistic transaction, if the last transactions suggest that no other process writes the scope. Its works use what the process remembers of the
   * time after this process's last commit, and need no answer before the commit. Returns null if it cannot begin.
   */
  #beginOptimistic(): number | null {
    const { pool, everything } = this.#shared;
    const last = this.#last;
    this.expectedVersion = null;
    if (this.#plain > 0 || last === null || this.#settling !== null || this.#scope === EVERYTHING)
      return null;
    // A write of everything may have changed this scope. Writers without `n:` do not change the number, so a second one would go unnoticed.
    if (everything !== this.#everything || !everything.node.startsWith(COUNTS)) return null;
    // Groups of other scopes wait for a connection, and this scope must not keep its own from group to group.
    if (this.#underWay !== null && pool.groups.waiting > 0) return null;
    // A connection keeps the order of transactions that are under way at the same time.
    const writer = this.#underWay?.writer ?? pool.tryTake();
    if (writer === null || writer.connection.lost) return null;
    const { connection } = writer;
    this.#writer = writer;
    this.#isBegun = true;
    void connection.exec("BEGIN");
    const { node, number } = everything;
    const newestMs = this.#ahead.newest?.atMs ?? null;
    // Another environment can have newer events than this one, up to now.
    const checkedMs = newestMs === null ? null : Math.max(newestMs, systemClock.now()) - OLDER_MS;
    const expected = connection.execRow<Locked>(
      EXPECT,
      WRITER_LOCK,
      this.#scope,
      this.#name,
      node,
      number,
      last.writer,
      last.number,
      checkedMs,
    );
    void this.#recordLocked(expected);
    this.keys.undoTo();
    this.keys.expectNew();
    connection.numbers.useAhead(this.#ahead, checkedMs ?? Number.POSITIVE_INFINITY);
    this.#begun = { ...everything, last: this.#name };
    this.expectedVersion = this.#shared.version + this.#foreign;
    return this.expectedVersion;
  }

  async #beginOnce(askedMs: number, yields: boolean): Promise<number> {
    const { pool } = this.#shared;
    this.#writer = pool.tryTake() ?? (await pool.take());
    if (this.#settling !== null) await this.#settling.catch(() => undefined);
    const { connection } = this.#writer;
    this.#isBegun = true;
    // Takes the locks before any read, so that each read sees the commits of all earlier holders.
    void connection.exec("BEGIN");
    if (yields) void connection.exec(LOCK_WITHIN, `${QUEUE_MS}ms`);
    const locked = takeLocks(connection, this.#scope);
    if (yields) void connection.exec(LOCK_WITHIN, LOCK_TIMEOUT);
    const begun = connection.get<Begun>(BEGUN, 1, this.#scope === EVERYTHING ? NO_SCOPE : this.#scope);
    this.keys.undoTo();
    void this.#recordWaits(askedMs, locked, begun);
    const began = await begun;
    if (began === null) throw new StoreUnavailable("The table writer_turn has no row.");
    return this.#recordBegin(began);
  }

  /** Records the waits that the server measured. */
  async #recordLocked(expected: Promise<Locked | null>): Promise<void> {
    const locked = await expected;
    if (locked === null) return;
    const [everything = 0, environment = 0] = locked.waits.split(",").map((micros) => Number(micros) / 1_000);
    this.#shared.options.onLock(everything, "everything");
    this.#shared.options.onLock(environment, "environment");
  }

  /** Records the waits for the locks. `locked` is the answer to the request for the first one, `begun` to the statement after the last. */
  async #recordWaits(askedMs: number, locked: Promise<void>, begun: Promise<unknown>): Promise<void> {
    const { onLock } = this.#shared.options;
    const writer = this.#writer;
    await locked;
    const heldMs = systemClock.monotonicMs();
    const freeMs = writer?.freeMs ?? 0;
    if ((await begun.catch(() => null)) === null) return;
    onLock(Math.max(0, heldMs - Math.max(askedMs, freeMs)), "everything");
    if (this.#scope !== EVERYTHING) onLock(systemClock.monotonicMs() - heldMs, "environment");
  }

  /** Returns a number that differs from those of earlier transactions if another process may have written what this one reads. */
  #recordBegin(begun: Begun): number {
    const shared = this.#shared;
    this.#begun = begun;
    this.#count += 1;
    shared.compareEverything(begun);
    // Nothing says which environments others wrote, so a write of everything expects all.
    if (this.#scope === EVERYTHING) return -this.#count;
    if (begun.last !== this.#name) this.#foreign += 1;
    this.#ahead = new NumbersAhead();
    if (begun.last === this.#name) this.#plain = Math.max(0, this.#plain - 1);
    else this.#recordDisturbance();
    return shared.version + this.#foreign;
  }

  /** Lets plain transactions come before the next optimistic one, more each time. */
  #recordDisturbance(): void {
    this.#plain = this.#nextPlain;
    this.#nextPlain = Math.min(MOST_PLAIN, this.#nextPlain * 2);
  }

  get isBegun(): boolean {
    return this.#isBegun && this.#writer?.connection.lost === false;
  }

  capture(captured: boolean): void {
    void this.#writer?.connection.exec(CAPTURE, captured ? "1" : "0");
  }

  async commit(changes: ChangedTopics, { isQuiet }: CommitOptions): Promise<CommitResult> {
    const { notices, flush, pool } = this.#shared;
    const writer = this.#open;
    const { connection, name } = writer;
    if (connection.lost) {
      this.rollBack();
      throw new ConnectionLost("The connection broke before the commit.");
    }
    this.keys.checkNew();
    if (!isQuiet) this.#takeTurn(connection);
    writer.number += 1;
    const commit = { writer: name, number: writer.number, scope: this.#scope };
    void connection.post(NUMBER, name, commit.number);
    if (this.#plain === 0) connection.numbers.leaveAhead(this.#ahead);
    const notice = notices.take(changes);
    const notified = notice === null ? null : connection.run(TELL, CHANGES_CHANNEL, notice.text);
    const committed = connection.commit();
    const part = connection.endPart();
    // A flush behind the COMMIT saves a round trip. The next group must not wait for it, so it needs another connection.
    const flushed = flush.isHeard && pool.hasCalm ? askOnDisk(connection, [name]) : undefined;
    const recordFree = (): void => {
      writer.freeMs = systemClock.monotonicMs();
    };
    flushed?.then(recordFree, recordFree);
    this.#last = commit;
    this.#everything = this.#shared.everything;
    const isOptimistic = this.expectedVersion !== null;
    if (!isOptimistic) this.#giveBack();
    const confirmed = this.#confirm({
      commit,
      connection,
      part,
      notice,
      changes,
      notified,
      committed,
      flushed,
      isOptimistic,
    });
    if (!isOptimistic) return await confirmed;
    const result = makeOptimistic(confirmed);
    this.#keepUntil(writer, result.ended);
    return result;
  }

  /** Keeps the connection of the open transaction, whose COMMIT was sent, because other groups must not wait behind it. */
  #keepUntil(writer: PooledWriter, ended: Promise<void>): void {
    const underWay = { writer, ended: Promise.all([this.#underWay?.ended, ended]) };
    this.#underWay = underWay;
    this.#writer = null;
    this.#isBegun = false;
    void underWay.ended.then(() => {
      if (this.#underWay !== underWay) return;
      this.#underWay = null;
      // A transaction that has begun on it has it now.
      if (this.#writer !== writer) this.#shared.pool.giveBack(writer);
    });
  }

  /** Waits for the answer to the COMMIT, and finds out what happened if there is none. */
  async #confirm(sent: SentCommit): Promise<CommitResult> {
    const { notices, flush } = this.#shared;
    const { commit, connection, part, notice, changes, notified, committed, flushed } = sent;
    try {
      await notified;
      const ended = await committed;
      if (part.failed !== null) throw part.failed;
      // COMMIT ends a failed transaction without an error, but rolls it back.
      if (ended === "ROLLBACK") throw new TransactionUndone("The database rolled back the transaction.");
      if (notice === null) notices.gather(changes);
      this.#report(null);
      if (sent.isOptimistic) this.#nextPlain = Math.max(1, this.#nextPlain / 2);
      return { durable: this.#reach(flush.reach(commit, flushed)) };
    } catch (error) {
      this.#recordDisturbance();
      await committed.catch(() => undefined);
      const first = part.failed ?? error;
      try {
        if (connection.lost && (await this.#settle(commit))) return { durable: null };
      } finally {
        notices.giveBack(notice?.changes ?? changes);
      }
      if (!connection.lost) this.#report(first);
      throw first;
    }
  }

  /** Records that this node wrote the scope, so that other nodes notice. */
  #takeTurn(connection: PostgresConnection): void {
    const { node, number, last } = this.#begun;
    const isEverything = this.#scope === EVERYTHING;
    if (isEverything || !node.startsWith(COUNTS)) {
      void connection.post(WROTE_EVERYTHING, this.#shared.name);
      this.#shared.recordEverything(number + 1);
    }
    if (!isEverything && last !== this.#name) void connection.post(WROTE_SCOPE, this.#scope, this.#name);
  }

  /** Waits until the commit is on the disk. Throws ConnectionLost if the server lost it in a crash. */
  async #reach(reached: Promise<boolean>): Promise<void> {
    if (await this.#known(reached)) return;
    throw new ConnectionLost("The database lost what was not on its disk yet.");
  }

  /**
   * Finds out whether a commit without an answer is stored. That needs the scope's lock, so the next group's transaction ends if it has begun, and
   * otherwise waits. The server may get an optimistic transaction only after that, so this node changes its name, which the transaction expects.
   */
  async #settle(commit: WriterCommit): Promise<boolean> {
    this.#name = `${this.#shared.name} ${commit.writer}`;
    this.#writer?.connection.giveUp("The connection of the commit before this transaction broke.");
    const known = this.#known(this.#shared.flush.settle(commit));
    this.#settling = known;
    try {
      return await known;
    } finally {
      this.#settling = null;
    }
  }

  /** Waits for the answer. If the result is unknown, what this process remembers is no longer valid. */
  async #known(asked: Promise<boolean>): Promise<boolean> {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof OutcomeUnknown) {
        this.#shared.version += 1;
        this.#shared.options.onUnknown();
      }
      throw error;
    }
  }

  rollBack(): void {
    if (this.expectedVersion !== null) this.#recordDisturbance();
    // The works run again with savepoints. If an expectation is wrong, their errors would hide it.
    this.#plain = Math.max(1, this.#plain);
    this.keys.undoTo();
    const connection = this.#writer?.connection;
    if (connection?.lost === false) {
      connection.discard();
      void connection.exec("ROLLBACK");
    }
    this.#giveBack();
  }

  mayRunAgain(error: unknown): boolean {
    return error instanceof TransactionUndone || error instanceof ConnectionLost;
  }

  watch(): WorkWatch {
    return new IdleWatch(this.#writer?.connection ?? null);
  }

  get #open(): PooledWriter {
    if (this.#writer === null) throw new StoreUnavailable("No transaction was begun.");
    return this.#writer;
  }

  #giveBack(): void {
    this.#isBegun = false;
    if (this.#writer !== null && this.#underWay === null) this.#shared.pool.giveBack(this.#writer);
    this.#writer = null;
  }

  /** Reports the trouble. `error` is a transaction's error, or null after a commit. */
  #report(error: unknown): void {
    const { onTrouble } = this.#shared.options;
    if (error === null) onTrouble(null);
    // A full disk is reported by `onRefused`.
    else if (error instanceof NoRoom) return;
    else if (
      error instanceof StoreUnavailable &&
      !(error instanceof TransactionUndone || error instanceof WorkUndone)
    )
      onTrouble(error.message);
  }
}

/**
 * Makes the result of an optimistic transaction, before its COMMIT is answered. If it fails, its works run again in a plain transaction, which tells
 * whether an expectation was wrong or a work.
 */
function makeOptimistic(confirmed: Promise<CommitResult>): Required<CommitResult> {
  const durable = confirmed.then(
    ({ durable }) => durable ?? undefined,
    (error: unknown) => {
      if (error instanceof StoreUnavailable && !(error instanceof WorkUndone)) throw error;
      throw new TransactionUndone("An optimistic transaction failed.", { cause: error });
    },
  );
  const ended = confirmed.then(
    () => undefined,
    () => undefined,
  );
  return { durable, ended };
}
