/**
 * Holds the lease of the one server on a SQLite database: a row with an epoch that rises with each server. Every background transaction checks the
 * epoch, so that a server that lost the lease changes nothing more. The lock of the directory (directory-lock.ts) refuses a second server at once,
 * and the lease does if the lock file was removed. It never reads the wall clock.
 */
import { hostname } from "node:os";
import { dirname } from "node:path";
import { type Clock, sleep } from "../../base/clock.ts";
import { isRunning } from "../../base/system.ts";
import {
  type Fence,
  type FencedStore,
  type Reader,
  type Store,
  StoreUnavailable,
  type Writer,
} from "../port.ts";
import { type DirectoryLock, takenError } from "../sqlite/directory-lock.ts";
import { identityOf } from "../sqlite/sqlite.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../table.ts";
import { ALL_ENVIRONMENTS, type LeaseListener, type LeaseManager } from "./lease-holder.ts";

/** The time that a starting server waits for the holder's answer. A running holder checks every second. */
const ANSWER_WITHIN_MS = 3_000;
const ASK_EVERY_MS = 100;

/** A table of one row. Its key is the epoch, so that a server with an older epoch changes nothing. */
const RUNNER_LEASE = defineTable({
  name: "runner_lease",
  key: ["epoch"],
  columns: {
    epoch: integer(),
    /** Null after the lease was given back. */
    holder: orNull(text()),
    host: orNull(text()),
    pid: orNull(integer()),
    lockFile: orNull(text()),
    databaseFile: orNull(text()),
    asked: integer(),
    answered: integer(),
  },
});

type LeaseRow = RowOf<typeof RUNNER_LEASE>;

interface LeaseDeps {
  store: Store;
  /** The database file. */
  file: string;
  lock: DirectoryLock;
  clock: Clock;
}

export class DirectoryLease implements LeaseManager {
  readonly holdsAll = true;
  readonly nodes = { live: 1 };
  readonly #deps: LeaseDeps;
  readonly #epoch: number;
  readonly #store: FencedStore;
  #listener: Pick<LeaseListener, "begin" | "lost" | "renewed"> | null = null;
  #lostTo: string | null = null;
  #unwatch: () => void = () => undefined;

  private constructor(deps: LeaseDeps, epoch: number) {
    this.#deps = deps;
    this.#epoch = epoch;
    this.#store = deps.store.withFence(this.#fence);
  }

  /**
   * Takes the lease. A holder that did not give it back is gone in three cases: this process has its lock file, it had another database file open
   * (this one is a copy), or its process has ended. Otherwise it is asked. If it answers, this throws DataDirectoryTaken with its name.
   */
  static async take(deps: LeaseDeps): Promise<DirectoryLease> {
    const { store, file, lock } = deps;
    const before = await store.read(readLease);
    if (before.holder !== null && !isGone(before, deps) && (await answers(before, deps)))
      throw takenError(dirname(file), before.holder);
    const epoch = before.epoch + 1;
    const taken = await store.write("app", (tx) =>
      tx.run(
        `UPDATE runner_lease SET epoch = $epoch, holder = $holder, host = $host, pid = $pid, lock_file = $lockFile,
           database_file = $databaseFile, asked = 0, answered = 0 WHERE epoch = $before`,
        {
          epoch,
          holder: lock.holder,
          host: hostname(),
          pid: process.pid,
          lockFile: lock.identity,
          databaseFile: identityOf(file),
          before: before.epoch,
        },
      ),
    );
    if (taken !== 1) throw takenError(dirname(file), "another process that started at the same time");
    return new DirectoryLease(deps, epoch);
  }

  /** Throws StoreUnavailable unless this server holds the lease. It runs in the transaction that it guards. */
  readonly #fence: Fence = async (tx) => {
    if (this.#lostTo === null) {
      const row = await tx.get<{ epoch: number }>("SELECT epoch FROM runner_lease");
      if (row?.epoch === this.#epoch) return;
      this.#recordLoss((await readLease(tx)).holder);
    }
    throw new StoreUnavailable(`This server has stopped running events, because ${this.#lostTo} took over.`);
  };

