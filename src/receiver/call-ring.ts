/**
 * Where recent calls wait until they are written: a second's calls in one transaction, and never more of them than the ring holds, so that
 * a flood of bad calls costs the disk almost nothing. What a crash takes is the last second. It decides whose owner may want to know of a
 * call to a name that no receiver has, and nothing else about a call.
 */
import { type Clock, toIso } from "../ground/clock.ts";
import { MAX_RECENT_CALLS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import type { Refusal } from "../ground/refusal.ts";
import type { RefusalCode } from "../ground/refusal-code.ts";
import { cutToLine } from "../ground/text.ts";
import { WriteBehind } from "../ground/write-behind.ts";
import type { LiveRelay } from "../relay/live-relay.ts";
import { relayTarget } from "../relay/relay.ts";
import type { Reader, Store } from "../store/port.ts";
import { type RecentCall, writeRecentCalls } from "./call.ts";
import type { RefusedBy } from "./refusal.ts";

const WRITE_AFTER_MS = 1_000;
/** Calls to names that no receiver has, kept to be looked up; a scan of made-up names fills this and no more. */
const MAX_UNKNOWN_CALLS = 50;
const MAX_CAUSE_CHARS = 500;
const RELAY_NAME = /^[a-z][a-z0-9-]{1,62}$/;

const CAPS: readonly RefusalCode[] = ["source_capped", "receiver_capped", "body_capped"];

interface UnknownCall {
  appId: string;
  name: string;
  at: number;
  source: string;
}

/** What is noted of a call beside its relay and time. */
type NotedCall = Pick<RecentCall, "outcome" | "code" | "cause" | "source"> & { eventId?: string | null };

interface RingDeps {
  store: Store;
  clock: Clock;
  log: Log;
}

export class CallRing {
  readonly #deps: RingDeps;
  readonly #behind: WriteBehind;
  /** By environment, oldest first. */
  #noted = new Map<number, RecentCall[]>();
  /** Calls over a cap, each standing for many: by relay, code and address. */
  #capped = new Map<string, RecentCall>();
  #unknown: UnknownCall[] = [];

  constructor(deps: RingDeps) {
    this.#deps = deps;
    const write = () => this.#write();
    this.#behind = new WriteBehind({ ...deps, afterMs: WRITE_AFTER_MS, what: "recent calls", write });
  }

  /** Notes a verified call that became no event of its own: one that `when` ignores, or a duplicate with the first one's event. */
  note(relay: LiveRelay, noted: NotedCall): void {
    this.#add(this.#callOf(relay, noted));
  }

  /**
   * Notes a refused call for the owner of one environment, with his own cause. Over a cap it has the code that the caller was told, and
   * those of one address that wait are told together: the last one's time and cause stand for all.
   */
  noteRefused({ relay, code, cause }: RefusedBy, source: string, refusal: Refusal): void {
    const isCapped = CAPS.includes(refusal.code);
    const noted = { outcome: "refused", code: isCapped ? refusal.code : code, cause, source } as const;
    const call = this.#callOf(relay, noted);
    if (isCapped) this.#addCapped(call);
    else this.#add(call);
  }

  /** Notes a call to a name that no receiver has; whom it concerns is looked up when it is written. */
  noteUnknown(call: UnknownCall): void {
    if (this.#unknown.length >= MAX_UNKNOWN_CALLS || !RELAY_NAME.test(call.name)) return;
    this.#unknown.push(call);
    this.#behind.arm();
  }

  /** Writes what waits; resolves when it is durable. A store that cannot write keeps it waiting. */
  flush(): Promise<void> {
    return this.#behind.flush();
  }

  /** Writes what waits, for the last time. */
  stop(): Promise<void> {
    return this.#behind.stop();
  }

  #callOf(
    { environmentId, name: relayName }: LiveRelay,
    { cause, eventId = null, ...noted }: NotedCall,
  ): RecentCall {
    const at = this.#deps.clock.now();
    return {
      ...noted,
      environmentId,
      relayName,
      at,
      cause: cutToLine(cause, MAX_CAUSE_CHARS),
      eventId,
      count: 1,
    };
  }

  #add(call: RecentCall): void {
    const calls = this.#noted.get(call.environmentId);
    if (calls === undefined) this.#noted.set(call.environmentId, [call]);
    else {
      calls.push(call);
      if (calls.length >= 2 * MAX_RECENT_CALLS) calls.splice(0, MAX_RECENT_CALLS);
    }
    this.#behind.arm();
  }

  #addCapped(call: RecentCall): void {
    const key = `${call.environmentId} ${call.relayName} ${call.code} ${call.source}`;
    const first = this.#capped.get(key);
    if (first !== undefined) {
      Object.assign(first, { count: first.count + 1, at: call.at, cause: call.cause });
    } else if (this.#capped.size < MAX_RECENT_CALLS) {
      this.#capped.set(key, call);
      this.#add(call);
    }
  }

  async #write(): Promise<void> {
    const noted = this.#noted;
    const unknown = this.#unknown;
    if (noted.size === 0 && unknown.length === 0) return;
    this.#noted = new Map();
    this.#capped = new Map();
    this.#unknown = [];
    try {
      await this.#deps.store.write("app", async (tx) => {
        const former = await findFormer(tx, unknown);
        for (const environmentId of new Set([...noted.keys(), ...former.keys()])) {
          const calls = [...(noted.get(environmentId) ?? []), ...(former.get(environmentId) ?? [])];
          await writeRecentCalls(tx, environmentId, calls.slice(-MAX_RECENT_CALLS));
        }
      });
    } catch (error) {
      for (const [environmentId, calls] of noted) {
        const later = this.#noted.get(environmentId) ?? [];
        this.#noted.set(environmentId, [...calls, ...later].slice(-MAX_RECENT_CALLS));
      }
      this.#unknown = [...unknown, ...this.#unknown].slice(0, MAX_UNKNOWN_CALLS);
      throw error;
    }
  }
}

