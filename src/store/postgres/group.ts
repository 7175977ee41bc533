/**
 * Implements a group's transaction on PostgreSQL. An advisory lock, which ends with the transaction, allows one writer at a time among all nodes. A
 * commit notifies the other nodes of its changes.
 */
import { systemClock } from "../../base/clock.ts";
import type {
  CommitOptions,
  CommitResult,
  GroupDatabase,
  WorkWatch,
} from "../group-commit/group-database.ts";
import type { GroupConnection, UndoableKeys } from "../group-commit/transaction.ts";
import { type ChangedTopics, OutcomeUnknown, StoreUnavailable } from "../port.ts";
import type { PostgresConnection } from "./connection.ts";
import { ConnectionLost, NoRoom, type ReadOnly, TransactionUndone } from "./error.ts";
import { askOnDisk, NUMBER, NUMBER_AND_TURN, PostgresFlush } from "./flush.ts";
import type { PostgresLiveness } from "./liveness.ts";
import { CHANGES_CHANNEL, Notices } from "./notification.ts";
import { LOCK, WRITER_LOCK } from "./writer-lock.ts";

interface GroupOptions {
  server: Pick<PostgresLiveness, "connect" | "isCutOff">;
  /** Identifies this process's writes. */
  node: string;
  /** Receives how long a group waited for the lock. */
  onLock: (waitedMs: number) => void;
  /** Receives a sentence when the database cannot be reached, and null when it can again. */
  onTrouble: (trouble: string | null) => void;
  /** Runs when the result of a commit is unknown, so that its group may be stored. */
  onUnknown: () => void;
  /** Receives the error of each write that the server refuses, because its disk is full or it takes no writes. */
  onRefused: (error: NoRoom | ReadOnly) => void;
}

/**
 * Reads whose turn it was, and lets the commit return before it is on the disk. The parameter makes this a prepared statement, which is planned once.
 */
const BEGUN = "SELECT node, set_config('synchronous_commit', 'off', true) AS sync FROM writer_turn LIMIT ?1";
const TELL = "SELECT pg_notify(?1, ?2)";
const CAPTURE = "SELECT set_config('relay.captured', ?1, true)";

/**
 * The largest group that a single node's writer flushes by itself. With 24 callers, a third more works complete that way. With 64 callers, it is as
 * many or fewer.
 */
const FEW = 32;
/**
 * The time after which a flush counts as slow. The second connection then flushes for SLOW_FOR_MS, because the writer cannot write during its own
 * flush.
 */
const SLOW_FLUSH_MS = 250;
const SLOW_FOR_MS = 10_000;

export class PostgresGroup implements GroupDatabase {
  /** The limits are large, because each statement costs a round trip and blocks only other writers. */
  readonly limit = { groupMs: 50, firstDrafts: 128, mostDrafts: 512 };
  readonly beginsAhead = true;
  readonly keys: UndoableKeys;
  readonly #options: GroupOptions;
  readonly #flush: PostgresFlush;
  readonly #notices: Notices;
  #writer: PostgresConnection | null = null;
  /** The writer's name, and the number of its last commit. */
  #name = "";
  #number = 0;
  /** Rises when another writer may have written. */
  #version = 0;
  #isBegun = false;
  /** The time when the writer's last flush was answered. Later statements wait for it. */
  #freeMs = 0;
  /** The time when the writer may flush by itself again. */
  #quickFromMs = 0;
  /** True if another node wrote last before the open transaction. */
  #takesTurn = false;

  constructor(options: GroupOptions) {
    this.#options = options;
    this.#flush = new PostgresFlush(options.server);
    this.#notices = new Notices(options.node, (text) => this.#flush.tell(TELL, CHANGES_CHANNEL, text));
    this.keys = new EventKeys(() => this.connection);
  }

