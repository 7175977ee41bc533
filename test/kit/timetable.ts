/** A store with schedules on it and a scheduler over them, under a clock that starts where the test says. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../../src/account/app.ts";
import { requireEnvironment, setHold } from "../../src/account/environment.ts";
import { createLog } from "../../src/ground/log.ts";
import { LiveRelays } from "../../src/relay/live-relay.ts";
import { Scheduler } from "../../src/schedule/scheduler.ts";
import type { Store } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { makeRelayKit, type RelayKit, sealer } from "./relay-kit.ts";
import { settle, VirtualClock } from "./virtual-clock.ts";

export interface Tick {
  periodStart: string;
  state: string;
  reason: string | null;
  /** When the row was made, ISO. */
  recordedAt: string;
}

export interface Timetable extends AsyncDisposable {
  file: string;
  store: Store;
  clock: VirtualClock;
  kit: RelayKit;
  /** Relay ids the runner would have been woken for. */
  woken: string[];
  logged: string[];
  /** A schedule relay that only calls a URL. */
  make(name: string, trigger: object): Promise<void>;
  /** Starts the scheduler, or another after the first. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Tells the scheduler that relays changed, as the service does. */
  changed(): Promise<void>;
  hold(on: boolean): Promise<void>;
  /** The relay's ticks in the order they were recorded. */
  ticks(name: string): Promise<Tick[]>;
  alerts(): Promise<{ code: string; target: string; message: string; count: number }[]>;
}

/** `lookEveryMs`: the scheduler's longest sleep; a simulated year needs a long one. */
export async function openTimetable(startIso: string, lookEveryMs = 5_000): Promise<Timetable> {
  const directory = mkdtempSync(join(tmpdir(), "relay-time-"));
  const file = join(directory, "relay.db");
  const clock = new VirtualClock(Date.parse(startIso));
  const store = await openSqlite(file, { clock });
  const nowMs = clock.now();
  await store.write("app", (tx) => createApp(tx, { id: "app_test", name: "Test", environments: ["development"], nowMs }));
  const environment = () => store.read((tx) => requireEnvironment(tx, "app_test", "development"));
  const kit = makeRelayKit({ store, clock, environment, explain: () => "" });
  const woken: string[] = [];
  store.listen((touched) => woken.push(...(touched.get("event") ?? [])));
  const logged: string[] = [];
  const log = createLog({ clock, format: "json", sink: (line) => logged.push(line) });
  const relays = new LiveRelays({ store, sealer, baseUrl: () => "https://relay.example.test" });
  let scheduler: Scheduler | null = null;
  const changed = async (): Promise<void> => {
    relays.invalidate();
    scheduler?.refresh();
    await settle();
  };
  return {
    file,
    store,
    clock,
    kit,
    woken,
    logged,
    changed,
    async make(name, trigger) {
      const actions = [{ type: "call_url", url: "https://example.com/notice" }];
      await kit.create({ name, trigger: { kind: "schedule", ...trigger }, actions });
      await changed();
    },
    async start() {
      scheduler = new Scheduler({ store, clock, relays, log, lookEveryMs });
      await scheduler.start();
    },
    async stop() {
      await scheduler?.stop();
      scheduler = null;
    },
    async hold(on) {
      const { id } = await environment();
      await store.write("dashboard", (tx) => setHold(tx, id, on ? clock.now() : null));
      await changed();
    },
    ticks: (name) => store.read(async (tx) => (await tx.all<TickRow>(TICKS, name)).map(toTick)),
    alerts: () => store.read((tx) => tx.all("SELECT code, target, message, count FROM alert ORDER BY id")),
    async [Symbol.asyncDispose]() {
      await scheduler?.stop();
      await store.close();
      rmSync(directory, { recursive: true });
    },
  };
}

interface TickRow {
  payload: string;
  state: string;
  reason: string | null;
  createdAt: number;
}

const TICKS = "SELECT payload, state, reason, created_at AS createdAt FROM event WHERE relay_name = ?1 ORDER BY seq";

function toTick({ payload, state, reason, createdAt }: TickRow): Tick {
  const { tick } = JSON.parse(payload) as { tick: { periodStart: string } };
  return { periodStart: tick.periodStart, state, reason, recordedAt: new Date(createdAt).toISOString() };
}
