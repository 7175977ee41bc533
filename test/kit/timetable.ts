/**
 * A store with schedules and a scheduler, under a clock that starts where the test says. It has no service, because a service would also fire every
 * other timer of a simulated year and open a port for each test.
 */

import { Scheduler } from "../../src/engine/schedule/schedule.ts";
import { setHold } from "../../src/platform/account/environment.ts";
import { LiveRelays } from "../../src/rules/relay/live-relay.ts";
import type { FencedStore } from "../../src/store/port.ts";
import { openTestStore, type TestStore } from "./fresh-store.ts";
import { makeRelayKit, type RelayKit, sealer } from "./relay-kit.ts";
import { holdAll } from "./sole-holder.ts";
import { settle } from "./virtual-clock.ts";

export interface Tick {
  periodStart: string;
  state: string;
  reason: string | null;
  /** The time when the row was created, in ISO format. */
  recordedAt: string;
}

export interface Timetable extends TestStore {
  kit: RelayKit;
  /** Creates a schedule relay that only calls a URL. */
  make(name: string, trigger: object): Promise<void>;
  /** Starts the scheduler, or another one after the first. `over` is another store of the same rows. */
  start(over?: FencedStore): Promise<void>;
  stop(): Promise<void>;
  /** Notifies the scheduler that relays changed, as the service does. */
  changed(): Promise<void>;
  hold(on: boolean): Promise<void>;
  /** Returns the relay's ticks in the order in which they were recorded. */
  ticks(name: string): Promise<Tick[]>;
  alerts(): Promise<{ code: string; target: string; message: string; count: number }[]>;
}

/** Opens the store. `checkEveryMs` is the scheduler's longest sleep; a simulated year needs a long one. */
export async function openTimetable(startIso: string, checkEveryMs = 5_000): Promise<Timetable> {
  const opened = await openTestStore({ startMs: Date.parse(startIso), environments: ["development"] });
  const { store, clock, log } = opened;
  const kit = makeRelayKit(opened);
  const relays = new LiveRelays({ store, sealer, baseUrl: () => "https://relay.example.test" });
  let scheduler: Scheduler | null = null;
  const changed = async (): Promise<void> => {
    relays.invalidate();
    scheduler?.refresh();
    await settle();
  };
  return {
    ...opened,
    kit,
    changed,
    async make(name, trigger) {
      const actions = [{ type: "call_url", url: "https://example.com/notice" }];
      await kit.create({ name, trigger: { kind: "schedule", ...trigger }, actions });
      await changed();
    },
    async start(over: FencedStore = store) {
      scheduler = new Scheduler({ leases: holdAll(over), clock, relays, log, checkEveryMs });
      await scheduler.start();
    },
    async stop() {
      await scheduler?.stop();
      scheduler = null;
    },
    async hold(on) {
      const { id } = await opened.environment("development");
      await store.write("dashboard", (tx) => setHold(tx, id, on, { newestArrival: 0, nowMs: clock.now() }));
      await changed();
    },
    ticks: (name) => store.read(async (tx) => (await tx.all<TickRow>(TICKS, name)).map(toTick)),
    alerts: () => store.read((tx) => tx.all("SELECT code, target, message, count FROM alert ORDER BY id")),
    async [Symbol.asyncDispose]() {
      await scheduler?.stop();
      await opened[Symbol.asyncDispose]();
    },
  };
}

interface TickRow {
  payload: string;
  state: string;
  reason: string | null;
  createdAt: number;
}

const TICKS =
  "SELECT payload, state, reason, created_at AS createdAt FROM event WHERE name_key IN (SELECT key FROM relay_name WHERE name = ?1) ORDER BY seq";

function toTick({ payload, state, reason, createdAt }: TickRow): Tick {
  const { tick } = JSON.parse(payload) as { tick: { periodStart: string } };
  return { periodStart: tick.periodStart, state, reason, recordedAt: new Date(createdAt).toISOString() };
}
