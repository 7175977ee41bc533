/**
 * Defines the database port, which is all that the service knows of its database. A reader and a writer are different types, so rights are types.
 * Each module writes its own SQL, in the dialect that SQLite and PostgreSQL share. Values are named, `$name`, or counted, `?1`, `?2`, …
 */

export type SqlValue = string | number | bigint | boolean | null | Uint8Array;
/** Values by name. A statement that names a missing value throws. */
export type SqlNames = Readonly<Record<string, SqlValue>>;
export type SqlArguments = SqlValue[] | [SqlNames];

/** The kind of thing that a write changed. Listeners that cache it or wait for it receive it after the commit. */
export type Topic =
  /** A relay or its secrets. */
  | "relay"
  /** An environment's hold, settings and processor secret. */
  | "environment"
  /** An event that may run now, named by its relay's id. */
  | "event"
  /** An event that waits with its relay, named by the relay's id, because a concurrent write may have resumed the relay. */
  | "event_left"
  /** An event that arrived, ran, or will run again. */
  | "event_moved"
  | "record"
  /** A record that change capture must read. The store adds it to `record`, except for writes of relays, erasures and moves. */
  | "record_change"
  /** A bulk replay that began. */
  | "bulk_replay"
  /** The stored schedule of automatic backups. */
  | "backup_schedule"
  /** The endpoint that backups are copied to. */
  | "backup_copy"
  /** A problem that was raised or cleared. */
  | "problem"
  | "alert"
  /** A capture that was created. */
  | "request_capture"
  /** Recorded requests of receivers. */
  | "call"
  /** An entry of the audit log. */
  | "audit"
  /** Data of an erased person or an expunged event that must be removed. */
  | "erasure"
  /** The node that runs an environment. */
  | "lease";
/** The topics that do not name a relay. */
export type PlainTopic = Exclude<Topic, "event" | "event_left">;
/** Means that a change named no environment, so any environment may be affected. */
export const ANYWHERE = "";
/** The changed topics, each with relay ids for events, otherwise environment numbers or `ANYWHERE`. */
export type ChangedTopics = ReadonlyMap<Topic, ReadonlySet<string>>;

/** A consistent view of the store. */
export interface Reader {
  /** Returns the first row, or null. */
  get<Row>(sql: string, ...values: SqlArguments): Promise<Row | null>;
  /** Returns every row. */
  all<Row>(sql: string, ...values: SqlArguments): Promise<Row[]>;
}

/** An open transaction. */
export interface Writer extends Reader {
  /** Runs a statement and returns how many rows it changed. */
  run(sql: string, ...values: SqlArguments): Promise<number>;
  /**
   * Runs a statement without a row count. On a remote database, it resolves before the response. If the statement fails, the surrounding attempt
   * or the transaction fails.
   */
  post(sql: string, ...values: SqlArguments): Promise<void>;
  /** Posts the statement once for each of `rows`. */
  postEach(sql: string, rows: readonly SqlNames[]): Promise<void>;
  /** Runs the statement once for each of `rows` and returns the total number of changed rows. */
  runEach(sql: string, rows: readonly SqlNames[]): Promise<number>;
  /** Runs `work` and undoes only its writes if it throws. */
  attempt<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Sends reads before they are needed. Absent on an embedded database, which answers at once. */
  readonly prefetch?: PrefetchReader | undefined;
  /** Calls `work` once after this transaction is durable, and never if it is rolled back. */
  afterCommit(work: () => void): void;
  /** The transaction that several works share, committed or undone as one. Null if this work may be undone separately. */
  readonly shared: SharedTransaction | null;
  /** A number that changes when another process commits, except for commits with suppressed wakeups. */
  readonly foreignVersion: number;
  /** Keeps `foreignVersion` of other processes unchanged, because they need not read what this work writes. */
  suppressWakeups(): void;
  /** Deduplication keys, each used once. */
  readonly keys: DedupeKeys;
  /** Numbers for new events. Absent if no other writer can store an event meanwhile. Then the next number is the largest plus one. */
  readonly numbers?: EventNumbers | undefined;
  /** Notifies the store's listeners of a change, after this transaction is durable. A rolled back transaction notifies no listener. */
  notify(topic: PlainTopic, environmentId?: number): void;
  notify(topic: "event" | "event_left", relayId: string): void;
}

/**
 * Sends reads of a remote transaction before they are needed. The caller need not await them. The same statement with the same values then uses
 * the response, unless a write since then may have changed it.
 */
export interface PrefetchReader extends Reader {
  readonly keys: Pick<DedupeKeys, "prefetch">;
  readonly numbers?: Pick<EventNumbers, "prefetch" | "newest"> | undefined;
  /** The `foreignVersion` of the works of the transaction. Null if it is not known yet. */
  readonly foreignVersion: number | null;
}

export interface SharedTransaction {
  /** Returns whether an earlier work of the transaction notified of the topic, for this id or for any. */
  hasChanged(topic: Topic, id?: string): boolean;
  /** Excludes this work's later writes from change capture, as if the origin were `relay`. */
  suppressCapture(): void;
}

/** Stores deduplication keys, each with the number of its row. A search may return wrong rows but never misses one, so the caller compares the row. */
export interface DedupeKeys {
  /** Reads keys that will be searched soon, in one request to a remote database. */
  prefetch?(hashes: readonly Uint8Array[]): Promise<void>;
  /** Returns the numbers of the rows that may have the key, without a promise if memory knows them. `hash` has at least 8 evenly distributed bytes. */
  find(hash: Uint8Array): readonly number[] | Promise<readonly number[]>;
  /** Stores the key of a row in this transaction. The row's number is above 0. */
  add(hash: Uint8Array, value: number): undefined | Promise<void>;
  /** Deletes some keys of deleted rows, with numbers below `value`. Returns whether there may be more. */
  deleteBefore(value: number): Promise<boolean>;
  /** Deletes a key that an earlier version stored. */
  deleteSlot(hash: Uint8Array, value: number): Promise<void>;
}

