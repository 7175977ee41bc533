/**
 * Loads two running receivers from one client in turns of a second, in the order A B B A, so that a slow phase of the machine slows both. The
 * warm-up stores more events than memory holds keys for. It compiles the code, reads the key filters and writes a first segment. CPU that a turn
 * causes counts for its own side, even if it is used later.
 */

import { join } from "node:path";
import { median, type Round } from "./figure.ts";
import { listCommits } from "./log-commits.ts";
import type { Run } from "./measure.ts";
import {
  type Client,
  type LoadResult,
  type ProductReady,
  SECRET,
  type Started,
  start,
  startClient,
} from "./process.ts";

interface Sizes {
  turnSeconds: number;
  warmUpEvents: number;
}

/** The warm-up must fill a segment of 229,376 keys, so that the first one is written. */
const FULL: Sizes = { turnSeconds: 1, warmUpEvents: 250_000 };
const TINY: Sizes = { turnSeconds: 0.2, warmUpEvents: 500 };
const SAMPLE_EVERY_MS = 100;

class Side {
  readonly rounds: Round[] = [];
  /** Largest resident memory under load. */
  residentMiB = 0;
  readonly #server: Started<ProductReady>;
  readonly #client: Client;
  readonly #sizes: Sizes;
  /** CPU of the server until the end of its last turn. */
  #cpuMs = 0;
  stored = 0;
  /** The pages that its commits write: the median of those in the log after the last turn. */
  pages = 0;

  constructor(server: Started<ProductReady>, client: Client, sizes: Sizes) {
    this.#server = server;
    this.#client = client;
    this.#sizes = sizes;
  }

  async warmUp(): Promise<void> {
    while (this.stored < this.#sizes.warmUpEvents) await this.#load();
    this.#cpuMs = await this.#server.cpuMs();
  }

  async turn(): Promise<void> {
    const sampling = setInterval(() => void this.#sample(), SAMPLE_EVERY_MS);
    const { ok, perSecond } = await this.#load();
    clearInterval(sampling);
    const cpuMs = await this.#server.cpuMs();
    this.rounds.push({ perSecond, cpuMicros: (1_000 * (cpuMs - this.#cpuMs)) / ok });
    this.#cpuMs = cpuMs;
  }

  async #load(): Promise<LoadResult> {
    const loaded = await this.#client.load([this.#server.ready], { seconds: this.#sizes.turnSeconds });
    this.stored += loaded.ok;
    return loaded;
  }

  async #sample(): Promise<void> {
    this.residentMiB = Math.max(this.residentMiB, await this.#server.residentMiB());
  }
}

/** A data folder with paused relays. */
interface PausedStore {
  path: string;
  relays: string;
}

/** Measures two data folders for the duration of the run's rounds. */
export async function loadAlternately(one: PausedStore, other: PausedStore, run: Run): Promise<[Side, Side]> {
  const sizes = run.tiny ? TINY : FULL;
  const pairs = Math.max(1, Math.round(run.seconds * run.rounds));
  await using client = startClient(SECRET);
  const open = ({ path, relays }: PausedStore) =>
    start<ProductReady>("product.ts", path, relays, SECRET, "paused");
  await using first = await open(one);
  await using second = await open(other);
  const [a, b] = [new Side(first, client, sizes), new Side(second, client, sizes)];
  for (const side of [a, b]) await side.warmUp();
  for (let pair = 0; pair < pairs; pair++)
    for (const side of pair % 2 === 0 ? [a, b] : [b, a]) await side.turn();
  for (const [side, { path }] of [
    [a, one],
    [b, other],
  ] as const)
    side.pages = median(listCommits(join(path, "relay.db-wal")));
  return [a, b];
}
