/**
 * Gives each work of a group its view of the open transaction: nested attempts, callbacks after the commit, and changed topics. It never begins or
 * ends the transaction.
 */
import {
  ANYWHERE,
  type ChangedTopics,
  type DedupeKeys,
  type EventNumbers,
  type PrefetchReader,
  type Reader,
  type SharedTransaction,
  type SqlArguments,
  type SqlNames,
  type Topic,
  type Writer,
} from "../port.ts";

/** The connection of a group's transaction. */
export interface GroupConnection extends Reader {
  run(sql: string, ...values: SqlArguments): Promise<number>;
  runEach(sql: string, rows: readonly SqlNames[]): Promise<number>;
  post(sql: string, ...values: SqlArguments): Promise<void>;
  postEach(sql: string, rows: readonly SqlNames[]): Promise<void>;
  /** Resolves when every posted statement has its response. Throws the first failure. */
  settle(): Promise<void>;
  /** Returns the first failure of the transaction, which may have caused the given error. */
  firstOf(error: unknown): unknown;
  /** Sends reads before they are needed. Absent on an embedded database. */
  readonly prefetch?: Reader;
  /** Numbers for new events of the open transaction. Absent if this connection has the only writer. */
  readonly numbers?: EventNumbers;
  /** Runs a statement without a result, in order with the others. */
  exec(sql: string): void;
  /** False after the database rolled the transaction back by itself. */
  readonly inTransaction: boolean;
}

/** Deduplication keys that can be undone with a part of the transaction. */
export interface UndoableKeys extends DedupeKeys {
  readonly mark: number;
  undoTo(mark: number): void;
}

/** The state that the works of a transaction share. */
export interface Shared {
  version: number;
  committed: CommitEffects;
  /** Null if each work has its own savepoint. */
  transaction: SharedTransaction | null;
}

/** One work's writer. It becomes unusable when the work ends. */
export class GroupWriter implements Writer {
  readonly #connection: GroupConnection;
  readonly committed: (() => void)[] = [];
  readonly changes: (readonly [topic: Topic, id: string])[] = [];
  isQuiet = false;
  readonly #shared: Shared;
  readonly #keys: UndoableKeys;
  #depth = 0;
  #open = true;
  #failedAttempt = false;

  /** In a shared transaction, a failed attempt has no savepoint. `failedAttempt` then tells the group to roll back everything. */
  constructor(connection: GroupConnection, keys: UndoableKeys, shared: Shared) {
    this.#connection = connection;
    this.#keys = keys;
    this.#shared = shared;
  }

  suppressWakeups(): void {
    this.isQuiet = true;
  }

  get foreignVersion(): number {
    return this.#shared.version;
  }

  get shared(): SharedTransaction | null {
    return this.#shared.transaction;
  }

  get failedAttempt(): boolean {
    return this.#failedAttempt;
  }

  get prefetch(): PrefetchReader | undefined {
    return this.#open ? makePrefetchReader(this.#connection, this.#keys, this.#shared.version) : undefined;
  }

  get numbers(): EventNumbers | undefined {
    return this.#connection.numbers;
  }

