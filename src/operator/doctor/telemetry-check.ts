/** Checks the export of telemetry by the metrics of the running server. */
import { type DoctorTarget, type Finding, formatCount, pass, warn } from "./finding.ts";

/** Reads the series of a metric: its labels as text, and its value. */
const SERIES = /^(relay_otlp_\w+)\{(?:signal|outcome)="(\w+)"\} (\d+)$/gm;

export async function checkTelemetry({ readMetrics }: DoctorTarget): Promise<Finding> {
  const text = await readMetrics();
  if (text === null) return pass("telemetry", "No server runs here, so nothing is exported.");
  const series = new Map(
    [...text.matchAll(SERIES)].map(([, name, label, value]) => [`${name} ${label}`, Number(value)]),
  );
  const up = ["traces", "metrics"].map((signal) => ({ signal, isUp: series.get(`relay_otlp_up ${signal}`) }));
  const used = up.filter(({ isUp }) => isUp !== undefined);
  const failed = used.filter(({ isUp }) => isUp === 0).map(({ signal }) => signal);
  const dropped = series.get("relay_otlp_spans_total dropped") ?? 0;
  const lost =
    dropped === 0
      ? ""
      : ` ${formatCount(dropped, "span")} of traces ${dropped === 1 ? "was" : "were"} dropped since the start.`;
  if (failed.length > 0)
    return warn(
      "telemetry",
      `The last export of ${failed.join(" and ")} failed.${lost}`,
      "see the server's log or Settings › Server for the cause, and check OTEL_EXPORTER_OTLP_ENDPOINT and the collector",
    );
  if (dropped > 0)
    return warn(
      "telemetry",
      `The exports succeed.${lost}`,
      "give the collector more capacity, or export fewer traces with OTEL_TRACES_SAMPLER=traceidratio and OTEL_TRACES_SAMPLER_ARG",
    );
  if (used.length === 0)
    return pass("telemetry", "The server exported nothing yet, or OTEL_EXPORTER_OTLP_ENDPOINT is not set.");
  return pass("telemetry", `The last export of ${used.map(({ signal }) => signal).join(" and ")} succeeded.`);
}
