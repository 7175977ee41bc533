/**
 * The store on PostgreSQL: one writer at a time of all nodes together, in groups; reads on connections of their own. It goes on by itself after
 * the database was away, and tells this process's listeners what other nodes, and people with SQL of their own, have touched.
 */
import { SQL } from "bun";
import { type Clock, Loop, systemClock } from "../ground/clock.ts";
import type { DatabaseUrl } from "../ground/database-url.ts";
import { GroupCommit } from "./group-commit.ts";
import {
  ANYWHERE,
  type Fence,
  type FencedStore,
  type GatheredWork,
  type LookAhead,
  type Origin,
  type Reader,
  type Store,
  StoreUnavailable,
  type Topic,
  type Touched,
  type Writer,
} from "./port.ts";
import { connectionOptions, PostgresConnection } from "./postgres-connection.ts";
import { ConnectionLost } from "./postgres-error.ts";
import { PostgresGroup, TOUCHED_CHANNEL } from "./postgres-group.ts";
import { refuseUnfit } from "./postgres-look.ts";
import { migratePostgres } from "./postgres-migrate.ts";
import { CommitListeners } from "./transaction.ts";

const LOOK_EVERY_MS = 1_000;
/** Reads at once; those behind them wait. */
const MOST_READERS = 4;
/** A reader that nobody needed for so long is closed: what stands between may have forgotten it, and says nothing. */
const READER_IDLE_MS = 60_000;
/** A node that has heard nothing for so long tells itself something, and listens anew where it does not hear that either. */
const ASK_AFTER_MS = 5_000;
const DEAF_AFTER_MS = 12_000;
/** Of a read whose connection was lost: with the first one. */
const MAX_READS = 2;

interface PostgresOptions {
  clock: Clock;
  /** Told the size of every committed group, for metrics. */
  onGroup?: (size: number) => void;
  /** Told when the database cannot be used (why, in a sentence), and null when it can again. */
  onTrouble?: (trouble: string | null) => void;
  /** Told before a database is brought to this executable's schema; `from` 0: an empty one. */
  onMigrate?: (schema: { from: number; to: number }) => void;
}

/** A PostgreSQL store, and what only several nodes of one have use for. */
interface PostgresStore extends Store {
  /** Tells this process from every other that writes to the database. */
  readonly node: string;
}

/** Connects, makes or migrates the schema. Throws StoreUnavailable, UnfitServer or a MigrationRefused. */
export async function openPostgres(place: DatabaseUrl, options: PostgresOptions): Promise<PostgresStore> {
  const connection = await PostgresConnection.open(place, "relay migration");
  try {
    await refuseUnfit(connection);
    await migratePostgres(connection, options.clock, options.onMigrate);
  } finally {
    await connection.close();
  }
  const store = new OpenPostgres(place, options);
  await store.hear();
  return store;
}

class OpenPostgres implements PostgresStore {
  readonly node = crypto.randomUUID();
  readonly #place: DatabaseUrl;
  readonly #database: PostgresGroup;
  readonly #group: GroupCommit;
  readonly #readers: Readers;
  readonly #listeners = new CommitListeners();
  readonly #watchers = new Set<(seen: { foreignChange: boolean }) => void>();
  readonly #looks: Loop;
  readonly #onTrouble: (trouble: string | null) => void;
  #stopHearing: () => Promise<void> = async () => undefined;
  #heardMs = systemClock.monotonicMs();
  #foreignChange = false;
  #trouble: string | null = null;
  #closed = false;

