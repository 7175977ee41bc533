/**
 * Converts the metrics of `/metrics` for OTLP. The registry stays their only source. Counters become cumulative sums, and the cumulative buckets of a
 * histogram become separate ones.
 */
import { ValueType } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import { VERSION } from "../../base/release/version.ts";
import type { MetricSample } from "../metrics/metrics.ts";
import { toHrTime } from "./tracing.ts";

interface Times {
  /** The start of the process, from which counters count. */
  startMs: number;
  nowMs: number;
}

/** Makes the metrics of one export. Samples without a value are left out. */
export function makeResourceMetrics(
  samples: readonly MetricSample[],
  resource: Resource,
  times: Times,
): ResourceMetrics {
  const metrics = samples
    .filter(({ values }) => values.length > 0)
    .map((sample) => makeMetric(sample, times));
  return { resource, scopeMetrics: [{ scope: { name: "relay-service", version: VERSION }, metrics }] };
}

function makeMetric(sample: MetricSample, times: Times): MetricData {
  const { name, help, kind } = sample;
  const descriptor = { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE };
  const aggregationTemporality = AggregationTemporality.CUMULATIVE;
  const base = { descriptor, aggregationTemporality };
  const span = { startTime: toHrTime(times.startMs), endTime: toHrTime(times.nowMs) };
  if (kind === "histogram") {
    const dataPoints = readHistograms(sample).map((point) => ({ ...span, ...point }));
    return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = sample.values.map(({ value, labels }) => ({
    ...span,
    value,
    attributes: textsOf(labels),
  }));
  return kind === "counter"
    ? { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...base, dataPointType: DataPointType.GAUGE, dataPoints };
}

function readHistograms({ name, values }: MetricSample) {
  const series = Map.groupBy(values, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  return [...series.values()].map((parts) => {
    const find = (part: string): number =>
      parts.find(({ metricName }) => metricName === `${name}_${part}`)?.value ?? 0;
    const buckets = parts.filter(({ metricName }) => metricName === `${name}_bucket`);
    const { le: _, ...labels } = parts[0]?.labels ?? {};
    return {
      attributes: textsOf(labels),
      value: {
        sum: find("sum"),
        count: find("count"),
        buckets: {
          boundaries: buckets.map(({ labels: { le } }) => Number(le)).filter(Number.isFinite),
          counts: buckets.map(({ value }, at) => value - (buckets[at - 1]?.value ?? 0)),
        },
      },
    };
  });
}

function textsOf(labels: MetricSample["values"][number]["labels"]): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}

/** Returns the unit in the form of UCUM, by the ending of the name. */
function unitOf(name: string): string {
  const base = name.replace(/_total$/, "");
  if (base.endsWith("_seconds")) return "s";
  return base.endsWith("_bytes") ? "By" : "";
}
