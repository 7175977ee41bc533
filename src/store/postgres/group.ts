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
import type { GroupConnection, UndoableKeys } from "../group-commit/transaction.ts";
import {
  type ChangedTopics,
  EVERYTHING,
  OutcomeUnknown,
  StoreUnavailable,
  type WriteScope,
} from "../port.ts";
import type { PostgresConnection } from "./connection.ts";
import { LOCK_TIMEOUT } from "./connection-option.ts";
import { ConnectionLost, NoRoom, type ReadOnly, TransactionUndone } from "./error.ts";
import { askOnDisk, NUMBER, PostgresFlush, type WriterCommit } from "./flush.ts";
import type { PostgresLiveness } from "./liveness.ts";
import { CHANGES_CHANNEL, Notices } from "./notification.ts";
import { takeLocks } from "./writer-lock.ts";
import { MOST_WRITERS, type PooledWriter, WriterPool } from "./writer-pool.ts";

/** The lock that a group waited for: that of everything, or that of its environment. */
export type LockLevel = "everything" | "environment";

interface GroupOptions {
  server: Pick<PostgresLiveness, "connect" | "isCutOff">;
  /** Identifies this process's writes. */
  node: string;
  /** Receives how long a group waited for a lock. */
  onLock: (waitedMs: number, level: LockLevel) => void;
  /** Receives a sentence when the database cannot be reached, and null when it can again. */
  onTrouble: (trouble: string | null) => void;
  /** Runs when the result of a commit is unknown, so that its group may be stored. */
  onUnknown: () => void;
  /** Receives the error of each write that the server refuses, because its disk is full or it takes no writes. */
  onRefused: (error: NoRoom | ReadOnly) => void;
}

/**
 * Reads who wrote last: everything, with the number of such commits, and this scope. Lets the commit return before it is on the disk. The parameters
 * make this a prepared statement, which is planned once.
 */
const BEGUN = `SELECT turn.node, turn.number, (SELECT node FROM writer_scope WHERE scope = ?2) AS last,
    set_config('synchronous_commit', 'off', true) AS sync FROM writer_turn AS turn LIMIT ?1`;
const WROTE_EVERYTHING = "UPDATE writer_turn SET node = ?1, number = number + 1";
const WROTE_SCOPE =
  "INSERT INTO writer_scope (scope, node) VALUES (?1, ?2) ON CONFLICT (scope) DO UPDATE SET node = excluded.node";
const LOCK_WITHIN = "SELECT set_config('lock_timeout', ?1, true)";
const TELL = "SELECT pg_notify(?1, ?2)";
const CAPTURE = "SELECT set_config('relay.captured', ?1, true)";
/** The scope that no write of everything has. */
const NO_SCOPE = -1;
/**
 * Begins the name of a node in `writer_turn`. A node of an earlier version stores its name without it, and SQL of other programs stores no name. Both
 * hold the lock of everything and do not count.
 */
const COUNTS = "n:";

/** The time that a write of everything stays in the queue, and the time that it then lets the others pass. */
const QUEUE_MS = 100;
const YIELD_MS = 300;
/** The time for which it does so. The server ends an idle transaction after 5 s. */
const YIELD_FOR_MS = 7_000;

/** A row of BEGUN. */
interface Begun {
  node: string;
  number: number;
  last: string | null;
}

/** The state that the groups of all scopes of a process share. */
export class PostgresWriters {
  readonly options: GroupOptions;
  readonly pool: WriterPool;
  readonly flush: PostgresFlush;
  readonly notices: Notices;
  /** The name of this node in `writer_turn`. */
  readonly name: string;
  /** Rises when another process may have written everything. */
  version = 0;
  /** The last writer of everything and its number, as this process saw or wrote them. */
  #everything = "";

  constructor(options: GroupOptions) {
    this.options = options;
    this.name = `${COUNTS}${options.node}`;
    this.flush = new PostgresFlush(options.server);
    this.notices = new Notices(options.node, (text) => this.flush.tell(TELL, CHANGES_CHANNEL, text));
    this.pool = new WriterPool({
      server: options.server,
      onRefused: options.onRefused,
      onOpen: () => void this.flush.tidy().catch(() => undefined),
      // A server that restarted may have lost commits that this process saw.
      onLost: () => {
        this.version += 1;
      },
    });
  }

  get connections(): readonly PostgresConnection[] {
    return [...this.pool.connections, ...this.flush.connections];
  }

