/** What group commit needs of its database: how the one transaction begins and ends, and when what was written is durable. */
import type { ChangedTopics } from "../port.ts";
import type { GroupConnection, UndoableKeys } from "./transaction.ts";

export interface GroupDatabase {
  readonly connection: GroupConnection;
  readonly keys: UndoableKeys;
  /** How long a group may take, in ms, and how many drafts one call of a gathered work is given: at first, and at most. */
  readonly limit: { groupMs: number; firstDrafts: number; mostDrafts: number };
  /**
   * Begins the one transaction there is. Answers another number than before where another process has committed since. Throws StoreUnavailable.
   */
  begin(): Promise<number>;
  /** Whether it takes `begin` while the commit before it is on its way. */
  readonly beginsAhead: boolean;
  /** Whether what is asked now is asked in the transaction that begins. */
  readonly isBegun: boolean;
  /** Whether what is written from here on is captured; it is when a transaction begins. */
  capture(captured: boolean): void;
  /** Resolves once the next transaction sees what was written; throws where nothing of it is kept, and then nothing is left to undo. */
  commit(changes: ChangedTopics, ending: CommitOptions): Promise<CommitResult>;
  rollBack(): void;
  /** Whether a group that ended with this error, with nothing kept, is worth another run. */
  mayRunAgain(error: unknown): boolean;
  /** Looks, until it is stopped, that a work awaits nothing but its transaction. */
  watch(): WorkWatch;
}

export interface CommitOptions {
  /** No other process has to look anew. */
  isQuiet: boolean;
  /** Others wait for the next transaction. */
  isFollowed: boolean;
  works: number;
}

export interface WorkWatch {
  /** The work, or that it awaits something else. */
  over<Result>(working: Promise<Result>): Promise<Result>;
  stop(): void;
}

/** `durable`: resolves once it is, and throws where it was lost before; null: it is. */
export interface CommitResult {
  durable: Promise<void> | null;
}