  get<Row>(sql: string, ...values: SqlArguments): Promise<Row | null> {
    if (!this.#open) return Promise.reject(ended());
    return this.#connection.get<Row>(sql, ...values);
  }

  all<Row>(sql: string, ...values: SqlArguments): Promise<Row[]> {
    if (!this.#open) return Promise.reject(ended());
    return this.#connection.all<Row>(sql, ...values);
  }

  run(sql: string, ...values: SqlArguments): Promise<number> {
    if (!this.#open) return Promise.reject(ended());
    return this.#connection.run(sql, ...values);
  }

  post(sql: string, ...values: SqlArguments): Promise<void> {
    if (!this.#open) return Promise.reject(ended());
    return this.#connection.post(sql, ...values);
  }

  postEach(sql: string, rows: readonly SqlNames[]): Promise<void> {
    if (!this.#open) return Promise.reject(ended());
    return this.#connection.postEach(sql, rows);
  }

  runEach(sql: string, rows: readonly SqlNames[]): Promise<number> {
    if (!this.#open) return Promise.reject(ended());
    return this.#connection.runEach(sql, rows);
  }

  attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    if (!this.#open) return Promise.reject(ended());
    return this.#shared.transaction === null ? this.#attemptCarefully(work) : this.#attemptPlainly(work);
  }

  async #attemptCarefully<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#depth += 1;
    const savepoint = `attempt_${this.#depth}`;
    const [callbacks, changes, keys] = [this.committed.length, this.changes.length, this.#keys.mark];
    this.#connection.exec(`SAVEPOINT ${savepoint}`);
    try {
      const result = await work();
      await this.#connection.settle();
      this.#connection.exec(`RELEASE ${savepoint}`);
      return result;
    } catch (error) {
      const first = this.#connection.firstOf(error);
      this.committed.length = callbacks;
      this.changes.length = changes;
      this.#keys.undoTo(keys);
      if (this.#connection.inTransaction) {
        this.#connection.exec(`ROLLBACK TO ${savepoint}`);
        this.#connection.exec(`RELEASE ${savepoint}`);
      }
      throw first;
    } finally {
      this.#depth -= 1;
    }
  }

  async #attemptPlainly<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      this.#failedAttempt = true;
      throw error;
    }
  }

  get keys(): DedupeKeys {
    if (!this.#open) throw ended();
    return this.#keys;
  }

  afterCommit(work: () => void): void {
    if (!this.#open) throw ended();
    this.committed.push(work);
  }

  notify(topic: Topic, id?: string | number): void {
    if (!this.#open) throw ended();
    const named = id === undefined ? ANYWHERE : String(id);
    const last = this.changes.at(-1);
    // Many rows of one topic often follow each other.
    if (last?.[0] !== topic || last[1] !== named) this.changes.push([topic, named]);
  }

  /** Ends the writer, so that a work that still uses it gets an error instead of writing into another transaction. */
  end(): void {
    this.#open = false;
  }
}

/** Returns undefined if the connection cannot prefetch. */
export function makePrefetchReader(
  { prefetch, numbers }: GroupConnection,
  keys: DedupeKeys,
  foreignVersion: number | null,
): PrefetchReader | undefined {
  if (prefetch === undefined) return undefined;
  return {
    get: (sql, ...values) => prefetch.get(sql, ...values),
    all: (sql, ...values) => prefetch.all(sql, ...values),
    keys,
    numbers,
    foreignVersion,
  };
}

function ended(): Error {
  return new Error("This transaction has ended. A work may await only its transaction.");
}

/** Collects what happens after a group is durable: callbacks of its works, and changed topics. */
export class CommitEffects {
  readonly works: (() => void)[] = [];
  readonly #changes = new Map<Topic, Set<string>>();
  /** True if every work suppressed wakeups. */
  isQuiet = true;

  add(writer: GroupWriter, { captured }: { captured: boolean }): void {
    this.works.push(...writer.committed);
    this.isQuiet &&= writer.isQuiet;
    for (const [topic, id] of writer.changes) {
      const ids = this.#changes.get(topic) ?? new Set();
      this.#changes.set(topic, ids.add(id));
      if (topic === "record" && captured) this.#changes.set("record_change", new Set());
    }
  }

  /** Makes the transaction that works share which are committed or undone as one. */
  sharedTransaction(suppressCapture: () => void): SharedTransaction {
    const hasChanged = (topic: Topic, id?: string): boolean => {
      const ids = this.#changes.get(topic);
      return ids !== undefined && (id === undefined || ids.has(id));
    };
    return { hasChanged, suppressCapture };
  }

  clear(): void {
    this.works.length = 0;
    this.#changes.clear();
    this.isQuiet = true;
  }

  get changes(): ChangedTopics {
    return this.#changes;
  }

  notify(onChanges: (changes: ChangedTopics) => void): void {
    if (this.#changes.size > 0) onChanges(this.#changes);
    for (const work of this.works) work();
  }
}

interface Listener {
  work: (changes: ChangedTopics) => void;
  topics: readonly Topic[] | undefined;
}

/** The listeners that receive the changed topics after a commit. */
export class CommitListeners {
  readonly #listeners = new Set<Listener>();

  /** Adds a listener of `topics`, by default of any. Returns a function that removes it. */
  add(work: (changes: ChangedTopics) => void, topics?: readonly Topic[]): () => void {
    const listener = { work, topics };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  notify(changes: ChangedTopics): void {
    for (const { work, topics } of [...this.#listeners])
      if (topics === undefined || topics.some((topic) => changes.has(topic))) work(changes);
  }
}
