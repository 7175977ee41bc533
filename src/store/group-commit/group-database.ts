/** Defines what group commit needs of a database: how a transaction begins and ends, and when it is durable. */
import type { ChangedTopics } from "../port.ts";
import type { GroupConnection, UndoableKeys } from "./transaction.ts";

export interface GroupDatabase {
  readonly connection: GroupConnection;
  readonly keys: UndoableKeys;
  /**
   * The target duration of a group, the time after which a waiting work is rejected instead of run, and how many drafts one call of a batch work gets,
   * at first and at most. Times are in milliseconds.
   */
  readonly limit: { groupMs: number; waitMs: number; firstDrafts: number; mostDrafts: number };
  /** Begins the transaction. Returns a number that changes when another process has committed. Throws StoreUnavailable. */
  begin(): Promise<number>;
  /** True if `begin` may run before the previous commit is durable. */
  readonly beginsAhead: boolean;
  /**
   * The number that `begin` returns for an optimistic transaction, which has begun. Its works decide by what the process remembers, and its commit fails if
   * another process has changed that. Null for any other transaction.
   */
  readonly expectedVersion: number | null;
  /** True if reads that are sent now run in the transaction that begins. */
  readonly isBegun: boolean;
  /** Turns change capture of the following writes on or off. It is on when a transaction begins. */
  capture(captured: boolean): void;
  /** Resolves when the next transaction can see the writes. Throws if none of them was stored, and then nothing is left to undo. */
  commit(changes: ChangedTopics, ending: CommitOptions): Promise<CommitResult>;
  rollBack(): void;
  /** Returns whether a group that failed with this error, with no write stored, should run again. */
  mayRunAgain(error: unknown): boolean;
  /** Starts a watch that fails a work that awaits anything but its transaction. */
  watch(): WorkWatch;
}

export interface CommitOptions {
  /** True if other processes need not notice the commit. */
  isQuiet: boolean;
}

export interface WorkWatch {
  /** Resolves with the work's result, or throws if the work awaits something else. */
  over<Result>(working: Promise<Result>): Promise<Result>;
  stop(): void;
}

export interface CommitResult {
  /** Resolves when the commit is durable, and throws if it was lost. Null if it is durable already. */
  durable: Promise<void> | null;
  /** Resolves when an optimistic transaction has ended, also if it failed. Absent if it ended already. */
  ended?: Promise<void>;
}
