/**
 * Copies each new backup to the S3 endpoint, one at a time, newest first. A separate process encrypts and uploads, so that neither a slow endpoint
 * nor a large database affects the service. A failed copy is recorded, and the next turn repeats it.
 */
import { type Clock, Loop } from "../../base/clock.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { ownCommand } from "../../base/own-executable.ts";
import { parseAllowList } from "../../platform/outbound/address.ts";
import { type AddressLookup, makeLookup } from "../../platform/outbound/address-lookup.ts";
import type { Store } from "../../store/port.ts";
import { BackupRefused } from "./backup.ts";
import { requireAllowedAddresses } from "./copy-address.ts";
import { listCopies, listWaitingBackups, recordCopyFailure, removeOldCopies } from "./copy-state.ts";
import { findCopyTarget } from "./copy-target.ts";
import { type BackupProcess, startProcess } from "./schedule.ts";

/** A start has more urgent work. */
const FIRST_TURN_MS = MINUTE_MS;
const TURN_EVERY_MS = 15 * MINUTE_MS;
const TEST_WITHIN_MS = 20_000;

interface BackupCopiesDeps {
  dataDir: string;
  store: Store;
  clock: Clock;
  log: Log;
  /** The private hosts that the operator allows. */
  allowPrivate: readonly string[];
  start: StartCopy;
  /** Looks up the addresses of the endpoint; the system's name servers by default. */
  lookup?: AddressLookup;
}

/** Copies the backup of this name, or only tests the endpoint for null. */
export type StartCopy = (name: string | null) => BackupProcess;

export class BackupCopies {
  readonly #deps: BackupCopiesDeps;
  readonly #loop: Loop;
  readonly #checkAddresses: (endpoint: string) => Promise<void>;
  readonly #processes = new Set<BackupProcess>();
  #running: { name: string; startedAt: number } | null = null;
  #test: Promise<void> | null = null;

  constructor(deps: BackupCopiesDeps) {
    this.#deps = deps;
    const allow = parseAllowList(deps.allowPrivate);
    const { lookup = makeLookup(allow) } = deps;
    this.#checkAddresses = (endpoint) => requireAllowedAddresses(endpoint, allow, lookup);
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: TURN_EVERY_MS,
      turn: () => this.#turn(),
      onError: (error) => deps.log.error("backups were not copied", { cause: (error as Error).message }),
    });
  }

  /** The copy that is being made, or null. */
  get running(): { name: string; startedAt: number } | null {
    return this.#running;
  }

  async start(): Promise<void> {
    await this.#loop.start(FIRST_TURN_MS);
  }

  /** Copies what is new. Does nothing before the start. */
  wake(): void {
    this.#loop.wake();
  }

  /** Writes, reads and deletes a small object at the endpoint, one test at a time. Throws BackupRefused with the reason of a failure. */
  test(): Promise<void> {
    this.#test ??= this.#testOnce().finally(() => {
      this.#test = null;
    });
    return this.#test;
  }

  async #testOnce(): Promise<void> {
    const target = await this.#deps.store.read(findCopyTarget);
    if (target === null) throw new BackupRefused("No S3 endpoint is set: save one first.");
    await this.#checkAddresses(target.endpoint);
    await this.#run(null, TEST_WITHIN_MS);
  }

  /** Ends the loop and a running copy. */
  async stop(): Promise<void> {
    const stopped = this.#loop.stop();
    for (const one of this.#processes) one.stop();
    await stopped;
  }

  async #turn(): Promise<undefined> {
    const { dataDir, store } = this.#deps;
    const target = await store.read(findCopyTarget);
    if (target === null) return;
    const rows = await store.read(listCopies);
    for (const name of listWaitingBackups(dataDir, rows, target)) {
      if (!this.#loop.running || !(await this.#copyOne(name, target.endpoint))) return;
    }
  }

  /** Returns false for a failure, which is recorded. */
  async #copyOne(name: string, endpoint: string): Promise<boolean> {
    const { dataDir, store, clock, log } = this.#deps;
    this.#running = { name, startedAt: clock.now() };
    try {
      await this.#checkAddresses(endpoint);
      await this.#run(name, null);
      log.info("backup copied", { file: name });
      await store.write("app", (tx) => removeOldCopies(tx, dataDir));
      return true;
    } catch (error) {
      if (!this.#loop.running) return false;
      const { message } = error as Error;
      log.error("a backup was not copied", { file: name, cause: message });
      await store.write("app", (tx) => recordCopyFailure(tx, { name, atMs: clock.now(), message }));
      return false;
    } finally {
      this.#running = null;
    }
  }

  async #run(name: string | null, withinMs: number | null): Promise<void> {
    const { start, clock } = this.#deps;
    const process = start(name);
    this.#processes.add(process);
    let isTimedOut = false;
    const cancel =
      withinMs === null
        ? () => undefined
        : clock.after(withinMs, () => {
            isTimedOut = true;
            process.stop();
          });
    try {
      await process.done;
    } catch (error) {
      if (isTimedOut)
        throw new BackupRefused(
          `The endpoint did not answer within ${TEST_WITHIN_MS / 1000} seconds: check its URL and the network.`,
        );
      throw new BackupRefused((error as Error).message);
    } finally {
      cancel();
      this.#processes.delete(process);
    }
  }
}

/**
 * Starts `relay backups copy` on the data directory. The process gets no variables that would change its keys, its database or its connections.
 */
export function makeCopyStarter(
  dataDir: string,
  masterKey: string | null,
  command: readonly string[] = ownCommand(),
): StartCopy {
  return (name) => {
    const kept = Object.entries(process.env).filter(([variable]) => !LEFT_OUT.test(variable));
    const env = {
      ...Object.fromEntries(kept),
      ...(masterKey === null ? {} : { RELAY_MASTER_KEY: masterKey }),
    };
    const words = name === null ? ["--test"] : [name];
    return startProcess([...command, "backups", "copy", ...words, "--data-dir", dataDir, "--json"], env);
  };
}

/** Bun's client reads keys and proxies from these variables, also if it is given others. */
const LEFT_OUT = /^(RELAY_(DATABASE|DATA_DIR|MASTER_KEY)|(AWS|S3)_.*|.*_PROXY)$/i;