  constructor(
    place: DatabaseUrl,
    { clock, onGroup = () => undefined, onTrouble = () => undefined }: PostgresOptions,
  ) {
    this.#place = place;
    this.#onTrouble = onTrouble;
    this.#database = new PostgresGroup({
      place,
      node: this.node,
      onTrouble: (trouble) => this.#tellTrouble(trouble),
    });
    this.#readers = new Readers(place);
    this.#group = new GroupCommit(this.#database, {
      onGroup,
      onTouch: (touched) => this.#listeners.tell(touched),
    });
    this.#looks = new Loop({
      clock,
      everyMs: LOOK_EVERY_MS,
      turn: async () => this.#look(),
      onError(error) {
        throw error;
      },
    });
  }

  /** Hears what others touch, from now on and again after each connection that was lost. */
  async hear(): Promise<void> {
    const hearing = new SQL({
      ...connectionOptions(this.#place),
      connection: { application_name: "relay listener" },
    });
    this.#heardMs = systemClock.monotonicMs();
    const heard = await hearing.listen(
      TOUCHED_CHANNEL,
      (notice) => this.#hearOthers(notice),
      // What was told while nobody listened was heard by nobody.
      () => {
        this.#foreignChange = true;
      },
    );
    const stop = async (): Promise<void> => {
      await heard.unlisten().catch(() => undefined);
      await hearing.close({ timeout: 0 }).catch(() => undefined);
    };
    if (this.#closed) return await stop();
    this.#stopHearing = stop;
    this.#foreignChange = false;
  }

  read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("The store is closed."));
    return this.#readers.read(work);
  }

  write<Result>(origin: Origin, work: (tx: Writer) => Promise<Result>): Promise<Result> {
    return this.#group.add(origin, work);
  }

  gather<Draft, Result>(
    origin: Origin,
    work: GatheredWork<Draft, Result>,
    lookAhead?: LookAhead<Draft>,
  ): (draft: Draft) => Promise<Result> {
    return (draft) => this.#group.addDraft(origin, work, draft, { lookAhead });
  }

  behind(fence: Fence): FencedStore {
    return {
      read: (work) => this.read(work),
      write: (origin, work) => this.#group.add(origin, work, fence),
      tend: () => this.tend(),
      letsPass: (tx) => this.#letsPass(fence, tx),
    };
  }

  async letsPass(): Promise<boolean> {
    return true;
  }

  async #letsPass(fence: Fence, tx: Reader): Promise<boolean> {
    try {
      await fence(tx);
      return true;
    } catch (error) {
      if (!this.#database.connection.inTransaction) throw error;
      return false;
    }
  }

  listen(work: (touched: Touched) => void, topics?: readonly Topic[]): () => void {
    return this.#listeners.add(work, topics);
  }

  get trouble(): string | null {
    return this.#trouble;
  }

  watch(work: (seen: { foreignChange: boolean }) => void): () => void {
    this.#watchers.add(work);
    if (this.#watchers.size === 1) void this.#looks.start();
    return () => {
      this.#watchers.delete(work);
      if (this.#watchers.size === 0) void this.#looks.stop();
    };
  }

  /** The server looks after its own files. */
  async tend(): Promise<boolean> {
    return false;
  }

  async warm(): Promise<void> {}

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#group.close();
    this.#closed = true;
    await this.#looks.stop();
    await this.#readers.close();
    await this.#database.close();
    await this.#stopHearing();
  }

  #look(): undefined {
    this.#database.look();
    this.#readers.look();
    this.#lookForDeafness();
    const foreignChange = this.#foreignChange;
    this.#foreignChange = false;
    for (const work of [...this.#watchers]) work({ foreignChange });
  }

  /** A connection that is cut off silently hears nothing, and nobody says so. */
  #lookForDeafness(): void {
    const silentMs = systemClock.monotonicMs() - this.#heardMs;
    if (silentMs < ASK_AFTER_MS) return;
    const notice = JSON.stringify({ node: this.node });
    const asked = this.read((tx) => tx.get("SELECT pg_notify(?1, ?2)", TOUCHED_CHANNEL, notice));
    void asked.catch(() => undefined);
    if (silentMs < DEAF_AFTER_MS) return;
    const stopDeaf = this.#stopHearing;
    void this.hear()
      .then(() => {
        this.#foreignChange = true;
      })
      .catch(() => undefined)
      .finally(stopDeaf);
  }

  #hearOthers(notice: string): void {
    this.#heardMs = systemClock.monotonicMs();
    const { node, topics } = JSON.parse(notice) as Notice;
    if (node === this.node) return;
    if (topics === undefined) {
      this.#foreignChange = true;
      return;
    }
    const touched = Object.entries(topics).map(
      ([topic, ids]) => [topic as Topic, new Set(ids ?? [ANYWHERE])] as const,
    );
    this.#listeners.tell(new Map(touched));
  }

  #tellTrouble(trouble: string | null): void {
    if ((trouble === null) === (this.#trouble === null)) return;
    this.#trouble = trouble;
    this.#onTrouble(trouble);
  }
}

/** Without `topics`: somebody wrote by SQL of their own. A topic without ids: any. */
interface Notice {
  node?: string;
  topics?: Record<string, string[] | null>;
}

/** Connections that read, opened as they are needed. */
class Readers {
  readonly #place: DatabaseUrl;
  readonly #free: { reader: PostgresConnection; sinceMs: number }[] = [];
  readonly #all = new Set<PostgresConnection>();
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  constructor(place: DatabaseUrl) {
    this.#place = place;
  }

  /** In a snapshot of its own. */
  async read<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    if (this.#busy >= MOST_READERS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#busy += 1;
    try {
      for (let turn = 1; ; turn++) {
        try {
          return await this.#readOnce(work);
        } catch (error) {
          if (turn === MAX_READS || !(error instanceof ConnectionLost)) throw error;
        }
      }
    } finally {
      this.#busy -= 1;
      this.#waiting.shift()?.();
    }
  }

  look(): void {
    for (const reader of this.#all) reader.look();
    const idle = this.#free.filter(({ sinceMs }) => systemClock.monotonicMs() - sinceMs > READER_IDLE_MS);
    for (const one of idle) {
      this.#free.splice(this.#free.indexOf(one), 1);
      this.#all.delete(one.reader);
      void one.reader.close();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((reader) => reader.idle()));
    await Promise.all([...this.#all].map((reader) => reader.close()));
  }

  async #readOnce<Result>(work: (tx: Reader) => Promise<Result>): Promise<Result> {
    const reader = this.#free.pop()?.reader ?? (await this.#open());
    try {
      reader.exec("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      return await work(reader);
    } finally {
      // Whoever is next comes behind it.
      reader.exec("COMMIT");
      reader.takeFailure();
      if (reader.lost) this.#all.delete(reader);
      else this.#free.push({ reader, sinceMs: systemClock.monotonicMs() });
    }
  }

  async #open(): Promise<PostgresConnection> {
    const reader = await PostgresConnection.open(this.#place, "relay reader");
    this.#all.add(reader);
    return reader;
  }
}
