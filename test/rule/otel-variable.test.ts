/** The variables of OpenTelemetry: the setting of each value, and the refusal of a value that cannot be used. */
import { describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import type { TelemetryConfig } from "../../src/base/config.ts";
import { VERSION } from "../../src/base/release/version.ts";
import { OTEL_VARIABLES, readTelemetry } from "../../src/interfaces/cli/server/otel-variable.ts";
import { runCommand } from "../kit/cli-io.ts";

type Env = Partial<Record<(typeof OTEL_VARIABLES)[number]["name"], string>>;

const ON: Env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4318" };
const USUAL: TelemetryConfig = {
  endpoint: "http://localhost:4318",
  headers: {},
  protocol: "http/protobuf",
  exportWithinMs: 10_000,
  resource: { "service.version": VERSION, "service.name": "relay-service" },
  traceRatio: 1,
  metricsEveryMs: 60_000,
};

const rows: { rule: string; env: Env; config: TelemetryConfig | null }[] = [
  { rule: "without an endpoint nothing is exported", env: { OTEL_SERVICE_NAME: "shop" }, config: null },
  { rule: "an empty endpoint counts as none", env: { OTEL_EXPORTER_OTLP_ENDPOINT: " " }, config: null },
  { rule: "an endpoint switches traces and metrics on", env: ON, config: USUAL },
  {
    rule: "the endpoint may have a path",
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "https://otlp.example.com/otlp/" },
    config: { ...USUAL, endpoint: "https://otlp.example.com/otlp" },
  },
  { rule: "OTEL_SDK_DISABLED switches it off", env: { ...ON, OTEL_SDK_DISABLED: "TRUE" }, config: null },
  { rule: "no exporter of either signal is off", env: { ...ON, OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }, config: null },
  { rule: "traces can be off alone", env: { ...ON, OTEL_TRACES_EXPORTER: "none" }, config: { ...USUAL, traceRatio: null } },
  { rule: "metrics can be off alone", env: { ...ON, OTEL_METRICS_EXPORTER: "none" }, config: { ...USUAL, metricsEveryMs: null } },
  {
    rule: "headers are pairs, their values percent-encoded",
    env: { ...ON, OTEL_EXPORTER_OTLP_HEADERS: "api-key=abc==, authorization=Basic%20YTpi,," },
    config: { ...USUAL, headers: { "api-key": "abc==", authorization: "Basic YTpi" } },
  },
  { rule: "the body can be JSON", env: { ...ON, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }, config: { ...USUAL, protocol: "http/json" } },
  {
    rule: "times are milliseconds",
    env: { ...ON, OTEL_EXPORTER_OTLP_TIMEOUT: "2500", OTEL_METRIC_EXPORT_INTERVAL: "15000" },
    config: { ...USUAL, exportWithinMs: 2_500, metricsEveryMs: 15_000 },
  },
  {
    rule: "the service has its own name and more attributes",
    env: { ...ON, OTEL_SERVICE_NAME: "shop", OTEL_RESOURCE_ATTRIBUTES: "service.name=other,deployment.environment.name=production" },
    config: { ...USUAL, resource: { "service.version": VERSION, "service.name": "shop", "deployment.environment.name": "production" } },
  },
  {
    rule: "an attribute can name the service",
    env: { ...ON, OTEL_RESOURCE_ATTRIBUTES: "service.name=other" },
    config: { ...USUAL, resource: { "service.version": VERSION, "service.name": "other" } },
  },
  { rule: "always_off exports no trace", env: { ...ON, OTEL_TRACES_SAMPLER: "parentbased_always_off" }, config: { ...USUAL, traceRatio: 0 } },
  {
    rule: "traceidratio exports a part",
    env: { ...ON, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.25" },
    config: { ...USUAL, traceRatio: 0.25 },
  },
  { rule: "traceidratio without a part exports all", env: { ...ON, OTEL_TRACES_SAMPLER: "parentbased_traceidratio" }, config: USUAL },
];

const refused: { rule: string; env: Env; message: string }[] = [
  {
    rule: "an endpoint that is no URL",
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" },
    message: "OTEL_EXPORTER_OTLP_ENDPOINT is not the URL of a collector",
  },
  {
    rule: "an endpoint with a password",
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "https://a:secret-word@example.com" },
    message: "without a user name or a query",
  },
  {
    rule: "an endpoint with a query",
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "https://example.com/?key=secret-word" },
    message: "without a user name or a query",
  },
  { rule: "a header without a value", env: { ...ON, OTEL_EXPORTER_OTLP_HEADERS: "secret-word" }, message: "is not name=value" },
  {
    rule: "a header with a line break",
    env: { ...ON, OTEL_EXPORTER_OTLP_HEADERS: "api-key=secret-word%0d%0ax: y" },
    message: "has a header that cannot be sent",
  },
  { rule: "a header that Relay sets", env: { ...ON, OTEL_EXPORTER_OTLP_HEADERS: "Host=secret-word" }, message: "has a header that cannot be sent" },
  { rule: "a broken percent sign", env: { ...ON, OTEL_EXPORTER_OTLP_HEADERS: "api-key=secret-word%zz" }, message: "%2C or %25" },
  {
    rule: "gRPC",
    env: { ...ON, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
    message: 'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": write http/protobuf or http/json',
  },
  { rule: "another exporter", env: { ...ON, OTEL_TRACES_EXPORTER: "zipkin" }, message: 'OTEL_TRACES_EXPORTER is "zipkin": write otlp or none' },
  { rule: "an unknown sampler", env: { ...ON, OTEL_TRACES_SAMPLER: "jaeger_remote" }, message: 'OTEL_TRACES_SAMPLER is "jaeger_remote"' },
  {
    rule: "a part over 1",
    env: { ...ON, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "10" },
    message: 'OTEL_TRACES_SAMPLER_ARG is "10": write a number from 0 to 1',
  },
  {
    rule: "an interval of no milliseconds",
    env: { ...ON, OTEL_METRIC_EXPORT_INTERVAL: "1m" },
    message: 'OTEL_METRIC_EXPORT_INTERVAL is "1m": write milliseconds',
  },
  { rule: "an interval of zero", env: { ...ON, OTEL_METRIC_EXPORT_INTERVAL: "0" }, message: "write milliseconds from 1" },
];

describe("the variables of OpenTelemetry", () => {
  for (const { rule, env, config } of rows) test(rule, () => expect(readTelemetry(env)).toEqual(config));
  for (const { rule, env, message } of refused) {
    test(`refuse ${rule}`, () => {
      const said = (() => {
        try {
          return `no refusal: ${JSON.stringify(readTelemetry(env))}`;
        } catch (error) {
          return (error as Error).message;
        }
      })();
      expect(said).toContain(message);
      expect(said).not.toContain("secret-word");
    });
  }

  test("are shown by relay config, without the headers", async () => {
    const { said: out } = await runCommand(["config"], { cwd: tmpdir(), env: { ...ON, OTEL_EXPORTER_OTLP_HEADERS: "api-key=secret-word" } });
    for (const { name } of OTEL_VARIABLES) expect(out).toContain(name);
    expect(out).toContain("http://localhost:4318");
    expect(out).not.toContain("secret-word");
  });

  test("of no use do not stop another command", async () => {
    const { code, told } = await runCommand(["config"], { cwd: tmpdir(), env: { ...ON, OTEL_TRACES_SAMPLER: "other" } });
    expect([code, told]).toEqual([0, ""]);
  });
});
