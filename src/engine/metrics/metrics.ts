/**
 * The metrics in Prometheus' format. The code that does the work increments the counters. Numbers of the database and the disk are read for a
 * scrape, at most once a second. No label takes a value that a caller, a person or a relay can make, so the number of series is fixed.
 */
import { statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";
import Registry from "prom-client/lib/registry.js";
import { type Clock, Loop } from "../../base/clock.ts";
import { standardError, standardOutput } from "../../base/output.ts";
import { VERSION } from "../../base/release/version.ts";
import type { Store } from "../../store/port.ts";
import type { LockLevel } from "../../store/postgres/writers.ts";
import { COUNTED_AT_MOST, countQueue } from "./queue-count.ts";

const KEPT_MS = 1_000;
const LAG_EVERY_MS = 1_000;
const GROUP_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const LAG_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** One ended run, as the runner reports it. */
interface RunSample {
  trigger: "receiver" | "schedule" | "data_change";
  /** `not_run`: the event ended without running any action. */
  outcome: "ok" | "failed" | "not_run";
  /** The time from the event's arrival to the start of its first run; null for later runs. */
  waitedMs: number | null;
  /** The time from the start of the run to its end. */
  tookMs: number;
}

/** The leases that one node of a cluster holds. */
interface Held {
  node: string;
  house: boolean;
  environments: number;
  takeovers: number;
}

/** This node's connections to the shared database, and what has one or waits for one. */
interface Pool {
  connections: number;
  waitingReads: number;
  runningGroups: number;
  waitingGroups: number;
}

/** A metric with its values. A histogram has one for each bucket (`le`), and those named `…_sum` and `…_count`. */
export interface MetricSample {
  name: string;
  help: string;
  /** `counter`, `gauge` or `histogram`. */
  kind: string;
  values: readonly {
    value: number;
    metricName?: string;
    labels: Readonly<Record<string, string | number | undefined>>;
  }[];
}

interface MetricDeps {
  dataDir: string;
  clock: Clock;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #deps: MetricDeps;
  readonly #registers = [this.#registry];
  readonly #calls = new Counter({
    name: "relay_receiver_calls_total",
    help: "Requests to receivers by how they ended: accepted, duplicate, ignored, or a refusal's code.",
    labelNames: ["outcome"],
    registers: this.#registers,
  });
  /** Outcomes since the last scrape. A map is faster than the counter's labels. */
  readonly #called = new Map<string, number>();
  readonly #runs = new Counter({
    name: "relay_runs_total",
    help: "Ended runs of events by trigger and outcome (ok, failed, not_run).",
    labelNames: ["trigger", "outcome"],
    registers: this.#registers,
  });
  readonly #waits = new Histogram({
    name: "relay_run_wait_seconds",
    help: "From an event's arrival to the start of its first run.",
    buckets: SECONDS,
    registers: this.#registers,
  });
  readonly #durations = new Histogram({
    name: "relay_run_duration_seconds",
    help: "From a run's start to its end, calls to other servers included.",
    buckets: SECONDS,
    registers: this.#registers,
  });
  readonly #groups = new Histogram({
    name: "relay_commit_group_size",
    help: "Writes that were made durable by one commit.",
    buckets: GROUP_SIZES,
    registers: this.#registers,
  });
  readonly #backups = new Counter({
    name: "relay_scheduled_backups_total",
    help: "Backups that the server made by itself, by outcome (made, failed).",
    labelNames: ["outcome"],
    registers: this.#registers,
  });
  readonly #lastBackup = this.#gauge(
    "relay_scheduled_backup_last_made_timestamp_seconds",
    "When the server last made a backup by itself, since its start; 0: not yet.",
  );
  readonly #lag = new Histogram({
    name: "relay_event_loop_lag_seconds",
    help: "How late a timer fires, sampled once a second.",
    buckets: LAG_SECONDS,
    registers: this.#registers,
  });
  readonly #events = new Gauge({
    name: "relay_events",
    help: `Stored events that are not done, by state; queued ones are due now, retrying ones wait for an attempt. Counted up to ${COUNTED_AT_MOST}.`,
    labelNames: ["state"],
    registers: this.#registers,
  });
  readonly #stored = new Counter({
    name: "relay_events_stored_total",
    help: "Events that this process stored since its start.",
    registers: this.#registers,
  });
  readonly #age = this.#gauge(
    "relay_queue_age_seconds",
    "How long the longest waiting event waits that may run and never ran; 0: none waits.",
  );
  readonly #problems = this.#gauge("relay_problems", "Problems that the dashboard shows.");
  readonly #storeUp = this.#gauge("relay_store_up", "1 while the database can be read, else 0.");
  readonly #database = this.#gauge("relay_database_bytes", "Size of the database file.");
  readonly #log = this.#gauge("relay_database_wal_bytes", "Size of the write-ahead log.");
  readonly #free = this.#gauge("relay_data_directory_free_bytes", "Room left on the data directory's disk.");
  readonly #memory = this.#gauge("process_resident_memory_bytes", "Resident memory of this process.");
  readonly #processor = new Counter({
    name: "process_cpu_seconds_total",
    help: "User and system CPU time of this process.",
    registers: this.#registers,
  });
  readonly #lines = new Counter({
    name: "relay_output_lines_dropped_total",
    help: "Lines that could not be written to standard output or standard error.",
    labelNames: ["stream"],
    registers: this.#registers,
  });
  readonly #leases = new Gauge({
    name: "relay_node_leases",
    help: "What this node runs by itself where several serve one database: environments, and 1 of kind house if it runs the shared maintenance jobs.",
    labelNames: ["node", "kind"],
    registers: this.#registers,
  });
  readonly #takeovers = new Counter({
    name: "relay_node_takeovers_total",
    help: "Leases that this node took from one that did not give them back.",
    labelNames: ["node"],
    registers: this.#registers,
  });
  readonly #locks = new Histogram({
    name: "relay_node_lock_wait_seconds",
    help: "How long a group of writes waited for a lock that all nodes share: that of everything, or that of its environment.",
    labelNames: ["node", "level"],
    buckets: SECONDS,
    registers: this.#registers,
  });
  readonly #writeGroups = new Gauge({
    name: "relay_node_write_groups",
    help: "Connections of this node on which groups of writes run (running), and groups that wait for one (waiting).",
    labelNames: ["node", "state"],
    registers: this.#registers,
  });
  readonly #connections = new Gauge({
    name: "relay_node_connections",
    help: "Connections to the database that this node has open, in addition to the one that it listens on.",
    labelNames: ["node"],
    registers: this.#registers,
  });
  readonly #waitingReads = new Gauge({
    name: "relay_node_waiting_reads",
    help: "Reads of this node that wait for a connection, because other reads have them all.",
    labelNames: ["node"],
    registers: this.#registers,
  });
  readonly #spans = new Counter({
    name: "relay_otlp_spans_total",
    help: "Spans of traces that a collector took (exported), or that were lost (dropped), because it was too slow or refused them.",
    labelNames: ["outcome"],
    registers: this.#registers,
  });
  readonly #exports = new Counter({
    name: "relay_otlp_exports_total",
    help: "Exports by OTLP, by signal (traces, metrics) and outcome (ok, failed).",
    labelNames: ["signal", "outcome"],
    registers: this.#registers,
  });
  readonly #otlpUp = new Gauge({
    name: "relay_otlp_up",
    help: "1 if the last export of the signal succeeded, else 0. It is missing before the first export.",
    labelNames: ["signal"],
    registers: this.#registers,
  });
  readonly #lagLoop: Loop;
  #held: () => Held | null = () => null;
  #pool: () => Pool | null = () => null;
  #countStored: () => number = () => 0;
  #last: { atMs: number; text: Promise<string> } | null = null;

  constructor(deps: MetricDeps) {
    this.#deps = deps;
    const build = new Gauge({
      name: "relay_build_info",
      help: "Always 1; the version is a label.",
      labelNames: ["version"],
      registers: this.#registers,
    });
    build.set({ version: VERSION }, 1);
    this.#gauge("process_start_time_seconds", "When this process started, since the epoch.").set(
      Math.round(deps.clock.now() / 1_000 - process.uptime()),
    );
    // Every series exists from the first scrape on, so that a rate can be computed.
    for (const outcome of ["accepted", "duplicate", "ignored"]) this.#calls.inc({ outcome }, 0);
    for (const trigger of ["receiver", "schedule", "data_change"]) {
      for (const outcome of ["ok", "failed", "not_run"]) this.#runs.inc({ trigger, outcome }, 0);
    }
    for (const outcome of ["exported", "dropped"]) this.#spans.inc({ outcome }, 0);
    for (const signal of ["traces", "metrics"]) {
      for (const outcome of ["ok", "failed"]) this.#exports.inc({ signal, outcome }, 0);
    }
    this.#lagLoop = this.#watchEventLoop();
  }

  /** Lists every metric. */
  list(): { name: string; help: string; kind: string }[] {
    return this.#registry
      .getMetricsAsArray()
      .map(({ name, help, type }) => ({ name, help, kind: String(type) }));
  }

  /** The content type of the response. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Reads this node's leases for each scrape; null means that there is no cluster. */
  observeLeases(held: () => Held | null): void {
    this.#held = held;
  }

  /** Reads this node's connections for each scrape. */
  readonly observePool = (pool: () => Pool): void => {
    this.#pool = pool;
  };

  /** Reads how many events were stored, for each scrape. `count` may have begun before. */
  observeStored(count: () => number): void {
    const before = count();
    this.#countStored = () => count() - before;
  }

  /** Counts a request to a receiver by its outcome: `accepted`, `duplicate`, `ignored`, or the code of a rejection. */
  recordRequest(outcome: string): void {
    this.#called.set(outcome, (this.#called.get(outcome) ?? 0) + 1);
  }

  recordRun({ trigger, outcome, waitedMs, tookMs }: RunSample): void {
    this.#runs.inc({ trigger, outcome });
    if (waitedMs !== null) this.#waits.observe(Math.max(0, waitedMs) / 1_000);
    this.#durations.observe(Math.max(0, tookMs) / 1_000);
  }

  /** Records how many writes one commit made durable. */
  readonly recordCommitGroup: (size: number) => void = this.#groups.observe.bind(this.#groups);

  /** Records how long a group of writes waited for a lock that all nodes share. */
  readonly recordLockWait = (waitedMs: number, level: LockLevel): void => {
    const held = this.#held();
    if (held !== null) this.#locks.observe({ node: held.node, level }, waitedMs / 1_000);
  };

  recordBackup(made: boolean): void {
    this.#backups.inc({ outcome: made ? "made" : "failed" });
    if (made) this.#lastBackup.set(this.#deps.clock.now() / 1_000);
  }

  /** Counts spans that a collector took, or that were lost. */
  recordSpans(outcome: "exported" | "dropped", spans: number): void {
    this.#spans.inc({ outcome }, spans);
  }

  /** Counts an export by OTLP. */
  recordExport(signal: "traces" | "metrics", isOk: boolean): void {
    this.#exports.inc({ signal, outcome: isOk ? "ok" : "failed" });
    this.#otlpUp.set({ signal }, isOk ? 1 : 0);
  }

  /** Reads all metrics with their values. Never rejects: without the database, its numbers are missing, as in the text. */
  async read(store: Store): Promise<MetricSample[]> {
    await this.#refresh(store);
    const samples = await this.#registry.getMetricsAsJSON();
    return samples.map(({ name, help, type, values }) => ({ name, help, kind: String(type), values }));
  }

  /** Writes all metrics as text. Never rejects: where the database cannot be read, `relay_store_up` is 0 and its numbers are missing. */
  write(store: Store): Promise<string> {
    const atMs = this.#deps.clock.monotonicMs();
    if (this.#last === null || atMs - this.#last.atMs >= KEPT_MS) {
      this.#last = { atMs, text: this.#collect(store) };
    }
    return this.#last.text;
  }

  stop(): void {
    void this.#lagLoop.stop();
  }

  /** Sets a timer each second. Its lateness is the time that any callback waits. */
  #watchEventLoop(): Loop {
    const { clock } = this.#deps;
    let setMs = clock.monotonicMs();
    const turn = async (): Promise<undefined> => {
      const nowMs = clock.monotonicMs();
      this.#lag.observe(Math.max(0, nowMs - setMs - LAG_EVERY_MS) / 1_000);
      setMs = nowMs;
      return undefined;
    };
    const loop = new Loop({ clock, everyMs: LAG_EVERY_MS, turn, onError: () => undefined });
    void loop.start(LAG_EVERY_MS);
    return loop;
  }

  async #collect(store: Store): Promise<string> {
    await this.#refresh(store);
    return await this.#registry.metrics();
  }

  /** Reads the numbers that nothing counts as they change. */
  async #refresh(store: Store): Promise<void> {
    await Promise.all([this.#readStore(store), this.#readDisk()]);
    for (const [outcome, calls] of this.#called) this.#calls.inc({ outcome }, calls);
    this.#called.clear();
    this.#lines.reset();
    this.#lines.inc({ stream: "stdout" }, standardOutput.dropped);
    this.#lines.inc({ stream: "stderr" }, standardError.dropped);
    this.#setLeases();
    this.#memory.set(process.memoryUsage.rss());
    setCounter(this.#stored, this.#countStored());
    const { user, system } = process.cpuUsage();
    setCounter(this.#processor, (user + system) / 1_000_000);
  }

  #setLeases(): void {
    const held = this.#held();
    if (held === null) return;
    const { node, house, environments, takeovers } = held;
    this.#leases.set({ node, kind: "environment" }, environments);
    this.#leases.set({ node, kind: "house" }, house ? 1 : 0);
    this.#takeovers.reset();
    this.#takeovers.inc({ node }, takeovers);
    const pool = this.#pool();
    if (pool === null) return;
    this.#connections.set({ node }, pool.connections);
    this.#waitingReads.set({ node }, pool.waitingReads);
    this.#writeGroups.set({ node, state: "running" }, pool.runningGroups);
    this.#writeGroups.set({ node, state: "waiting" }, pool.waitingGroups);
  }

  async #readStore(store: Store): Promise<void> {
    try {
      const { oldestAtMs, listOpenProblems, ...byState } = await store.read(countQueue);
      for (const [state, count] of Object.entries(byState)) this.#events.set({ state }, count);
      const ageMs = oldestAtMs === null ? 0 : Math.max(0, this.#deps.clock.now() - oldestAtMs);
      this.#age.set(ageMs / 1_000);
      this.#problems.set(listOpenProblems);
      this.#storeUp.set(1);
    } catch {
      for (const gauge of [this.#age, this.#problems]) gauge.remove();
      this.#events.reset();
      this.#storeUp.set(0);
    }
  }

  async #readDisk(): Promise<void> {
    const { dataDir } = this.#deps;
    this.#database.set(sizeOf(join(dataDir, "relay.db")));
    this.#log.set(sizeOf(join(dataDir, "relay.db-wal")));
    try {
      const { bavail, bsize } = await statfs(dataDir);
      this.#free.set(bavail * bsize);
    } catch {
      this.#free.remove();
    }
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name, help, registers: this.#registers });
  }
}

/** Sets a counter to a value that is counted elsewhere. */
function setCounter(counter: Counter, value: number): void {
  counter.reset();
  counter.inc(value);
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
