/**
 * The database port: all that the house knows of its database. A reader and a writer are different types, so rights are types.
 * SQL is written in the room whose noun it serves, in what SQLite and PostgreSQL share; its values are named, `$name`, or where there are few
 * they are counted, `?1`, `?2`, …
 */

export type SqlValue = string | number | bigint | boolean | null | Uint8Array;
/** Values by name; a statement that names one which is missing throws. */
export type SqlNames = Readonly<Record<string, SqlValue>>;
export type SqlArguments = SqlValue[] | [SqlNames];

/** What a write touched, told after its commit to whoever caches it or waits for it. */
export type Topic =
  /** A relay, its secrets included. */
  | "relay"
  /** An environment's hold, settings and processor secret. */
  | "environment"
  /** An event that may run now; with the relay's id. */
  | "event"
  /** One that waits as its relay does; with the relay's id, as that may have been resumed by a write that this one did not know of. */
  | "event_left"
  /** An event that came, ran, or is to run again. */
  | "event_moved"
  | "record"
  /** A record that change capture looks at: any write but those of relays and erasures. The store adds it to `record`. */
  | "record_change"
  /** A bulk replay that began. */
  | "bulk_replay"
  /** A problem that was raised or cleared. */
  | "problem"
  | "alert"
  /** Calls of receivers that were noted. */
  | "call"
  /** What somebody did, as the audit has it. */
  | "audit"
  /** What remains of a person, or of an event, is to be removed. */
  | "erasure"
  /** Who runs an environment by itself. */
  | "lease";
/** All but those of an event whose relay is always named. */
export type PlainTopic = Exclude<Topic, "event" | "event_left">;
/** Stands for an environment where none was named: it may be any. */
export const ANYWHERE = "";
/** Each topic with what was named with it: an event's relays by id, else environments by number, or `ANYWHERE`. */
export type ChangedTopics = ReadonlyMap<Topic, ReadonlySet<string>>;

/** A consistent view of the store. */
export interface Reader {
  /** The first row, or null. */
  get<Row>(sql: string, ...values: SqlArguments): Promise<Row | null>;
  /** Every row. */
  all<Row>(sql: string, ...values: SqlArguments): Promise<Row[]>;
}

/** An open transaction. */
export interface Writer extends Reader {
  /** Runs a statement for its effect; answers how many rows it changed. */
  run(sql: string, ...values: SqlArguments): Promise<number>;
  /**
   * Runs a statement of which nobody asks how many rows it changed: resolves before its answer where the database is another process. Where it
   * fails, the transaction fails, or the attempt it is in.
   */
  post(sql: string, ...values: SqlArguments): Promise<void>;
  /** `post` for each of `rows`. */
  postEach(sql: string, rows: readonly SqlNames[]): Promise<void>;
  /** Runs it once for each of `rows`; answers how many rows they changed together. */
  runEach(sql: string, rows: readonly SqlNames[]): Promise<number>;
  /** Runs `work` so that all of it is undone, and nothing else, when it throws. */
  attempt<Result>(work: () => Promise<Result>): Promise<Result>;
  /** For reads that will be asked for in a moment; absent where an answer is at hand. */
  readonly prefetch?: PrefetchReader | undefined;
  /** Calls `work` once, after this transaction is durable; never when it is rolled back. */
  afterCommit(work: () => void): void;
  /** The same for all works of a transaction that is kept or undone as one; null where this work may be undone alone. */
  readonly shared: SharedTransaction | null;
  /** Another one than at an earlier write where another process has committed since, unless that kept quiet. */
  readonly foreignVersion: number;
  /** Says that no other process has to look anew because of what this work writes. */
  suppressWakeups(): void;
  /** Keys that are each spent once. */
  readonly keys: DedupeKeys;
  /** Names what this transaction changes; the store's listeners are told once it is durable, never when it is rolled back. */
  notify(topic: PlainTopic, environmentId?: number): void;
  notify(topic: "event" | "event_left", relayId: string): void;
}

/**
 * A transaction whose answers take a round trip. What is read here is sent at once and need not be awaited: asked for again in the same words
 * and with the same values, it is answered by that, unless something was written meanwhile that it may tell of.
 */
export interface PrefetchReader extends Reader {
  readonly keys: Pick<DedupeKeys, "prefetch">;
}

export interface SharedTransaction {
  /** Whether a work before this one touched it; without an id: any of the topic. */
  hasChanged(topic: Topic, id?: string): boolean;
  /** What this work writes from here on is not captured, as though `relay` wrote it. */
  suppressCapture(): void;
}