  /** Compares who wrote everything with what this process knows. */
  compareEverything({ node, number }: Pick<Begun, "node" | "number">): void {
    const seen = `${node} ${number}`;
    if (seen !== this.#everything || !node.startsWith(COUNTS)) this.version += 1;
    this.#everything = seen;
  }

  /** Records that this process wrote everything, so that it does not take its own commit for another's. */
  recordEverything(number: number): void {
    this.#everything = `${this.name} ${number}`;
  }

  async close(): Promise<void> {
    await this.pool.close();
    await this.notices.close(this.flush.isOpen);
    await this.flush.close();
  }
}

export class PostgresGroup implements GroupDatabase {
  /** The limits are large, because each statement costs a round trip and blocks only other writers. */
  readonly limit = { groupMs: 50, firstDrafts: 128, mostDrafts: 512 };
  readonly beginsAhead = true;
  readonly keys: UndoableKeys;
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

  constructor(shared: PostgresWriters, scope: WriteScope) {
    this.#shared = shared;
    this.#scope = scope;
    this.keys = new EventKeys(() => this.connection);
  }

  get connection(): GroupConnection {
    return this.#open.connection;
  }

  /**
   * A write of everything gives up its place in the queue and asks again, as long as a transaction that holds up one environment may end by itself.
   * Otherwise the writes of all environments would wait behind it. If the connection breaks, the group begins on another one, because each free one
   * may have broken with it, and only its use shows that.
   */
  async begin(): Promise<number> {
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

  async #beginOnce(askedMs: number, yields: boolean): Promise<number> {
    const { pool, options } = this.#shared;
    this.#writer = pool.tryTake() ?? (await pool.take());
    if (this.#settling !== null) await this.#settling.catch(() => undefined);
    const { connection, freeMs } = this.#writer;
    this.#isBegun = true;
    // Takes the locks before any read, so that each read sees the commits of all earlier holders.
    void connection.exec("BEGIN");
    if (yields) void connection.exec(LOCK_WITHIN, `${QUEUE_MS}ms`);
    let heldMs = askedMs;
    const locked = takeLocks(connection, this.#scope).then(() => {
      heldMs = systemClock.monotonicMs();
    });
    if (yields) void connection.exec(LOCK_WITHIN, LOCK_TIMEOUT);
    const begun = connection.get<Begun>(BEGUN, 1, this.#scope === EVERYTHING ? NO_SCOPE : this.#scope);
    this.keys.undoTo(0);
    const [began] = await Promise.all([begun, locked]);
    options.onLock(Math.max(0, heldMs - Math.max(askedMs, freeMs)), "everything");
    if (this.#scope !== EVERYTHING) options.onLock(systemClock.monotonicMs() - heldMs, "environment");
    if (began === null) throw new StoreUnavailable("The table writer_turn has no row.");
    return this.#recordBegin(began);
  }

  /** Returns a number that differs from those of earlier transactions if another process may have written what this one reads. */
  #recordBegin(begun: Begun): number {
    const shared = this.#shared;
    this.#begun = begun;
    this.#count += 1;
    shared.compareEverything(begun);
    // Nothing says which environments others wrote, so a write of everything expects all.
    if (this.#scope === EVERYTHING) return -this.#count;
    if (begun.last !== shared.name) this.#foreign += 1;
    return shared.version + this.#foreign;
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
      this.#giveBack();
      throw new ConnectionLost("The connection broke before the commit.");
    }
    if (!isQuiet) this.#takeTurn(connection);
    writer.number += 1;
    const commit = { writer: name, number: writer.number, scope: this.#scope };
    void connection.post(NUMBER, name, commit.number);
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
    this.#giveBack();
    try {
      await notified;
      const ended = await committed;
      if (part.failed !== null) throw part.failed;
      // COMMIT ends a failed transaction without an error, but rolls it back.
      if (ended === "ROLLBACK") throw new StoreUnavailable("The database rolled back the transaction.");
      if (notice === null) notices.gather(changes);
      this.#report(null);
      return { durable: this.#reach(flush.reach(commit, flushed)) };
    } catch (error) {
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
    const { name } = this.#shared;
    const { node, number, last } = this.#begun;
    const isEverything = this.#scope === EVERYTHING;
    if (isEverything || !node.startsWith(COUNTS)) {
      void connection.post(WROTE_EVERYTHING, name);
      this.#shared.recordEverything(number + 1);
    }
    if (!isEverything && last !== name) void connection.post(WROTE_SCOPE, this.#scope, name);
  }

  /** Waits until the commit is on the disk. Throws ConnectionLost if the server lost it in a crash. */
  async #reach(reached: Promise<boolean>): Promise<void> {
    if (await this.#known(reached)) return;
    throw new ConnectionLost("The database lost what was not on its disk yet.");
  }

  /**
   * Finds out whether a commit without an answer is stored. That needs the scope's lock, so the next group's transaction ends if it has begun, and
   * otherwise waits.
   */
  async #settle(commit: WriterCommit): Promise<boolean> {
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
    this.keys.undoTo(0);
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
    if (this.#writer !== null) this.#shared.pool.giveBack(this.#writer);
    this.#writer = null;
  }

  /** Reports the trouble. `error` is a transaction's error, or null after a commit. */
  #report(error: unknown): void {
    const { onTrouble } = this.#shared.options;
    if (error === null) onTrouble(null);
    // A full disk is reported by `onRefused`.
    else if (error instanceof NoRoom) return;
    else if (error instanceof StoreUnavailable && !(error instanceof TransactionUndone))
      onTrouble(error.message);
  }
}

/** Has the same text for any number of keys, so that it is prepared once. */
const ASK =
  "SELECT seq, dedupe_hash AS hash FROM event WHERE dedupe_hash = ANY(string_to_array(?1, ',')::bytea[])";

/** Finds keys by the unique index of the event table. It remembers only what the open transaction read. */
class EventKeys implements UndoableKeys {
  readonly mark = 0;
  readonly #connection: () => GroupConnection;
  #known = new Map<string, number[]>();
  #asked: Promise<unknown> = Promise.resolve();

  constructor(connection: () => GroupConnection) {
    this.#connection = connection;
  }

  async prefetch(hashes: readonly Uint8Array[]): Promise<void> {
    const unknown = hashes.filter((hash) => !this.#known.has(nameOf(hash)));
    if (unknown.length > 0) this.#asked = Promise.all([this.#asked, this.#ask(unknown)]);
    await this.#asked;
  }

  async #ask(hashes: readonly Uint8Array[]): Promise<void> {
    const known = this.#known;
    for (const hash of hashes) known.set(nameOf(hash), []);
    const asked = hashes.map((hash) => `\\x${nameOf(hash)}`).join();
    for (const { seq, hash } of await this.#connection().all<{ seq: number; hash: Uint8Array }>(ASK, asked))
      known.get(nameOf(hash))?.push(seq);
  }

  async find(hash: Uint8Array): Promise<number[]> {
    await this.#asked;
    const known = this.#known.get(nameOf(hash));
    if (known !== undefined) return known;
    const rows = await this.#connection().all<{ seq: number }>(
      "SELECT seq FROM event WHERE dedupe_hash = ?1",
      hash,
    );
    return rows.map(({ seq }) => seq);
  }

  async add(hash: Uint8Array, value: number): Promise<void> {
    this.#known.get(nameOf(hash))?.push(value);
  }

  async deleteBefore(): Promise<boolean> {
    return false;
  }

  async deleteSlot(): Promise<void> {}

  /** Forgets everything. It also runs at the beginning and the end of a transaction. */
  undoTo(): void {
    this.#known = new Map();
    this.#asked = Promise.resolve();
  }
}

function nameOf(hash: Uint8Array): string {
  return hash.toHex();
}

/** The most time that a transaction may be idle. A work that awaits something other than its transaction would block the writers of all nodes. */
const IDLE_WITHIN_MS = 250;

class IdleWatch implements WorkWatch {
  readonly #connection: Pick<PostgresConnection, "unanswered" | "answers"> | null;
  #cancel = systemClock.after(IDLE_WITHIN_MS, () => this.#check());
  #answers = -1;
  #fail: (error: Error) => void = () => undefined;

  constructor(connection: Pick<PostgresConnection, "unanswered" | "answers"> | null) {
    this.#connection = connection;
  }

  over<Result>(working: Promise<Result>): Promise<Result> {
    this.#answers = -1;
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      working.then(resolve, reject);
    });
  }

  stop(): void {
    this.#cancel();
  }

  /** Fails the work if no statement waits for an answer and none was answered since the last check. */
  #check(): void {
    this.#cancel = systemClock.after(IDLE_WITHIN_MS, () => this.#check());
    if (this.#connection === null || this.#connection.unanswered > 0) return;
    const { answers } = this.#connection;
    if (answers === this.#answers)
      this.#fail(new Error("A transaction's work awaited something other than its transaction."));
    this.#answers = answers;
  }
}
