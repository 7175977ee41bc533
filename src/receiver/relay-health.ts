/**
 * How each receiver is doing, seen across its calls: whether it refuses every one, whether it went silent, and when that is over. What it
 * asks of an accepted call is two comparisons; everything else happens on refused calls and by the clock.
 */
import { toIso } from "../ground/clock.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import { type RefusedRun, RefusedRuns } from "./refused-run.ts";
import { type SilenceRooms, SilenceWatch, tellReceives } from "./silence-watch.ts";
import { StandingTroubles } from "./standing-trouble.ts";

export class RelayHealth {
  readonly #rooms: SilenceRooms;
  readonly #troubles: StandingTroubles;
  readonly #refused = new RefusedRuns();
  readonly #silence: SilenceWatch;

  constructor(rooms: SilenceRooms) {
    this.#rooms = rooms;
    this.#troubles = new StandingTroubles(rooms);
    this.#silence = new SilenceWatch(rooms, this.#troubles);
  }

  /** Reads which troubles stand and begins to watch for silence. */
  async start(): Promise<void> {
    await this.#troubles.load();
    this.#silence.start();
  }

  /** Resolves when what was noticed is written. */
  async stop(): Promise<void> {
    await this.#silence.stop();
    await this.#troubles.settle();
  }

  /** A call verified, whatever becomes of it. */
  accept(relay: LiveRelay): void {
    this.#refused.accept(relay.id);
    if (this.#troubles.size > 0)
      this.#troubles.clear(relay, "relay_refusing", `${relay.name} accepts calls again: one verified.`);
  }

  /** An event of the relay was stored. */
  receive(relay: LiveRelay): void {
    if (this.#troubles.size > 0) this.#troubles.clear(relay, "relay_silent", tellReceives(relay.name));
  }

  /** A call verified in no environment; `cause` says why not in this relay's. */
  refuse(relay: LiveRelay, cause: string): void {
    const { clock } = this.#rooms;
    const run = this.#refused.refuse(relay.id, { wallMs: clock.now(), monotonicMs: clock.monotonicMs() });
    if (run !== null && !this.#troubles.has(relay, "relay_refusing"))
      this.#troubles.raise(relay, "relay_refusing", tellRefusing(relay.name, run, cause));
  }
}

function tellRefusing(name: string, { sinceMs, calls }: RefusedRun, cause: string): string {
  return `${name} has refused every call since ${toIso(sinceMs)}, ${calls} so far, the last one because ${cause}: compare the relay's secret and recipe with the sender's, and see its recent calls.`;
}
