/**
 * Reads the standard variables of OpenTelemetry. `OTEL_EXPORTER_OTLP_ENDPOINT` switches the export on. Source: the OpenTelemetry specification,
 * "Environment Variable Specification" and "OTLP Exporter". Unlike its defaults, nothing is exported without an endpoint, and a value that cannot be
 * used is refused.
 */
import type { TelemetryConfig } from "../../../base/config.ts";
import { VERSION } from "../../../base/release/version.ts";
import { formatCount } from "../../../base/text.ts";
import { UsageError } from "../command.ts";
import type { Io } from "../io.ts";

/** The variables, in the order of the documentation. `secret`: no command shows the value. */
export const OTEL_VARIABLES = [
  {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    otherwise: "none: nothing is exported",
    help: "the base URL of the collector, such as http://localhost:4318; switches the export on",
  },
  {
    name: "OTEL_EXPORTER_OTLP_HEADERS",
    otherwise: "none",
    help: "headers of each export, such as api-key=abc,team=shop; values may be percent-encoded",
    secret: true,
  },
  {
    name: "OTEL_EXPORTER_OTLP_PROTOCOL",
    otherwise: "http/protobuf",
    help: "http/protobuf or http/json",
  },
  {
    name: "OTEL_EXPORTER_OTLP_TIMEOUT",
    otherwise: "10000",
    help: "the milliseconds that an export may take",
  },
  { name: "OTEL_SERVICE_NAME", otherwise: "relay-service", help: "service.name of the resource" },
  {
    name: "OTEL_RESOURCE_ATTRIBUTES",
    otherwise: "none",
    help: "more attributes of the resource, such as deployment.environment.name=production",
  },
  {
    name: "OTEL_TRACES_SAMPLER",
    otherwise: "parentbased_always_on",
    help: "always_on, always_off or traceidratio; parentbased_ before it changes nothing, because a trace begins here",
  },
  {
    name: "OTEL_TRACES_SAMPLER_ARG",
    otherwise: "1",
    help: "the part of traces that traceidratio exports, from 0 to 1",
  },
  { name: "OTEL_TRACES_EXPORTER", otherwise: "otlp", help: "otlp, or none to export no traces" },
  { name: "OTEL_METRICS_EXPORTER", otherwise: "otlp", help: "otlp, or none to export no metrics" },
  {
    name: "OTEL_METRIC_EXPORT_INTERVAL",
    otherwise: "60000",
    help: "the milliseconds between exports of the metrics",
  },
  { name: "OTEL_SDK_DISABLED", otherwise: "false", help: "true switches the export off" },
] as const satisfies readonly { name: string; otherwise: string; help: string; secret?: true }[];

type Name = (typeof OTEL_VARIABLES)[number]["name"];

