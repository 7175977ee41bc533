/**
 * A collector of OpenTelemetry on loopback. It checks each export by the OTLP specification, without the service's code and without the packages of
 * OpenTelemetry, and stores it. It takes JSON; the protocol buffers of an export only need the right content type.
 */

export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  status: { code?: number; message?: string };
}

interface CollectedMetric {
  name: string;
  description: string;
  unit: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the points by their fields
  [kind: string]: any;
}

/** The answer to an export. `never`: the connection stays open without one. */
export type CollectorAnswer = { status: number; headers?: Record<string, string>; body?: string } | "never";

export interface CollectorDouble extends AsyncDisposable {
  /** The base URL, on localhost. */
  url: string;
  spans: CollectedSpan[];
  /** The metrics of the last export, by name. */
  metrics: Map<string, CollectedMetric>;
  /** Attributes of the resource of the last export. */
  resource: Record<string, unknown>;
  /** The path and the headers of each export. */
  exports: { path: string; headers: Record<string, string> }[];
  /** The breaches of the protocol. */
  faults: string[];
  /** Answers the next exports; the last answer stays. */
  answer(...answers: CollectorAnswer[]): void;
}

const OK: CollectorAnswer = { status: 200, headers: { "content-type": "application/json" }, body: "{}" };
const HEX_32 = /^[0-9a-f]{32}$/;
const HEX_16 = /^[0-9a-f]{16}$/;
const NANOS = /^[1-9]\d{18}$/;

export function startCollector(): CollectorDouble {
  const spans: CollectedSpan[] = [];
  const exports: CollectorDouble["exports"] = [];
  const faults: string[] = [];
  const metrics = new Map<string, CollectedMetric>();
  let answers: CollectorAnswer[] = [OK];
  const check = (isRight: boolean, what: string): void => {
    if (!isRight) faults.push(what);
  };

  // biome-ignore lint/suspicious/noExplicitAny: the body of an export may have any shape, which the checks find
  const takeResource = ({ resource, scope }: any): void => {
    double.resource = readAttributes(resource?.attributes, check);
    check(double.resource["service.name"] !== undefined, "the resource has a service.name");
    check(scope?.name === "relay-service" && typeof scope.version === "string", "the scope has a name and a version");
  };

  function takeSpans(text: string): void {
    const { resourceSpans, ...others } = JSON.parse(text);
    check(Object.keys(others).length === 0, "an export of traces has only resourceSpans");
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const { scope, spans: given } of scopeSpans) {
        takeResource({ resource, scope });
        for (const span of given) {
          checkSpan(span, check);
          spans.push(span);
        }
      }
    }
  }

  function takeMetrics(text: string): void {
    metrics.clear();
    const { resourceMetrics, ...others } = JSON.parse(text);
    check(Object.keys(others).length === 0, "an export of metrics has only resourceMetrics");
    for (const { resource, scopeMetrics } of resourceMetrics) {
      for (const { scope, metrics: given } of scopeMetrics) {
        takeResource({ resource, scope });
        for (const metric of given) {
          checkMetric(metric, check);
          metrics.set(metric.name, metric);
        }
      }
    }
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname: path, search } = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      exports.push({ path, headers });
      const body = new Uint8Array(await request.arrayBuffer());
      const [answer = OK] = answers.length > 1 ? answers.splice(0, 1) : answers;
      if (answer === "never") return await new Promise<Response>(() => undefined);
      check(request.method === "POST" && search === "", "an export is a POST without a query");
      check(path === "/v1/traces" || path === "/v1/metrics", `${path} is a path of OTLP`);
      check(Number(headers["content-length"]) === body.byteLength, "the length is that of the body");
      if (headers["content-type"] === "application/json" && answer.status === 200) {
        const text = new TextDecoder().decode(body);
        if (path === "/v1/traces") takeSpans(text);
        else takeMetrics(text);
      } else check(/^application\/(json|x-protobuf)$/.test(headers["content-type"] ?? ""), "the type is one of OTLP's");
      return new Response(answer.body ?? "", { status: answer.status, headers: answer.headers ?? {} });
    },
  });
  const double: CollectorDouble = {
    url: `http://localhost:${server.port}`,
    spans,
    metrics,
    resource: {},
    exports,
    faults,
    answer(...given) {
      answers = given.length === 0 ? [OK] : given;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
  return double;
}

type Check = (isRight: boolean, what: string) => void;

function checkSpan(span: CollectedSpan, check: Check): void {
  const { traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, status } = span;
  check(HEX_32.test(traceId) && !/^0+$/.test(traceId), "a trace id is 32 hexadecimal digits");
  check(HEX_16.test(spanId) && !/^0+$/.test(spanId), "a span id is 16 hexadecimal digits");
  check(parentSpanId === undefined || HEX_16.test(parentSpanId), "a parent is a span id, or absent");
  check(name.length > 0, "a span has a name");
  check([1, 2, 3, 4, 5].includes(kind), "the kind is one of OTLP's, and not unspecified");
  check(NANOS.test(startTimeUnixNano) && NANOS.test(endTimeUnixNano), "times are nanoseconds as decimal text");
  check(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano), "a span ends after its start");
  check([undefined, 0, 1, 2].includes(status.code), "the status is one of OTLP's");
  readAttributes(span.attributes, check);
}

function checkMetric(metric: CollectedMetric, check: Check): void {
  const kinds = ["sum", "gauge", "histogram"].filter((kind) => metric[kind] !== undefined);
  check(kinds.length === 1, `${metric.name} has one kind of data`);
  const { dataPoints, aggregationTemporality, isMonotonic } = metric[kinds[0] ?? ""];
  const isGauge = kinds[0] === "gauge";
  check(isGauge || aggregationTemporality === 2, `${metric.name} is cumulative`);
  check(kinds[0] !== "sum" || isMonotonic === true, `${metric.name} is monotonic`);
  check(dataPoints.length > 0, `${metric.name} has data`);
  for (const point of dataPoints) {
    check(NANOS.test(point.timeUnixNano) && NANOS.test(point.startTimeUnixNano), `${metric.name} has times`);
    readAttributes(point.attributes, check);
    if (kinds[0] !== "histogram") check(Number.isFinite(point.asDouble), `${metric.name} has a number`);
    else {
      const { bucketCounts, explicitBounds, count } = point;
      check(bucketCounts.length === explicitBounds.length + 1, `${metric.name} has one bucket more than bounds`);
      check(
        bucketCounts.reduce((sum: number, one: number) => sum + Number(one), 0) === Number(count),
        `${metric.name}: the buckets add up to the count`,
      );
    }
  }
}

/** Reads the attributes as an object. */
export function readAttributes(attributes: CollectedSpan["attributes"] | undefined, check: Check = () => undefined): Record<string, unknown> {
  check(Array.isArray(attributes), "attributes are a list");
  const kinds = ["stringValue", "boolValue", "intValue", "doubleValue"];
  return Object.fromEntries(
    (attributes ?? []).map(({ key, value }) => {
      const [[kind = "", one] = []] = Object.entries(value);
      check(kinds.includes(kind) && Object.keys(value).length === 1, `the attribute ${key} has one value`);
      return [key, one];
    }),
  );
}