/**
 * Gives numbers to new events of one transaction. No number is given twice. The numbers of an environment rise in the order of its commits. Numbers
 * that were drawn and not used leave gaps.
 */
export interface EventNumbers {
  /**
   * The newest event's time, if the transaction may use what the process remembers. Null if it must be read. The inserter of events sets it, so that a later
   * transaction has it.
   */
  newest: NewestTime | null;
  /** Draws the numbers of events that are stored soon, in one request. `oldestMs` is the earliest of their times. */
  prefetch(count: number, oldestMs: number): Promise<void>;
  /** Returns the number of the next event, without a promise if memory has one. `atMs` is its time, if it will be stored. */
  next(atMs?: number): number | Promise<number>;
}

/** The time of the newest event. Null if there is none. */
export interface NewestTime {
  atMs: number | null;
  /** The largest step back of the time that is not recorded. */
  stepMs: number;
}

/** The part of the service that writes. Change capture skips `relay`, `erasure` and `move`, which gives stored data another person. */
export type Origin = "app" | "dashboard" | "receipt" | "relay" | "erasure" | "move";

/**
 * The rows that a write may change: those of one environment, by its number, or any. A write that names an environment changes only rows of this
 * environment, and rows that name no environment and that every write can add. A database may then run it next to writes of other environments.
 */
export type WriteScope = number | typeof EVERYTHING;
export const EVERYTHING = "everything";
/** The scope of rows that belong to no environment and that no work of an environment reads in order to write, such as nodes and sessions. */
export const SERVICE_ROWS = 0;

export type BatchWork<Draft, Result> = (tx: Writer, drafts: readonly Draft[]) => Promise<readonly Result[]>;

/** Sends the reads that drafts need. No caller waits for them, and a failed read is sent again when it is needed. */
export type Prefetch<Draft> = (
  ahead: PrefetchReader,
  drafts: readonly Draft[],
) => readonly Promise<unknown>[];

export interface BatchOptions<Draft> {
  /** Sends the reads of `work` while the transaction begins. */
  prefetch?: Prefetch<Draft>;
  /** Names the scope of a draft's writes. By default it is everything. */
  scopeOf?: (draft: Draft) => WriteScope;
}

/** Throws if the writes that it guards are no longer allowed. None of them is committed then. */
export type Fence = (tx: Reader) => Promise<void>;

export interface Store {
  /** Runs a consistent read, which never sees an open transaction and never waits for a writer. */
  read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` in one transaction and resolves after the durable commit. If `work` throws, its writes are undone and its error is rethrown.
   * `work` must await only its transaction. It may run again when it or another work of the group fails, so its effects outside the
   * transaction must be repeatable. By default its scope is everything. Throws StoreUnavailable if the database cannot write.
   */
  write<Result>(origin: Origin, work: (tx: Writer) => Promise<Result>, scope?: WriteScope): Promise<Result>;
  /**
   * Returns a function that writes one draft, as `write` does. Drafts that wait together are one call of `work`, which returns a result for each. If
   * anything fails, `work` runs again for each draft separately.
   */
  batchWrites<Draft, Result>(
    origin: Origin,
    work: BatchWork<Draft, Result>,
    options?: BatchOptions<Draft>,
  ): (draft: Draft) => Promise<Result>;
  /**
   * Returns the store for writes that `fence` guards. The fence runs in their transaction, once for all that share the fence. `scope` is the scope of
   * writes that name none.
   */
  withFence(fence: Fence, scope?: WriteScope): FencedStore;
  /** Returns whether this store's fence, if it has one, allows writes in the given transaction. */
  fenceHolds(tx: Reader & Pick<PrefetchReader, "foreignVersion">): Promise<boolean>;
  /**
   * Calls `work` after each commit of this process that changed one of `topics`, by default any, before the writers get their results. Returns a
   * function that stops it.
   */
  listen(work: (changes: ChangedTopics) => void, topics?: readonly Topic[]): () => void;
  /** Says in a sentence for the log why all writes, or those that need disk space, fail now. Null if none fails. */
  readonly trouble: string | null;
  /** Calls `work` every second with whether another process changed the database. Returns a function that stops it. */
  watch(work: (seen: { foreignChange: boolean }) => void): () => void;
  /**
   * Frees some of the space of deleted rows. `everything` also removes their content from the file, for erasures. Returns whether there is more to
   * do.
   */
  vacuumStep(options?: { everything?: boolean }): Promise<boolean>;
  /** Loads the deduplication keys into memory in small steps, so that the first search need not wait. */
  warm(): Promise<void>;
  /** Waits for the writes in progress, then closes. Later calls throw StoreUnavailable. */
  close(): Promise<void>;
}

/** The store of work that may run only while this process holds its lease. */
export type FencedStore = Pick<Store, "read" | "write" | "vacuumStep" | "fenceHolds">;

/** Means that the database is full, locked, read-only, failing or closed. No write was stored, except possibly for `OutcomeUnknown`. */
export class StoreUnavailable extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = "StoreUnavailable";
  }
}

/** Means that the connection was lost during a commit. Either all of the work was committed or none of it. */
export class OutcomeUnknown extends StoreUnavailable {}

/** Means that one work failed because a statement of it failed. The group's other works are not affected. */
export class WorkUndone extends StoreUnavailable {}

/** Means that a unique constraint rejected the row. `work` may catch it inside `attempt`. */
export class UniqueViolation extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = "UniqueViolation";
  }
}
