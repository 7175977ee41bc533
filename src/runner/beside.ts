/**
 * The shortest road: an event of a relay that only touches the database runs in the very transaction that stores it, where nothing of the relay
 * waits before it and nothing about relays changes meanwhile. Its row is written once, as the run leaves it. Whatever else comes is stored as it
 * came and takes the batches' road, and so does all of a transaction that has to be undone.
 */
import { countAttempt, type HandedEvent } from "../event/event.ts";
import type { EndedRun } from "../event/run.ts";
import type { Clock } from "../ground/clock.ts";
import type { LiveRelay, LiveRelays, Snapshot } from "../relay/live-relay.ts";
import type { Holder } from "../store/holding.ts";
import type { FencedStore, WholeTransaction, Writer } from "../store/port.ts";
import type { AttemptDeps } from "./attempt.ts";
import { type Arrivals, runEvent } from "./batch.ts";
import { type Ending, type Finished, finishAttempts } from "./end.ts";

/** Runs end after this long: those who only brought an event wait for them, though less than for a batch. */
const MAX_BESIDE_MS = 12;

interface BesideDeps extends AttemptDeps {
  holding: Holder;
  /** Whether the environment's events may be taken here. */
  isOpen: (environmentId: number) => boolean;
  clock: Clock;
  relays: LiveRelays;
  arrivals: Arrivals;
  /** Told of runs once they are durable. */
  onFinished: (finished: Finished) => void;
}

export interface RunsBeside {
  /** Runs an event that is about to be stored; null: it did not run, and waits once it is stored. `end` must follow the last one. */
  run(arrived: HandedEvent): Promise<EndedRun | null>;
  /** Writes down how the runs ended, behind their events' rows. */
  end(): Promise<void>;
}

/** Runs beside the events that one work of a transaction stores. */
export class Beside implements RunsBeside {
  readonly #tx: Writer;
  readonly #deps: BesideDeps;
  readonly #nowMs: number;
  readonly #endMs: number;
  readonly #endings: Ending[] = [];
  /** null: nothing may run here. undefined: that was not looked into. */
  #open: { whole: WholeTransaction; relays: Snapshot } | null | undefined;
  /** Which of the fenced stores let pass what is done in this transaction. */
  readonly #passing = new Map<FencedStore, boolean>();

  /** `takes`: whether the runner takes anything now. */
  constructor(tx: Writer, deps: BesideDeps, takes: boolean) {
    if (!takes) this.#open = null;
    this.#tx = tx;
    this.#deps = deps;
    this.#nowMs = deps.clock.now();
    this.#endMs = deps.clock.monotonicMs() + MAX_BESIDE_MS;
  }

  async run({ relayId, event, payload }: HandedEvent): Promise<EndedRun | null> {
    const tx = this.#tx;
    const { isOpen, holding } = this.#deps;
    const { environmentId } = event;
    const open = this.#open === undefined ? this.#look() : this.#open;
    const relay = open === null ? null : this.#free(open, relayId, event.mapVersion);
    const isOwn = isOpen(environmentId) && (relay === null || (await this.#passes(environmentId)));
    if (open === null || relay === null || !isOwn) {
      // Whoever runs it instead is told by the commit.
      if (!isOwn && !holding.whole) tx.touch("event", relayId);
      this.#deps.arrivals.leaveIn(tx.whole, relayId);
      return null;
    }
    open.whole.hush();
    const one = { event: countAttempt(event), payload, came: "first" } as const;
    const ending = await tx.attempt(() => runEvent(tx, relay, one, this.#nowMs, this.#deps));
    this.#endings.push(ending);
    return ending.row;
  }

  async end(): Promise<void> {
    if (this.#endings.length === 0) return;
    const finished = await this.#tx.attempt(() => finishAttempts(this.#tx, this.#endings, this.#nowMs));
    this.#tx.afterCommit(() => finished.forEach(this.#deps.onFinished));
  }

  /** What is asked once for all: the transaction as it stands now, before any of its runs. */
  #look(): { whole: WholeTransaction; relays: Snapshot } | null {
    const { whole } = this.#tx;
    const { arrivals, relays } = this.#deps;
    this.#open = null;
    if (whole === null || relays.known === null) return null;
    if (whole.hasTouched("relay") || whole.hasTouched("environment")) return null;
    arrivals.begin(this.#tx.foreignVersion);
    this.#open = { whole, relays: relays.known };
    return this.#open;
  }

  /** Asked once for all that one lease stands for. */
  async #passes(environmentId: number): Promise<boolean> {
    const store = this.#deps.holding.storeOf(environmentId);
    let passes = this.#passing.get(store);
    if (passes === undefined) {
      passes = await store.letsPass(this.#tx);
      this.#passing.set(store, passes);
    }
    return passes;
  }

  /** The relay, if its newest event may run before any other of its. */
  #free(
    { whole, relays }: { whole: WholeTransaction; relays: Snapshot },
    relayId: string,
    mapVersion: number | null,
  ): LiveRelay | null {
    const { arrivals, clock } = this.#deps;
    const relay = relays.findRelay(relayId);
    if (relay === null || relay.waiting || relay.sends || relay.version !== mapVersion) return null;
    if (whole.hasTouched("event", relayId) || !arrivals.isClear(whole, relayId)) return null;
    return clock.monotonicMs() < this.#endMs ? relay : null;
  }
}
