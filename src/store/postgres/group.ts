/**
 * A group's transaction on PostgreSQL: one writer at a time, of all nodes together, by an advisory lock that ends with its transaction. It tells
 * the other nodes what was touched.
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
  /** Tells this process's writes from those of others. */
  node: string;
  /** Told how long it waited until it had the lock. */
  onLock: (waitedMs: number) => void;
  /** Told when the database cannot be reached (why, in a sentence), and null when it can again. */
  onTrouble: (trouble: string | null) => void;
  /** Told of a group that may be there although its writers were told that nobody knows. */
  onUnknown: () => void;
  /** Told of each write for which the server's disk has no room, or that it does not take. */
  onRefused: (error: NoRoom | ReadOnly) => void;
}

/** Statements with a value are planned once. Its commit is answered before it is on the disk. */
const BEGUN = "SELECT node, set_config('synchronous_commit', 'off', true) AS sync FROM writer_turn LIMIT ?1";
const TELL = "SELECT pg_notify(?1, ?2)";
const CAPTURE = "SELECT set_config('relay.captured', ?1, true)";

/** Of works of one node alone: with 24 callers they end a third more where the writer flushes by itself, with 64 as many or fewer. */
const FEW = 32;
/** A disk or a standby that takes longer is waited for over the second connection for a while: behind the writer's own flush nothing is written. */
const SLOW_FLUSH_MS = 250;
const SLOW_FOR_MS = 10_000;

export class PostgresGroup implements GroupDatabase {
  /** Statements cost a round trip each and hold nobody up but other writers. */
  readonly limit = { groupMs: 50, firstDrafts: 128, mostDrafts: 512 };
  readonly beginsAhead = true;
  readonly keys: UndoableKeys;
  readonly #options: GroupOptions;
  readonly #flush: PostgresFlush;
  readonly #notices: Notices;
  #writer: PostgresConnection | null = null;
  /** Names the writer, and counts its commits. */
  #name = "";
  #number = 0;
  /** Counts turns of other writers. */
  #version = 0;
  #isBegun = false;
  /** When the writer's last flush was answered: what is asked behind it waits for that first. */
  #freeMs = 0;
  /** Since then it flushes by itself again. */
  #quickFromMs = 0;
  /** Whether another writer committed before the open transaction. */
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
      // The lock stands before any statement that reads: each of them sees every commit of those who had it before.
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
      // What had begun stands there as failed, and would refuse whatever comes next.
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
    // A second connection's flush lets the next group be written meanwhile, and wakes this process and another once more, which is what costs where
    // nobody waits to write and the group is small, or other nodes take the processors.
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
      // A transaction that failed is ended by COMMIT without an error, and nothing of it is kept.
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

  /** Throws where the server lost what it had answered for, as in a crash of its own. */
  async #reach(name: string, number: number, flushed: Promise<number> | undefined): Promise<void> {
    if (await this.#known(this.#flush.reach(name, number, flushed))) return;
    throw new ConnectionLost("The database lost what was not on its disk yet.");
  }

  /** Where nobody knows, what this process remembers may be of before. */
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
    // Others may have written while there was none.
    this.#version += 1;
    this.#name = crypto.randomUUID();
    this.#number = 0;
    void this.#flush.tidy().catch(() => undefined);
    return this.#writer;
  }

  /** `error`: what a transaction failed with; null: one was kept. */
  #tell(error: unknown): void {
    if (error === null) this.#options.onTrouble(null);
    // That its disk has no room is told as it is noticed.
    else if (error instanceof NoRoom) return;
    else if (error instanceof StoreUnavailable && !(error instanceof TransactionUndone))
      this.#options.onTrouble(error.message);
  }
}

/** One text for any number of keys, as the statement is prepared once. */
const ASK =
  "SELECT seq, dedupe_hash AS hash FROM event WHERE dedupe_hash = ANY(string_to_array(?1, ',')::bytea[])";

/** The key stands on its event's row under a unique index: what is kept here is only what the open transaction knows of it. */
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

  /** Also at the beginning and at the end: what it knew is asked for again. */
  undoTo(): void {
    this.#known = new Map();
    this.#asked = Promise.resolve();
  }
}

function nameOf(hash: Uint8Array): string {
  return hash.toHex();
}

/** A work that awaits something other than its transaction would hold every writer of every node. */
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

  /** No statement waits for its answer, and none was answered since the look before. */
  #look(): void {
    this.#cancel = systemClock.after(IDLE_WITHIN_MS, () => this.#look());
    if (this.#connection === null || this.#connection.unanswered > 0) return;
    const { answers } = this.#connection;
    if (answers === this.#answers)
      this.#fail(new Error("A transaction's work awaited something other than its transaction."));
    this.#answers = answers;
  }
}
