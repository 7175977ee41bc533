/** Tests the export of traces and metrics by OTLP: off by default, its shape, sampling, failures of the collector, and a stop. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { TelemetryConfig } from "../../src/base/config.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { spanIdOf, traceIdOf } from "../../src/engine/telemetry/trace-id.ts";
import { type CollectedSpan, type CollectorAnswer, type CollectorDouble, readAttributes, startCollector } from "../kit/collector.ts";
import { poll } from "../kit/patience.ts";
import { sampleOf } from "../kit/prometheus-text.ts";
import { HOOK_SECRET, receiverDefinition, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { type RunningOptions, type RunningService, startRunningService } from "../kit/running-service.ts";
import { type Sink, startSink } from "../kit/sink.ts";

const PRIVATE = "ada@example.com";
const KINDS = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 };

let collector: CollectorDouble;
let sink: Sink;
let running: RunningService | null = null;

beforeEach(() => {
  collector = startCollector();
  sink = startSink();
});
afterEach(async () => {
  await running?.[Symbol.asyncDispose]();
  running = null;
  await collector[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
});

function telemetry(change: Partial<TelemetryConfig> = {}): TelemetryConfig {
  return {
    endpoint: collector.url,
    headers: { "api-key": "of-the-operator" },
    protocol: "http/json",
    // Time passes faster than the collector answers. Only a test of the limit has a short one.
    exportWithinMs: 3_600_000,
    resource: { "service.name": "shop-relay" },
    traceRatio: 1,
    metricsEveryMs: null,
    ...change,
  };
}

async function start(change: Partial<TelemetryConfig> | null = {}, options: RunningOptions = {}): Promise<RunningService> {
  running = await startRunningService({
    environments: ["local"],
    ...options,
    config: { mode: "local", allowPrivate: ["localhost"], telemetry: change === null ? null : telemetry(change), ...options.config },
  });
  return running;
}

const callSink = () => ({ type: "call_url", url: `${sink.url}/notice?secret=in-the-query` });

/** Saves a relay in the local environment. */
async function save(one: RunningService, actions: Parameters<typeof receiverDefinition>[0]["actions"]): Promise<{ signingSecret?: string }> {
  const made = await one.api("POST", "/relays", { definition: receiverDefinition({ actions: actions ?? [] }), secret: HOOK_SECRET }, "local");
  expect([made.status, made.body.code]).toEqual([201, undefined]);
  return made.body;
}

async function send(one: RunningService, id: string): Promise<string> {
  const { body, status } = await one.hook("orders", signedCall({ id, type: "paid", email: PRIVATE }));
  expect(status).toBe(200);
  return body.eventId;
}

/** Repeats the question until its answer is true. */
const until = (ask: () => Promise<boolean>) => poll(ask, (is) => is);

/** Lets the exporter send until `spans` spans arrived. */
async function untilSpans(one: RunningService, spans: number): Promise<CollectedSpan[]> {
  await until(async () => {
    await one.clock.advance(5_000);
    return collector.spans.length >= spans;
  });
  return collector.spans;
}

const find = (name: string): CollectedSpan => {
  const found = collector.spans.filter((span) => span.name === name);
  expect([name, found.length]).toEqual([name, 1]);
  return found[0] as CollectedSpan;
};

const metric = async (one: RunningService, name: string): Promise<number> => {
  await one.clock.advance(1_000);
  return sampleOf(await (await fetch(`${one.service.url}/metrics`)).text(), name);
};