const MAX_MS = 3_600_000;
const SAMPLER = /^(?:parentbased_)?(always_on|always_off|traceidratio)$/;
/** The name of a header by RFC 9110. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** Headers that the export itself sets. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "content-type",
  "content-length",
  "host",
  "connection",
  "transfer-encoding",
]);

/** Returns the configuration of the export, or null if the variables switch it off. Throws UsageError, whose message never shows a header. */
export function readTelemetry(env: Io["env"]): TelemetryConfig | null {
  const read = (name: Name): string | null => env[name]?.trim() || null;
  const endpoint = read("OTEL_EXPORTER_OTLP_ENDPOINT");
  if (endpoint === null || read("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return null;
  const traceRatio = readExporter("OTEL_TRACES_EXPORTER", read) ? readRatio(read) : null;
  const metricsEveryMs = readExporter("OTEL_METRICS_EXPORTER", read)
    ? readMs("OTEL_METRIC_EXPORT_INTERVAL", 60_000, read)
    : null;
  const config: TelemetryConfig = {
    endpoint: readEndpoint(endpoint),
    headers: readHeaders(read),
    protocol: readProtocol(read),
    exportWithinMs: readMs("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000, read),
    resource: {
      "service.version": VERSION,
      ...readPairs("OTEL_RESOURCE_ATTRIBUTES", read),
      ...readServiceName(read),
    },
    traceRatio,
    metricsEveryMs,
  };
  return traceRatio === null && metricsEveryMs === null ? null : config;
}

type Read = (name: Name) => string | null;

function readEndpoint(text: string): string {
  const url = URL.parse(text);
  const isPlain =
    url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
  if (isPlain && url.search === "" && url.hash === "") return url.href.replace(/\/+$/, "");
  throw new UsageError(
    "OTEL_EXPORTER_OTLP_ENDPOINT is not the URL of a collector: write one such as http://localhost:4318, without a user name or a query.",
  );
}

function readProtocol(read: Read): TelemetryConfig["protocol"] {
  const text = read("OTEL_EXPORTER_OTLP_PROTOCOL") ?? "http/protobuf";
  if (text === "http/protobuf" || text === "http/json") return text;
  throw new UsageError(
    `OTEL_EXPORTER_OTLP_PROTOCOL is ${JSON.stringify(text)}: write http/protobuf or http/json. Relay exports only over HTTP, which collectors accept on port 4318.`,
  );
}

function readExporter(name: "OTEL_TRACES_EXPORTER" | "OTEL_METRICS_EXPORTER", read: Read): boolean {
  const text = read(name) ?? "otlp";
  if (text === "otlp" || text === "none") return text === "otlp";
  throw new UsageError(`${name} is ${JSON.stringify(text)}: write otlp or none.`);
}

function readRatio(read: Read): number {
  const name = read("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const kind = SAMPLER.exec(name)?.[1];
  if (kind === undefined)
    throw new UsageError(
      `OTEL_TRACES_SAMPLER is ${JSON.stringify(name)}: write always_on, always_off or traceidratio.`,
    );
  if (kind !== "traceidratio") return kind === "always_on" ? 1 : 0;
  const text = read("OTEL_TRACES_SAMPLER_ARG") ?? "1";
  const ratio = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw new UsageError(
    `OTEL_TRACES_SAMPLER_ARG is ${JSON.stringify(text)}: write a number from 0 to 1, such as 0.1 for a tenth of the traces.`,
  );
}

function readMs(name: Name, usualMs: number, read: Read): number {
  const text = read(name);
  if (text === null) return usualMs;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (ms >= 1 && ms <= MAX_MS) return ms;
  throw new UsageError(
    `${name} is ${JSON.stringify(text)}: write milliseconds from 1 to ${formatCount(MAX_MS)}.`,
  );
}

function readHeaders(read: Read): Record<string, string> {
  const headers = readPairs("OTEL_EXPORTER_OTLP_HEADERS", read);
  for (const [name, value] of Object.entries(headers)) {
    if (HEADER_NAME.test(name) && /^[\t\x20-\x7e]*$/.test(value) && !OWN_HEADERS.has(name.toLowerCase()))
      continue;
    throw new UsageError(
      "OTEL_EXPORTER_OTLP_HEADERS has a header that cannot be sent: write names such as api-key and values of ASCII characters. Relay sets the length, the type and the host itself.",
    );
  }
  return headers;
}

function readServiceName(read: Read): Record<string, string> {
  const name = read("OTEL_SERVICE_NAME");
  if (name !== null) return { "service.name": name };
  const { "service.name": given } = readPairs("OTEL_RESOURCE_ATTRIBUTES", read);
  return { "service.name": given ?? "relay-service" };
}

/** Reads `name=value,name=value`, the values percent-encoded, as W3C Baggage. */
function readPairs(
  name: "OTEL_EXPORTER_OTLP_HEADERS" | "OTEL_RESOURCE_ATTRIBUTES",
  read: Read,
): Record<string, string> {
  const entries = (read(name) ?? "").split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(entries.map((pair) => readPair(name, pair)));
}

function readPair(variable: string, pair: string): [name: string, value: string] {
  const at = pair.indexOf("=");
  const name = pair.slice(0, at).trim();
  if (at > 0 && name !== "") {
    try {
      return [decodeURIComponent(name), decodeURIComponent(pair.slice(at + 1).trim())];
    } catch {}
  }
  throw new UsageError(
    `${variable} has a part that is not name=value: separate the parts with commas, and write a comma or a percent sign in a value as %2C or %25.`,
  );
}
