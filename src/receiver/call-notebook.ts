/**
 * Where recent calls wait until they are written: a second's calls in one transaction, and never more of them than the ring holds, so that
 * a flood of bad calls costs the disk almost nothing. What a crash takes is the last second. It decides nothing about a call.
 */
import type { Clock } from "../ground/clock.ts";
import { MAX_RECENT_CALLS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import type { Refusal } from "../ground/refusal.ts";
import type { RefusalCode } from "../ground/refusal-code.ts";
import { cutToLine } from "../ground/text.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import type { Store, Writer } from "../store/port.ts";
import type { RefusedBy } from "./call-refusal.ts";
import { type CallOutcome, type RecentCall, writeRecentCalls } from "./recent-call.ts";
import { findFormerReceivers } from "./unknown-call.ts";

const FLUSH_AFTER_MS = 1_000;
/** Calls to names that no receiver has, kept to be looked up; a scan of made-up names fills this and no more. */
const MAX_UNKNOWN_CALLS = 50;
const MAX_CAUSE_CHARS = 500;
const RELAY_NAME = /^[a-z][a-z0-9-]{1,62}$/;

const CAPS: readonly RefusalCode[] = ["source_capped", "receiver_capped", "body_capped"];

interface UnknownCall {
  appId: string;
  name: string;
  atMs: number;
  source: string;
}

interface NotebookRooms {
  store: Store;
  clock: Clock;
  log: Log;
}

export class CallNotebook {
  readonly #rooms: NotebookRooms;
  /** By environment, oldest first. */
  #noted = new Map<number, RecentCall[]>();
  /** Calls over a cap, each standing for many: by relay, code and address. */
  #capped = new Map<string, RecentCall>();
  #unknown: UnknownCall[] = [];
  #cancelTimer: (() => void) | null = null;
  #flushing: Promise<void> = Promise.resolve();
  #failed = false;
  #stopped = false;

  constructor(rooms: NotebookRooms) {
    this.#rooms = rooms;
  }

  /**
   * Notes a refused call for the owner of one environment, with his own cause. Over a cap it has the code that the caller was told, and
   * those of one address that wait are told together.
   */
  noteRefused({ relay, code, cause }: RefusedBy, source: string, refusal: Refusal): void {
    const capped = CAPS.includes(refusal.code);
    const call = this.#call(relay, source, "refused", capped ? refusal.code : code, cause);
    if (capped) this.#noteCapped(call);
    else this.#note(call);
  }

  /** Notes a verified call that `when` ignores. */
  noteIgnored(relay: LiveRelay, source: string, cause: string): void {
    this.#note(this.#call(relay, source, "ignored", "when", cause));
  }

  /** Notes a verified call that came before; `eventId` is the first one's event, null where `when` ignored that. */
  noteDuplicate(relay: LiveRelay, source: string, cause: string, eventId: string | null): void {
    this.#note({ ...this.#call(relay, source, "duplicate", "duplicate", cause), eventId });
  }

  #call(relay: LiveRelay, source: string, outcome: CallOutcome, code: string, cause: string): RecentCall {
    const { environmentId, name } = relay;
    const atMs = this.#rooms.clock.now();
    return {
      environmentId,
      relayName: name,
      atMs,
      outcome,
      code,
      cause: cutToLine(cause, MAX_CAUSE_CHARS),
      source,
      eventId: null,
      count: 1,
    };
  }

  #note(call: RecentCall): void {
    const calls = this.#noted.get(call.environmentId);
    if (calls === undefined) this.#noted.set(call.environmentId, [call]);
    else {
      calls.push(call);
      if (calls.length >= 2 * MAX_RECENT_CALLS) calls.splice(0, MAX_RECENT_CALLS);
    }
    this.#arm();
  }

  /** The last one's time and cause stand for all. */
  #noteCapped(call: RecentCall): void {
    const key = `${call.environmentId} ${call.relayName} ${call.code} ${call.source}`;
    const first = this.#capped.get(key);
    if (first === undefined) {
      if (this.#capped.size >= MAX_RECENT_CALLS) return;
      this.#capped.set(key, call);
      this.#note(call);
      return;
    }
    first.count += 1;
    first.atMs = call.atMs;
    first.cause = call.cause;
  }

  /** Notes a call to a name that no receiver has; whom it concerns is looked up when it is written. */
  noteUnknown(call: UnknownCall): void {
    if (this.#unknown.length >= MAX_UNKNOWN_CALLS || !RELAY_NAME.test(call.name)) return;
    this.#unknown.push(call);
    this.#arm();
  }

  /** Writes what waits; resolves when it is durable. A store that cannot write keeps it waiting. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  /** Writes what waits, for the last time. */
  stop(): Promise<void> {
    this.#stopped = true;
    return this.flush();
  }

  #arm(): void {
    if (this.#stopped) return;
    this.#cancelTimer ??= this.#rooms.clock.after(FLUSH_AFTER_MS, () => void this.flush());
  }

  async #write(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const noted = this.#noted;
    const unknown = this.#unknown;
    if (noted.size === 0 && unknown.length === 0) return;
    this.#noted = new Map();
    this.#capped = new Map();
    this.#unknown = [];
    try {
      await this.#rooms.store.write("app", async (tx) => {
        const former = await lookUp(tx, unknown);
        for (const environmentId of new Set([...noted.keys(), ...former.keys()])) {
          const calls = [...(noted.get(environmentId) ?? []), ...(former.get(environmentId) ?? [])];
          await writeRecentCalls(tx, environmentId, calls.slice(-MAX_RECENT_CALLS));
        }
      });
      this.#failed = false;
    } catch (error) {
      this.#takeBack(noted, unknown);
      if (!this.#failed)
        this.#rooms.log.warn("recent calls cannot be stored", { cause: (error as Error).message });
      this.#failed = true;
    }
  }

  #takeBack(noted: ReadonlyMap<number, RecentCall[]>, unknown: readonly UnknownCall[]): void {
    for (const [environmentId, calls] of noted) {
      const later = this.#noted.get(environmentId) ?? [];
      this.#noted.set(environmentId, [...calls, ...later].slice(-MAX_RECENT_CALLS));
    }
    this.#unknown = [...unknown, ...this.#unknown].slice(0, MAX_UNKNOWN_CALLS);
    this.#arm();
  }
}

/** The calls that an environment has a reason to see. */
async function lookUp(tx: Writer, unknown: readonly UnknownCall[]): Promise<Map<number, RecentCall[]>> {
  const found = new Map<number, RecentCall[]>();
  for (const calls of Map.groupBy(unknown, ({ appId, name }) => `${appId}/${name}`).values()) {
    const [first] = calls;
    if (first === undefined) continue;
    for (const { environmentId, cause } of await findFormerReceivers(tx, first.appId, first.name)) {
      const told = calls.map(
        ({ name, atMs, source }): RecentCall => ({
          environmentId,
          relayName: name,
          atMs,
          outcome: "refused",
          code: "unknown_receiver",
          cause,
          source,
          eventId: null,
          count: 1,
        }),
      );
      found.set(environmentId, [...(found.get(environmentId) ?? []), ...told]);
    }
  }
  return found;
}
