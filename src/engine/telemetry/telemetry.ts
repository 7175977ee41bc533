/**
 * Exports traces and metrics to a collector. Only `service.ts` loads this file, and only if the operator names a collector, because it loads the
 * packages of OpenTelemetry. Spans wait in a bounded queue. A span over the bound, and one that the collector does not take after some tries, is
 * dropped and counted, so that no collector delays a request or a run.
 */
import { randomUUID } from "node:crypto";
import {
  JsonMetricsSerializer,
  JsonTraceSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { type Clock, Loop, waitAtMost } from "../../base/clock.ts";
import type { TelemetryConfig } from "../../base/config.ts";
import type { Log } from "../../base/log.ts";
import type { Store } from "../../store/port.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { Collector, type ExportOutcome, type Serializer, type Signal } from "./collector.ts";
import { makeResourceMetrics } from "./metric-data.ts";
import { Tracing } from "./tracing.ts";

/** The defaults of OpenTelemetry's batch processor. */
const MAX_QUEUED_SPANS = 2_048;
const BATCH_SPANS = 512;
const SPANS_EVERY_MS = 5_000;
const MAX_TRIES = 5;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
/** The time that a stop may take for the last exports. */
const FLUSH_MS = 2_000;

/** The last export of a signal. */
export interface ExportState {
  /** The time of the last export that the collector took, or null. */
  exportedAtMs: number | null;
  /** The cause of the last failure, in one sentence; null if the last export succeeded, or there was none. */
  failure: string | null;
}

export interface TelemetryDeps {
  config: TelemetryConfig;
  clock: Clock;
  log: Log;
  allowPrivate: readonly string[];
  store: Store;
  metrics: Pick<Metrics, "read" | "recordSpans" | "recordExport">;
}

export class Telemetry {
  readonly #deps: TelemetryDeps;
  readonly #resource: ReturnType<typeof resourceFromAttributes>;
  readonly #states: Record<Signal, ExportState> = {
    traces: { exportedAtMs: null, failure: null },
    metrics: { exportedAtMs: null, failure: null },
  };
  readonly #collectors: Record<Signal, Collector>;
  readonly #spanLoop: Loop;
  readonly #metricLoop: Loop;
  readonly #startMs: number;
  #spans: ReadableSpan[] = [];
  /** The monotonic time before which the collector wants no metrics. */
  #metricsAfterMs = Number.NEGATIVE_INFINITY;
  /** Null if traces are off. */
  readonly tracing: Tracing | null;

  constructor(deps: TelemetryDeps) {
    this.#deps = deps;
    const { config, clock, log } = deps;
    this.#startMs = Math.round(clock.now() - process.uptime() * 1_000);
    // Two nodes must not export the same series.
    this.#resource = resourceFromAttributes({ "service.instance.id": randomUUID(), ...config.resource });
    this.#collectors = { traces: new Collector(deps), metrics: new Collector(deps) };
    const { traceRatio: ratio } = config;
    const take = (span: ReadableSpan): void => this.#queue(span);
    this.tracing = ratio === null ? null : new Tracing({ resource: this.#resource, ratio, take });
    const onError = (error: unknown): void => log.error("an export of telemetry failed", { error });
    this.#spanLoop = new Loop({ clock, everyMs: SPANS_EVERY_MS, turn: () => this.#exportSpans(), onError });
    const everyMs = config.metricsEveryMs ?? 0;
    this.#metricLoop = new Loop({ clock, everyMs, turn: () => this.#exportMetricsInTime(), onError });
  }

  start(): void {
    const { traceRatio, metricsEveryMs } = this.#deps.config;
    if (traceRatio !== null) void this.#spanLoop.start(SPANS_EVERY_MS);
    if (metricsEveryMs !== null) void this.#metricLoop.start(metricsEveryMs);
  }

  /** Returns the last export of each signal; null for a signal that is off. */
  get state(): Record<Signal, ExportState | null> {
    const { traceRatio, metricsEveryMs } = this.#deps.config;
    return {
      traces: traceRatio === null ? null : this.#states.traces,
      metrics: metricsEveryMs === null ? null : this.#states.metrics,
    };
  }

  /** Exports what is left, within FLUSH_MS, and counts the rest as dropped. */
  async stop(): Promise<void> {
    const { clock, config } = this.#deps;
    const flush = async (): Promise<void> => {
      await Promise.all([
        this.#spanLoop.stop().then(() => this.#flushSpans()),
        this.#metricLoop
          .stop()
          .then(() => (config.metricsEveryMs === null ? undefined : this.#exportMetrics())),
      ]);
    };
    await waitAtMost(
      clock,
      FLUSH_MS,
      flush().catch(() => undefined),
    );
    for (const collector of Object.values(this.#collectors)) collector.close();
    this.#drop(this.#spans.splice(0).length);
  }

  #queue(span: ReadableSpan): void {
    if (this.#spans.length >= MAX_QUEUED_SPANS) {
      this.#drop(1);
      return;
    }
    this.#spans.push(span);
    if (this.#spans.length === BATCH_SPANS) this.#spanLoop.wake();
  }

  #drop(spans: number): void {
    if (spans > 0) this.#deps.metrics.recordSpans("dropped", spans);
  }

  async #exportSpans(): Promise<undefined> {
    while (this.#spans.length > 0 && this.#spanLoop.running) {
      const batch = this.#spans.splice(0, BATCH_SPANS);
      const isKept = await this.#exportBatch(batch);
      if (!isKept) this.#spans = [...batch, ...this.#spans];
    }
    return undefined;
  }

  /** Exports a batch, with retries. Returns false if a stop ended the wait for the next try. */
  async #exportBatch(batch: readonly ReadableSpan[]): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      const outcome = await this.#postSpans(batch);
      if (outcome.kind === "ok") return true;
      if (outcome.kind === "failed" || tries === MAX_TRIES) {
        this.#drop(batch.length);
        return true;
      }
      const usualMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (tries - 1));
      // A random part keeps nodes from retrying at the same time.
      const backoffMs = usualMs * (0.5 + Math.random() / 2);
      await this.#spanLoop.pause(outcome.afterMs ?? backoffMs);
      if (!this.#spanLoop.running) return false;
    }
  }

  async #flushSpans(): Promise<void> {
    while (this.#spans.length > 0) {
      const batch = this.#spans.splice(0, BATCH_SPANS);
      if ((await this.#postSpans(batch)).kind === "ok") continue;
      this.#drop(batch.length);
    }
  }

  async #postSpans(batch: readonly ReadableSpan[]): Promise<ExportOutcome> {
    const isJson = this.#deps.config.protocol === "http/json";
    const serializer: Serializer<ReadableSpan[]> = isJson ? JsonTraceSerializer : ProtobufTraceSerializer;
    const outcome = await this.#collectors.traces.post("traces", [...batch], serializer);
    this.#record("traces", outcome);
    if (outcome.kind === "ok") {
      const rejected = Math.min(outcome.rejected, batch.length);
      this.#deps.metrics.recordSpans("exported", batch.length - rejected);
      this.#drop(rejected);
    }
    return outcome;
  }

  async #exportMetricsInTime(): Promise<undefined> {
    if (this.#deps.clock.monotonicMs() >= this.#metricsAfterMs) await this.#exportMetrics();
    return undefined;
  }

  /** Exports the metrics once. The next export has the same counts and more, so a failed one is not repeated. */
  async #exportMetrics(): Promise<void> {
    const { clock, config, metrics, store } = this.#deps;
    const samples = await metrics.read(store);
    const times = { startMs: this.#startMs, nowMs: clock.now() };
    const serializer: Serializer<ResourceMetrics> =
      config.protocol === "http/json" ? JsonMetricsSerializer : ProtobufMetricsSerializer;
    const data = makeResourceMetrics(samples, this.#resource, times);
    const outcome = await this.#collectors.metrics.post("metrics", data, serializer);
    if (outcome.kind === "retry" && outcome.afterMs !== null)
      this.#metricsAfterMs = clock.monotonicMs() + outcome.afterMs;
    this.#record("metrics", outcome);
  }

  /** Records the result of an export, and logs the first failure and the first success after it. */
  #record(signal: Signal, outcome: ExportOutcome): void {
    const { clock, log, metrics } = this.#deps;
    const state = this.#states[signal];
    const failure = outcome.kind === "ok" && outcome.rejected === 0 ? null : failureOf(outcome);
    metrics.recordExport(signal, failure === null);
    if (failure !== null && state.failure === null)
      log.warn(`the export of ${signal} failed`, { cause: failure });
    if (failure === null && state.failure !== null) log.info(`the export of ${signal} succeeds again`);
    if (outcome.kind === "ok") state.exportedAtMs = clock.now();
    state.failure = failure;
  }
}

function failureOf(outcome: ExportOutcome): string {
  if (outcome.kind !== "ok") return outcome.message;
  const why = outcome.message === null ? "" : `: ${outcome.message}`;
  return `The collector rejected ${outcome.rejected} of an export${why}`;
}