/** A memory of keys, each with the number of the row it was kept for. It may find too much and never too little: the row has the whole key. */
export interface DedupeKeys {
  /** Says which keys are about to be asked for, so that a database in another process is asked once for all. */
  prefetch?(hashes: readonly Uint8Array[]): Promise<void>;
  /** The numbers that the key may have been kept for; at once where memory knows. `hash`: at least 8 bytes, evenly spread. */
  find(hash: Uint8Array): readonly number[] | Promise<readonly number[]>;
  /** Keeps the key for the row of this number, above 0, in this transaction. */
  add(hash: Uint8Array, value: number): undefined | Promise<void>;
  /** A step of forgetting keys whose rows are all below `value`; those rows are gone for good. Answers whether there may be more. */
  deleteBefore(value: number): Promise<boolean>;
  /** Forgets a key that an earlier version kept. */
  deleteSlot(hash: Uint8Array, value: number): Promise<void>;
}

/** Who writes. Change capture skips `relay` and `erasure`. */
export type Origin = "app" | "dashboard" | "receipt" | "relay" | "erasure";

export type BatchWork<Draft, Result> = (tx: Writer, drafts: readonly Draft[]) => Promise<readonly Result[]>;

/** Asks ahead for what drafts need. Nothing waits for the answers, and a failure is nobody's until it is asked for again. */
export type Prefetch<Draft> = (
  ahead: PrefetchReader,
  drafts: readonly Draft[],
) => readonly Promise<unknown>[];

/** Throws unless the writes behind it may go on; nothing of them is done then. */
export type Fence = (tx: Reader) => Promise<void>;

export interface Store {
  /** A consistent read; never sees an open transaction and never waits for a writer. */
  read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result>;
  /**
   * ONE transaction: resolves after a durable commit; all of `work` is undone when it throws, and its error is the answer.
   * `work` awaits nothing but its transaction, and may be run again when it or a neighbour fails: what it changes outside the
   * transaction must not add up. Throws StoreUnavailable when the database itself cannot write.
   */
  write<Result>(origin: Origin, work: (tx: Writer) => Promise<Result>): Promise<Result>;
  /**
   * As `write`, for drafts that many bring: those that wait together are one call of `work`, which answers each in its place. Where anything
   * fails, it is called again for each draft by itself. `prefetch` asks for what the work will read, while the transaction begins.
   */
  batchWrites<Draft, Result>(
    origin: Origin,
    work: BatchWork<Draft, Result>,
    prefetch?: Prefetch<Draft>,
  ): (draft: Draft) => Promise<Result>;
  /** The same store for writes that are allowed only while `fence` passes; it is asked inside their transaction, once for those that share it. */
  withFence(fence: Fence): FencedStore;
  /** Whether its fence, if it has one, lets pass what is done in a transaction that others began. */
  fenceHolds(tx: Reader): Promise<boolean>;
  /**
   * Calls back after every commit of this process that touched one of `topics`, by default any of them, before its writers are answered. The
   * answer stops it.
   */
  listen(work: (changes: ChangedTopics) => void, topics?: readonly Topic[]): () => void;
  /** Why writes are refused at present, all of them or those that need new room, in a sentence for the log; null: none is. */
  readonly trouble: string | null;
  /** Calls back every second: whether another process changed the database since. The answer stops it. */
  watch(work: (seen: { foreignChange: boolean }) => void): () => void;
  /**
   * One small step of looking after the file: gives back room that deleted rows left, `everything` of it where nothing they held may be left.
   * Answers whether there is more to do.
   */
  vacuumStep(options?: { everything?: boolean }): Promise<boolean>;
  /** Brings into memory what the first key would wait for, in small steps. */
  warm(): Promise<void>;
  /** Waits for what was begun, then closes. Later calls throw StoreUnavailable. */
  close(): Promise<void>;
}

/** What a room needs of a store that may run only while this server holds the lease. */
export type FencedStore = Pick<Store, "read" | "write" | "vacuumStep" | "fenceHolds">;

/** The database cannot be used now: full, locked, read-only, failing or closed. Nothing of the work was kept, but for `OutcomeUnknown`. */
export class StoreUnavailable extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = "StoreUnavailable";
  }
}

/** The database was lost in the middle of a commit, and cannot be asked what came of it: all of the work is there, or nothing. */
export class OutcomeUnknown extends StoreUnavailable {}

/** The database refuses the rest of one work because a statement of it failed; it takes the group's other works. */
export class WorkUndone extends StoreUnavailable {}

/** A unique constraint refused the row; `work` may catch it inside `attempt`. */
export class UniqueViolation extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = "UniqueViolation";
  }
}