  get lostTo(): string | null {
    return this.#lostTo;
  }

  holds(): boolean {
    return this.#lostTo === null;
  }

  storeOf(): FencedStore {
    return this.#store;
  }

  /** Checks the lease every second from now on. */
  watch(listener: Pick<LeaseListener, "begin" | "lost" | "renewed">): void {
    this.#listener = listener;
    // Ignores errors, because the store reports its own trouble and the next check follows.
    const check = (foreignChange: boolean): void => void this.#check(foreignChange).catch(() => undefined);
    this.#unwatch = this.#deps.store.watch(({ foreignChange }) => check(foreignChange));
    // Looks once now, because another server may have asked or taken over before the store reports changes.
    check(true);
  }

  async start(): Promise<void> {
    await this.#listener?.begin(ALL_ENVIRONMENTS);
  }

  probe(tx: Writer): Promise<unknown> {
    // Writes a new value, because SQLite writes no unchanged page.
    return tx.run("UPDATE runner_lease SET probes = probes + 1");
  }

  count(): null {
    return null;
  }

  async listNodes(): Promise<null> {
    return null;
  }

  /** Gives the lease back if the store still works, so that the next server need not ask. */
  async release(): Promise<void> {
    this.#unwatch();
    if (this.#lostTo !== null) return;
    const { store } = this.#deps;
    await store
      .write("app", (tx) => RUNNER_LEASE.change(tx, { epoch: this.#epoch }, { holder: null }))
      .catch(() => undefined);
  }

  async #check(foreignChange: boolean): Promise<void> {
    const { store, lock } = this.#deps;
    if (this.#lostTo !== null) return;
    if (foreignChange) await this.#readOthers();
    if (this.#lostTo !== null || lock.stands() || store.trouble !== null || !lock.renew()) return;
    await store.write("app", (tx) =>
      RUNNER_LEASE.change(tx, { epoch: this.#epoch }, { lockFile: lock.identity }),
    );
    this.#listener?.renewed();
  }

  /** Answers a server that asks, or records that another server took over. */
  async #readOthers(): Promise<void> {
    const { store } = this.#deps;
    const { epoch, holder, asked, answered } = await store.read(readLease);
    if (epoch !== this.#epoch) return this.#recordLoss(holder);
    if (asked === answered) return;
    await store.write("app", (tx) =>
      tx.run("UPDATE runner_lease SET answered = asked WHERE epoch = ?1", this.#epoch),
    );
  }

  #recordLoss(by: string | null): void {
    if (this.#lostTo !== null) return;
    this.#lostTo = by ?? "another server";
    this.#listener?.lost(this.#lostTo);
  }
}

async function readLease(tx: Reader): Promise<LeaseRow> {
  const row = await RUNNER_LEASE.get(tx, "");
  if (row === null) throw new StoreUnavailable("The database has no row of the server that runs it.");
  return row;
}

/** Returns whether the holder is certainly gone, or never held this file, without asking it. */
function isGone({ lockFile, databaseFile, host, pid }: LeaseRow, { lock, file }: LeaseDeps): boolean {
  if (lockFile === lock.identity || databaseFile !== identityOf(file)) return true;
  return host === hostname() && pid !== null && pid !== process.pid && !isRunning(pid);
}

/** Asks the holder through the database and waits for its response. */
async function answers({ epoch }: LeaseRow, { store, clock }: LeaseDeps): Promise<boolean> {
  const asked = await store.write("app", async (tx) => {
    await tx.run("UPDATE runner_lease SET asked = asked + 1");
    return (await readLease(tx)).asked;
  });
  for (let waited = 0; waited < ANSWER_WITHIN_MS; waited += ASK_EVERY_MS) {
    await sleep(clock, ASK_EVERY_MS);
    const now = await store.read(readLease);
    if (now.epoch !== epoch || now.holder === null) return now.holder !== null;
    if (now.answered >= asked) return true;
  }
  return false;
}