/** The calls that an environment has a reason to see, by environment. */
async function findFormer(tx: Reader, unknown: readonly UnknownCall[]): Promise<Map<number, RecentCall[]>> {
  const found = new Map<number, RecentCall[]>();
  for (const calls of Map.groupBy(unknown, ({ appId, name }) => `${appId}/${name}`).values()) {
    const [first] = calls;
    if (first === undefined) continue;
    for (const { environmentId, cause } of await findFormerReceivers(tx, first.appId, first.name)) {
      const told = calls.map(({ name: relayName, at, source }): RecentCall => {
        const why = { outcome: "refused", code: "unknown_receiver", cause } as const;
        return { environmentId, relayName, at, ...why, source, eventId: null, count: 1 };
      });
      found.set(environmentId, [...(found.get(environmentId) ?? []), ...told]);
    }
  }
  return found;
}

/**
 * The app's environments that deleted a relay of the name, or have one that is no receiver, and why it receives nothing: its sender was
 * not told. To every other environment the call is nobody's.
 */
async function findFormerReceivers(
  tx: Reader,
  appId: string,
  name: string,
): Promise<{ environmentId: number; cause: string }[]> {
  const sql = `SELECT environment.id AS environmentId, relay.id AS relayId,
      (SELECT max(at) FROM audit WHERE audit.environment_id = environment.id AND target = $target AND event_id IS NULL
        AND action = 'relay.deleted') AS deletedAt
    FROM environment LEFT JOIN relay ON relay.environment_id = environment.id AND relay.name = $name
    WHERE environment.app_id = $appId`;
  const named = { appId, name, target: relayTarget(name) };
  const rows = await tx.all<{ environmentId: number; relayId: string | null; deletedAt: number | null }>(
    sql,
    named,
  );
  return rows.flatMap(({ environmentId, relayId, deletedAt }) => {
    if (relayId !== null) {
      return [{ environmentId, cause: "the relay of this name has another trigger and receives no calls" }];
    }
    return deletedAt === null
      ? []
      : [{ environmentId, cause: `the relay was deleted at ${toIso(deletedAt)}` }];
  });
}
