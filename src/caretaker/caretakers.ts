/**
 * The caretakers: once an hour each goes through its own table in small transactions with a pause after each, so that ingestion never
 * waits for them, and at the end the store's file is looked after. How long something is kept is each one's own file's. They do nothing
 * while the wall clock is not to be trusted: a clock set a year ahead for a minute must not cost a month of events.
 */
import { forgetEndedSessions } from "../account/session.ts";
import { forgetEndedPersonSessions } from "../client/person-session.ts";
import { forgetRanActions } from "../event/effect.ts";
import type { Clock } from "../ground/clock.ts";
import { ClockWatch } from "../ground/clock-watch.ts";
import type { Log } from "../ground/log.ts";
import { Loop } from "../ground/loop.ts";
import { forgetErasures } from "../people/person-erase.ts";
import { forgetPreviousSecrets } from "../relay/relay-secret.ts";
import type { Store, Writer } from "../store/port.ts";
import { trimAudit } from "./audit-retention.ts";
import { trimEmails } from "./email-retention.ts";
import { retireEvents } from "./event-retention.ts";
import { forgetNotices } from "./notice-retention.ts";
import { forgetRecentCalls } from "./recent-call-retention.ts";
import { forgetSignatures } from "./signature-memory.ts";

/** After the start, so that it is quick; then once an hour. */
const FIRST_ROUND_AFTER_MS = 60_000;
const ROUND_EVERY_MS = 3_600_000;
/** Between two transactions of one caretaker. */
const PAUSE_MS = 10;
/** A wall clock that moved by so much more or less than the time that passed since the last round was set. */
const CLOCK_SET_MS = 10 * 60_000;

interface CaretakerRooms {
  store: Store;
  clock: Clock;
  log: Log;
}

/** One small step from `cursor` on, 0 at first; answers where to go on, or null when it is done for this round. */
type Step = (tx: Writer, cursor: number, nowMs: number, log: Log) => Promise<number | null>;

/** A step that needs no cursor, because what it has dealt with is gone. */
function again(step: (tx: Writer, nowMs: number, log: Log) => Promise<boolean>): Step {
  return async (tx, _cursor, nowMs, log) => ((await step(tx, nowMs, log)) ? 0 : null);
}

function once(step: (tx: Writer, nowMs: number) => Promise<unknown>): Step {
  return async (tx, _cursor, nowMs) => {
    await step(tx, nowMs);
    return null;
  };
}

const CARETAKERS: Readonly<Record<string, Step>> = {
  events: again(retireEvents),
  "ran actions": once(forgetRanActions),
  signatures: again(forgetSignatures),
  sessions: once(forgetEndedSessions),
  "people's sessions": once(forgetEndedPersonSessions),
  audit: (tx, cursor, nowMs) => trimAudit(tx, cursor, nowMs),
  mails: (tx, cursor, nowMs) => trimEmails(tx, cursor, nowMs),
  notices: again(forgetNotices),
  "recent calls": (tx, cursor, nowMs) => forgetRecentCalls(tx, cursor, nowMs),
  "previous secrets": once(forgetPreviousSecrets),
  "erased addresses": once(forgetErasures),
};

export class Caretakers {
  readonly #rooms: CaretakerRooms;
  readonly #loop: Loop;
  readonly #clockWatch: ClockWatch;

  constructor(rooms: CaretakerRooms) {
    this.#rooms = rooms;
    this.#clockWatch = new ClockWatch(rooms.clock, CLOCK_SET_MS);
    this.#loop = new Loop({
      clock: rooms.clock,
      everyMs: ROUND_EVERY_MS,
      turn: () => this.#goRound(),
      onError: (error) => rooms.log.error("a round of the caretakers failed", { error }),
    });
  }

  /** Begins; the first round is a minute away. */
  start(): void {
    this.#clockWatch.look();
    void this.#loop.start(FIRST_ROUND_AFTER_MS);
  }

  /** Ends after the transaction that is on its way. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #goRound(): Promise<undefined> {
    const { log } = this.#rooms;
    if (this.#clockWatch.look() !== 0) {
      log.warn("the clock was set, so nothing is cleaned up before it has kept for an hour");
      return;
    }
    for (const [name, step] of Object.entries(CARETAKERS)) {
      await this.#guard(name, () => this.#walk(step));
    }
    await this.#guard("file", () => this.#tend());
  }

  /** One that fails leaves the others their work; it comes again in an hour. */
  async #guard(name: string, work: () => Promise<void>): Promise<void> {
    if (!this.#loop.running) return;
    try {
      await work();
    } catch (error) {
      if (this.#loop.running) this.#rooms.log.error("a caretaker failed", { caretaker: name, error });
    }
  }

  async #walk(step: Step): Promise<void> {
    const { store, clock, log } = this.#rooms;
    let cursor: number | null = 0;
    while (cursor !== null && this.#loop.running) {
      const from: number = cursor;
      cursor = await store.write("app", (tx) => step(tx, from, clock.now(), log));
      if (cursor !== null) await this.#loop.pause(PAUSE_MS);
    }
  }

  async #tend(): Promise<void> {
    while (this.#loop.running && (await this.#rooms.store.tend())) await this.#loop.pause(PAUSE_MS);
  }
}