describe("a trace", () => {
  test("joins request, event, attempt and call, and the notice carries the call's span", async () => {
    const one = await start();
    await save(one, [callSink()]);
    const eventId = await send(one, "order_1");
    const [notice] = await sink.waitFor("/notice", 1);
    await one.drain();
    await untilSpans(one, 4);
    const [request, event, attempt, call] = ["request orders", "event orders", "attempt orders", "call_url"].map(find);
    const spans = [request, event, attempt, call];
    expect(spans.map((span) => span?.traceId)).toEqual(Array(4).fill(traceIdOf(eventId)));
    expect(spans.map((span) => span?.parentSpanId)).toEqual([undefined, request?.spanId, event?.spanId, attempt?.spanId]);
    expect(spans.map((span) => span?.kind)).toEqual([KINDS.server, KINDS.producer, KINDS.consumer, KINDS.client]);
    expect(spans.map((span) => span?.status.code ?? 0)).toEqual([0, 0, 0, 0]);
    expect(notice?.headers.traceparent).toBe(`00-${call?.traceId}-${call?.spanId}-01`);
    expect(readAttributes(call?.attributes)).toMatchObject({
      "relay.event.id": eventId,
      "relay.name": "orders",
      "relay.trigger": "receiver",
      "relay.outcome": "done",
      "server.address": "localhost",
      "http.response.status_code": 200,
    });
    expect(collector.resource).toMatchObject({ "service.name": "shop-relay", "service.instance.id": expect.stringMatching(/^[0-9a-f-]{36}$/) });
    expect(collector.exports.map(({ path, headers }) => [path, headers["api-key"]])).toEqual([["/v1/traces", "of-the-operator"]]);
    expect(collector.faults).toEqual([]);
  });

  test("has no payload, address, query, header or secret", async () => {
    const one = await start();
    const { signingSecret = "none" } = await save(one, [callSink()]);
    await send(one, "order_1");
    await sink.waitFor("/notice", 1);
    await one.drain();
    const text = JSON.stringify(await untilSpans(one, 4));
    for (const secret of [PRIVATE, "order_1", "in-the-query", "/notice", "x-signature", signingSecret, HOOK_SECRET])
      expect(text).not.toContain(secret);
  });

  test("ignores the traceparent of a sender's request, which no signature covers", async () => {
    const one = await start();
    await save(one, [callSink()]);
    const { headers, body } = signedCall({ id: "order_1" });
    const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await one.hook("orders", { headers: { ...headers, traceparent: given, tracestate: "vendor=1" }, body });
    const [notice] = await sink.waitFor("/notice", 1);
    await one.drain();
    expect(JSON.stringify([await untilSpans(one, 4), notice?.headers])).not.toContain("0af7651916cd43dd8448eb211c80319c");
  });

  test("joins a retry after a restart, and names the failure by its code", async () => {
    const one = await start({}, { ports: { caller: { call: async () => ({ kind: "answered", ok: false, status: 503, body: "" }) } } });
    await save(one, [callSink()]);
    const eventId = await send(one, "order_1");
    await one.drain();
    await untilSpans(one, 4);
    await one.restart();
    await one.clock.advance(60_000);
    await one.drain();
    await untilSpans(one, 6);
    const attempts = collector.spans.filter(({ name }) => name === "attempt orders");
    expect(attempts.map(({ traceId }) => traceId)).toEqual(Array(2).fill(traceIdOf(eventId)));
    expect(attempts.map(({ parentSpanId }) => parentSpanId)).toEqual(Array(2).fill(find("event orders").spanId));
    expect(attempts.map(({ status }) => status)).toEqual(Array(2).fill({ code: 2, message: "http_error" }));
    expect(attempts.map(({ attributes }) => readAttributes(attributes)["relay.state"])).toEqual(["queued", "queued"]);
    expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(6);
    expect(collector.faults).toEqual([]);
  });

  test("gives a replay a new event span in the same trace", async () => {
    const one = await start();
    await save(one, [callSink()]);
    const eventId = await send(one, "order_1");
    await one.drain();
    await untilSpans(one, 4);
    const replayed = await one.api("POST", `/events/${eventId}/replay`, {}, "local");
    expect(replayed.status).toBe(202);
    await one.drain();
    await untilSpans(one, 7);
    const events = collector.spans.filter(({ name }) => name === "event orders");
    expect(events.map(({ traceId }) => traceId)).toEqual(Array(2).fill(traceIdOf(eventId)));
    expect(events.map(({ spanId }) => spanId)).toEqual([1, 2].map((firstRun) => spanIdOf(eventId, { part: "event", firstRun })));
    expect(events[1]?.parentSpanId).toBeUndefined();
    expect(readAttributes(events[1]?.attributes)["relay.replay"]).toBe(true);
  });

  test("of an event that runs inline has three spans", async () => {
    const one = await start();
    await one.api("POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } }, "local");
    await save(one, [writeOrder]);
    await send(one, "order_1");
    await one.drain();
    const spans = await untilSpans(one, 3);
    expect(spans.map(({ name }) => name).toSorted()).toEqual(["attempt orders", "event orders", "request orders"]);
    expect(collector.faults).toEqual([]);
  });

  test("of a request without an event does not exist", async () => {
    const one = await start({ metricsEveryMs: 60_000 });
    await save(one, [callSink()]);
    await send(one, "order_1");
    await one.hook("orders", signedCall({ id: "order_1" }));
    await one.hook("orders", { ...signedCall({ id: "order_2" }), headers: { "x-signature": "00" } });
    await one.drain();
    await untilSpans(one, 4);
    await one.clock.advance(60_000);
    expect(collector.spans.filter(({ name }) => name === "request orders")).toHaveLength(1);
  });
});

describe("sampling", () => {
  const rows: { rule: string; ratio: number | null; spans: boolean; flag: string | null }[] = [
    { rule: "always_off exports no span, and a notice says so", ratio: 0, spans: false, flag: "00" },
    { rule: "always_on exports every span", ratio: 1, spans: true, flag: "01" },
    { rule: "without traces a notice has no traceparent", ratio: null, spans: false, flag: null },
  ];
  for (const { rule, ratio, spans, flag } of rows) {
    test(rule, async () => {
      const one = await start({ traceRatio: ratio, metricsEveryMs: 10_000 });
      await save(one, [callSink()]);
      await send(one, "order_1");
      const [notice] = await sink.waitFor("/notice", 1);
      await one.drain();
      await until(async () => {
        await one.clock.advance(10_000);
        return collector.metrics.size > 0 && (!spans || collector.spans.length === 4);
      });
      expect(collector.spans.length > 0).toBe(spans);
      expect(notice?.headers.traceparent?.slice(-2) ?? null).toBe(flag);
    });
  }

  test("a part of the traces is exported whole, the same on each node", async () => {
    const one = await start({ traceRatio: 0.5 });
    await save(one, [callSink()]);
    const ids: string[] = [];
    for (let at = 0; at < 24; at++) ids.push(await send(one, `order_${at}`));
    await sink.waitFor("/notice", 24);
    await one.drain();
    const sampled = sink.notices.map(({ headers }) => headers.traceparent ?? "").filter((text) => text.endsWith("-01"));
    await untilSpans(one, 4 * sampled.length);
    const traces = Map.groupBy(collector.spans, ({ traceId }) => traceId);
    expect([...traces.keys()].toSorted()).toEqual(sampled.map((text) => text.split("-")[1] ?? "").toSorted());
    expect([...traces.values()].map((spans) => spans.length)).toEqual(Array(traces.size).fill(4));
    expect(sampled.length).toBeGreaterThan(0);
    expect(sampled.length).toBeLessThan(24);
    expect(new Set(ids.map(traceIdOf)).size).toBe(24);
  });
});

describe("a collector that", () => {
  const rows: { rule: string; answers: CollectorAnswer[]; exported: number; dropped: number; up: number; tries: number }[] = [
    { rule: "answers 500 loses the batch at once", answers: [{ status: 500 }, { status: 200 }], exported: 0, dropped: 4, up: 0, tries: 1 },
    { rule: "answers 400 loses the batch at once", answers: [{ status: 400 }, { status: 200 }], exported: 0, dropped: 4, up: 0, tries: 1 },
    {
      rule: "redirects is not followed",
      answers: [{ status: 307, headers: { location: "/v1/other" } }, { status: 200 }],
      exported: 0,
      dropped: 4,
      up: 0,
      tries: 1,
    },
    { rule: "answers 503 gets the batch again", answers: [{ status: 503 }, { status: 200 }], exported: 4, dropped: 0, up: 1, tries: 2 },
    {
      rule: "answers 429 gets it again after Retry-After",
      answers: [{ status: 429, headers: { "retry-after": "7" } }, { status: 200 }],
      exported: 4,
      dropped: 0,
      up: 1,
      tries: 2,
    },
    { rule: "answers 504 each time loses the batch after five tries", answers: [{ status: 504 }], exported: 0, dropped: 4, up: 0, tries: 5 },
    { rule: "never answers loses the batch after five tries", answers: ["never"], exported: 0, dropped: 4, up: 0, tries: 5 },
    {
      rule: "rejects a part of the spans says how many",
      answers: [{ status: 200, body: '{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}' }],
      exported: 1,
      dropped: 3,
      up: 0,
      tries: 1,
    },
  ];
  for (const { rule, answers, exported, dropped, up, tries } of rows) {
    test(rule, async () => {
      const one = await start(answers.includes("never") ? { exportWithinMs: 10_000 } : {});
      collector.answer(...answers);
      await save(one, [callSink()]);
      await send(one, "order_1");
      await sink.waitFor("/notice", 1);
      await one.drain();
      await until(async () => {
        await one.clock.advance(5_000);
        return (
          (await metric(one, 'relay_otlp_spans_total{outcome="exported"}')) + (await metric(one, 'relay_otlp_spans_total{outcome="dropped"}')) === 4
        );
      });
      expect([
        await metric(one, 'relay_otlp_spans_total{outcome="exported"}'),
        await metric(one, 'relay_otlp_spans_total{outcome="dropped"}'),
      ]).toEqual([exported, dropped]);
      expect(await metric(one, 'relay_otlp_up{signal="traces"}')).toBe(up);
      expect(collector.exports).toHaveLength(tries);
      expect(collector.faults).toEqual([]);
    });
  }

  test("asks to wait gets nothing before", async () => {
    const one = await start();
    collector.answer({ status: 429, headers: { "retry-after": "120" } }, { status: 200 });
    await save(one, [callSink()]);
    await send(one, "order_1");
    await sink.waitFor("/notice", 1);
    await one.drain();
    await until(async () => {
      await one.clock.advance(1_000);
      return collector.exports.length === 1;
    });
    await one.clock.advance(118_000);
    expect(collector.exports).toHaveLength(1);
    await untilSpans(one, 4);
  });

  test("is down leaves a bounded queue, and what is over it is dropped and counted", async () => {
    const one = await start({}, { config: { limits: { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1_000 } } });
    collector.answer("never");
    await one.api("POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } }, "local");
    await save(one, [writeOrder]);
    // The first batch is on its way. The queue takes 2,048 more spans.
    for (let at = 0; at < 900; at += 50) await Promise.all(Array.from({ length: 50 }, (_, more) => send(one, `order_${at + more}`)));
    await one.drain();
    expect(await metric(one, 'relay_otlp_spans_total{outcome="dropped"}')).toBe(2_700 - 512 - 2_048);
    expect(await metric(one, "relay_events_stored_total")).toBe(900);
  });

  test("is at a private address that the operator did not allow gets nothing", async () => {
    const one = await start({}, { config: { allowPrivate: [] } });
    await save(one, [callSink()]);
    await send(one, "order_1");
    await one.drain();
    await until(async () => {
      await one.clock.advance(5_000);
      return (await metric(one, 'relay_otlp_spans_total{outcome="dropped"}')) === 4;
    });
    expect(collector.exports).toEqual([]);
    expect(one.logged.join("\n")).toContain("localhost (127.0.0.1) is a loopback address");
  });
});

describe("metrics", () => {
  test("are those of /metrics, with the same names and values", async () => {
    const one = await start({ traceRatio: null, metricsEveryMs: 30_000 });
    await save(one, [callSink()]);
    await send(one, "order_1");
    await sink.waitFor("/notice", 1);
    await one.drain();
    await until(async () => {
      await one.clock.advance(30_000);
      return collector.metrics.size > 0;
    });
    const text = await (await fetch(`${one.service.url}/metrics`)).text();
    const named = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name = "", kind]) => [name, kind]);
    const withData = named.filter(([name]) => new RegExp(`^${name}(_count)?[ {]`, "m").test(text));
    const kindOf = { counter: "sum", gauge: "gauge", histogram: "histogram" } as Record<string, string>;
    for (const [name = "", kind = ""] of withData)
      expect([name, collector.metrics.get(name)?.[kindOf[kind] ?? ""] !== undefined || name === "relay_otlp_up"]).toEqual([name, true]);
    const calls = collector.metrics.get("relay_receiver_calls_total")?.sum.dataPoints;
    expect(
      calls.map((point: { asDouble: number; attributes: CollectedSpan["attributes"] }) => [readAttributes(point.attributes), point.asDouble]),
    ).toContainEqual([{ outcome: "accepted" }, 1]);
    expect(collector.metrics.get("relay_run_duration_seconds")).toMatchObject({ unit: "s", histogram: { dataPoints: [{ count: 1 }] } });
    expect(collector.metrics.get("relay_database_bytes")?.unit).toBe("By");
    expect(collector.faults).toEqual([]);
    expect(collector.exports[0]?.path).toBe("/v1/metrics");
  });

  test("of a failed export are in the next one", async () => {
    const one = await start({ traceRatio: null, metricsEveryMs: 30_000 });
    collector.answer({ status: 500 }, { status: 200 });
    await until(async () => {
      await one.clock.advance(30_000);
      return collector.metrics.size > 0;
    });
    const points = collector.metrics.get("relay_otlp_exports_total")?.sum.dataPoints;
    expect(
      points.map((point: { asDouble: number; attributes: CollectedSpan["attributes"] }) => [readAttributes(point.attributes), point.asDouble]),
    ).toContainEqual([{ signal: "metrics", outcome: "failed" }, 1]);
  });
});