  get connection(): GroupConnection {
    if (this.#writer === null) throw new StoreUnavailable("No transaction was begun.");
    return this.#writer;
  }

  async begin(): Promise<number> {
    const { node } = this.#options;
    let writer: PostgresConnection | null = null;
    try {
      writer = this.#live ?? (await this.#open());
      this.#isBegun = true;
      const askedMs = systemClock.monotonicMs();
      // Takes the lock before any read, so that each read sees the commits of all earlier holders.
      writer.exec("BEGIN");
      writer.exec(LOCK, WRITER_LOCK);
      const begun = writer.get<{ node: string }>(BEGUN, 1);
      this.keys.undoTo(0);
      const began = await begun;
      this.#options.onLock(systemClock.monotonicMs() - Math.max(askedMs, this.#freeMs));
      if (began === null) throw new StoreUnavailable("The database does not say whose turn it was.");
      this.#takesTurn = began.node !== node;
      if (this.#takesTurn) this.#version += 1;
      return this.#version;
    } catch (error) {
      const first = writer?.firstOf(error) ?? error;
      // Rolls back, because a failed transaction would refuse the next statements.
      if (writer === this.#writer) this.rollBack();
      this.#tell(first);
      throw first;
    }
  }

  get isBegun(): boolean {
    return this.#isBegun && this.#live !== null;
  }

  capture(captured: boolean): void {
    this.#writer?.exec(CAPTURE, captured ? "1" : "0");
  }

  async commit(changes: ChangedTopics, { isQuiet, isFollowed, works }: CommitOptions): Promise<CommitResult> {
    const writer = this.#writer;
    if (writer === null) throw new StoreUnavailable("No transaction was begun.");
    if (writer.lost) throw new ConnectionLost("The connection broke before the commit.");
    const name = this.#name;
    this.#number += 1;
    const number = this.#number;
    if (this.#takesTurn && !isQuiet) void writer.post(NUMBER_AND_TURN, name, number, this.#options.node);
    else void writer.post(NUMBER, name, number);
    const notice = this.#notices.take(changes);
    const told = notice === null ? null : writer.run(TELL, CHANGES_CHANNEL, notice.text);
    const committed = writer.commit();
    this.#isBegun = false;
    const part = writer.endPart();
    // The writer flushes by itself if no work waits and the group is small or other nodes write too. A flush over the second connection lets the next
    // group run meanwhile, but wakes two processes once more.
    const isFew = !isFollowed && (this.#takesTurn || works <= FEW);
    const askedMs = systemClock.monotonicMs();
    const flushes = isFew && this.#flush.isHeard && askedMs >= this.#quickFromMs;
    const flushed = flushes ? askOnDisk(writer, name) : undefined;
    flushed?.then(
      () => this.#noteFlushed(askedMs),
      () => this.#noteFlushed(askedMs),
    );
    try {
      await told;
      const ended = await committed;
      if (part.failed !== null) throw part.failed;
      // COMMIT ends a failed transaction without an error, but rolls it back.
      if (ended === "ROLLBACK") throw new StoreUnavailable("The database undid the transaction.");
      if (notice === null) this.#notices.gather(changes);
      this.#tell(null);
      return { durable: this.#reach(name, number, flushed) };
    } catch (error) {
      await committed.catch(() => undefined);
      const first = part.failed ?? error;
      try {
        if (writer.lost && (await this.#known(this.#flush.settle(name, number)))) return { durable: null };
      } finally {
        this.#notices.giveBack(notice?.changes ?? changes);
      }
      if (!writer.lost) this.#tell(first);
      throw first;
    }
  }

  #noteFlushed(askedMs: number): void {
    this.#freeMs = systemClock.monotonicMs();
    if (this.#freeMs - askedMs > SLOW_FLUSH_MS) this.#quickFromMs = this.#freeMs + SLOW_FOR_MS;
  }

  /** Waits until the commit is on the disk. Throws ConnectionLost if the server lost it in a crash. */
  async #reach(name: string, number: number, flushed: Promise<number> | undefined): Promise<void> {
    if (await this.#known(this.#flush.reach(name, number, flushed))) return;
    throw new ConnectionLost("The database lost what was not on its disk yet.");
  }

  /** Waits for the answer. If the result is unknown, what this process remembers is no longer valid. */
  async #known(asked: Promise<boolean>): Promise<boolean> {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof OutcomeUnknown) {
        this.#version += 1;
        this.#options.onUnknown();
      }
      throw error;
    }
  }

  rollBack(): void {
    this.#isBegun = false;
    this.keys.undoTo(0);
    if (this.#writer === null || this.#writer.lost) return;
    this.#writer.discard();
    this.#writer.exec("ROLLBACK");
  }

  mayRunAgain(error: unknown): boolean {
    return error instanceof TransactionUndone || error instanceof ConnectionLost;
  }

  watch(): WorkWatch {
    return new IdleWatch(this.#writer);
  }

  get connections(): readonly PostgresConnection[] {
    return [this.#writer, this.#flush.connection].filter((one) => one !== null);
  }

  async close(): Promise<void> {
    await this.#writer?.idle();
    await this.#writer?.close();
    await this.#notices.close(this.#flush.connection?.lost === false);
    await this.#flush.close();
  }

  get #live(): PostgresConnection | null {
    return this.#writer === null || this.#writer.lost ? null : this.#writer;
  }

  async #open(): Promise<PostgresConnection> {
    if (this.#live !== null) return this.#live;
    this.#writer = await this.#options.server.connect("relay writer", {
      writes: "rows",
      onRefused: this.#options.onRefused,
    });
    // Other writers may have written while there was no connection.
    this.#version += 1;
    this.#name = crypto.randomUUID();
    this.#number = 0;
    void this.#flush.tidy().catch(() => undefined);
    return this.#writer;
  }

  /** Reports the trouble. `error` is a transaction's error, or null after a commit. */
  #tell(error: unknown): void {
    if (error === null) this.#options.onTrouble(null);
    // A full disk is reported by `onRefused`.
    else if (error instanceof NoRoom) return;
    else if (error instanceof StoreUnavailable && !(error instanceof TransactionUndone))
      this.#options.onTrouble(error.message);
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
  #cancel = systemClock.after(IDLE_WITHIN_MS, () => this.#look());
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
  #look(): void {
    this.#cancel = systemClock.after(IDLE_WITHIN_MS, () => this.#look());
    if (this.#connection === null || this.#connection.unanswered > 0) return;
    const { answers } = this.#connection;
    if (answers === this.#answers)
      this.#fail(new Error("A transaction's work awaited something other than its transaction."));
    this.#answers = answers;
  }
}
