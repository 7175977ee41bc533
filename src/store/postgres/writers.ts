/**
 * The state that the groups of all scopes of a process share: the connections, the flush, the notifications, and who wrote everything last.
 */
import type { PostgresConnection } from "./connection.ts";
import type { NoRoom, ReadOnly } from "./error.ts";
import { PostgresFlush } from "./flush.ts";
import type { PostgresLiveness } from "./liveness.ts";
import { CHANGES_CHANNEL, Notices } from "./notification.ts";
import { WriterPool } from "./writer-pool.ts";

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

/** Notifies the other nodes when the transaction commits. */
export const TELL = "SELECT pg_notify(?1, ?2)";
/**
 * Begins the name of a node in `writer_turn`. A node of an earlier version stores its name without it, and SQL of other programs stores no name. Both
 * hold the lock of everything and do not count.
 */
export const COUNTS = "n:";

/** The nodes that wrote last: everything, with the number of such commits, and a scope. */
export interface Begun {
  node: string;
  number: number;
  last: string | null;
}

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
  #everything: Pick<Begun, "node" | "number"> = { node: "", number: 0 };

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

  get everything(): Pick<Begun, "node" | "number"> {
    return this.#everything;
  }

  /** Compares who wrote everything with what this process knows. */
  compareEverything({ node, number }: Pick<Begun, "node" | "number">): void {
    const known = this.#everything;
    const isKnown = node === known.node && number === known.number;
    if (!isKnown || !node.startsWith(COUNTS)) this.version += 1;
    if (!isKnown) this.#everything = { node, number };
  }

  /** Records that this process wrote everything, so that it does not take its own commit for another's. */
  recordEverything(number: number): void {
    this.#everything = { node: this.name, number };
  }

  async close(): Promise<void> {
    await this.pool.close();
    await this.notices.close(this.flush.isOpen);
    await this.flush.close();
  }
}