describe("the service", () => {
  test("sends protocol buffers by default, which collectors of any kind take", async () => {
    const one = await start({ protocol: "http/protobuf", metricsEveryMs: 5_000 });
    await save(one, [callSink()]);
    await send(one, "order_1");
    await sink.waitFor("/notice", 1);
    await one.drain();
    await until(async () => {
      await one.clock.advance(5_000);
      return new Set(collector.exports.map(({ path }) => path)).size === 2;
    });
    expect(new Set(collector.exports.map(({ headers }) => headers["content-type"]))).toEqual(new Set(["application/x-protobuf"]));
    expect(collector.faults).toEqual([]);
  });

  test("exports what is left before it stops", async () => {
    const one = await start({ metricsEveryMs: 3_600_000 });
    await save(one, [callSink()]);
    await send(one, "order_1");
    await sink.waitFor("/notice", 1);
    await one.drain();
    expect(collector.exports).toEqual([]);
    await one.restart();
    expect(collector.spans).toHaveLength(4);
    expect(collector.metrics.size).toBeGreaterThan(0);
  });

  test("stops while the collector does not answer", async () => {
    const one = await start();
    collector.answer("never");
    await save(one, [callSink()]);
    await send(one, "order_1");
    await sink.waitFor("/notice", 1);
    await one.drain();
    await one[Symbol.asyncDispose]();
    running = null;
    expect(collector.exports).toHaveLength(1);
  });

  test("logs a failure once, without the headers", async () => {
    const one = await start({ metricsEveryMs: 30_000 });
    collector.answer({ status: 500 });
    await until(async () => {
      await one.clock.advance(30_000);
      return collector.exports.length > 0;
    });
    await until(async () => one.logged.some((line) => line.includes("The collector answered 500.")));
    await one.clock.advance(60_000);
    expect(one.logged.filter((line) => line.includes("the export of metrics failed"))).toHaveLength(1);
    expect(one.logged.join("\n")).not.toContain("of-the-operator");
  });
});

describe("without a collector", () => {
  test("no package of OpenTelemetry is loaded, and with one it is", async () => {
    const load = async (telemetry: TelemetryConfig | null): Promise<boolean> => {
      const program = `
        import { startBareService } from "${import.meta.dir}/../kit/running-service.ts";
        const one = await startBareService({ config: { telemetry: ${JSON.stringify(telemetry)} } });
        process.stdout.write(String(Object.keys(require.cache).some((file) => file.includes("@opentelemetry"))));
        process.exit(0);`;
      const { stdout } = Bun.spawnSync([process.execPath, "-e", program]);
      return stdout.toString().includes("true");
    };
    expect([await load(null), await load(telemetry())]).toEqual([false, true]);
  });

  test("nothing is exported, and a notice has no traceparent", async () => {
    const one = await start(null);
    await save(one, [callSink()]);
    await send(one, "order_1");
    const [notice] = await sink.waitFor("/notice", 1);
    await one.drain();
    await one.clock.advance(120_000);
    expect(notice?.headers.traceparent).toBeUndefined();
    expect(collector.exports).toEqual([]);
    expect(await metric(one, 'relay_otlp_exports_total{signal="metrics",outcome="ok"}')).toBe(0);
  });
});
