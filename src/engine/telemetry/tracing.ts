/**
 * Makes the spans of a trace: request → event → attempt → call. Each is made after it ended, from what the receiver and the runner report, so tracing
 * adds no work before a commit. Attributes are names, types, ids, codes, statuses and hosts; a payload, an address of a person, a query or a header
 * never gets into a span. A `traceparent` of a sender's request is ignored, because its signature does not cover it.
 */
import { type Attributes, type HrTime, ROOT_CONTEXT, SpanKind, SpanStatusCode } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import { type ReadableSpan, SamplingDecision, TraceIdRatioBasedSampler } from "@opentelemetry/sdk-trace";
import { VERSION } from "../../base/release/version.ts";
import type { StoredResult } from "../../rules/action/contract.ts";
import type { AttemptResult } from "../event/run.ts";
import { formatTraceparent, type SpanPart, spanIdOf, traceIdOf } from "./trace-id.ts";

/** The relay, as its spans name it. */
interface NamedRelay {
  name: string;
  appId: string;
  environmentName: string;
}

/** A verified request that became an event. Times are wall times. */
interface TracedRequest {
  relay: NamedRelay;
  eventId: string;
  startedAtMs: number;
  endedAtMs: number;
}

/** The part of a run's report that becomes spans. */
interface TracedRun {
  result: Pick<
    AttemptResult,
    "event" | "relay" | "startedAtMs" | "finishedAtMs" | "results" | "outcome" | "state" | "reason"
  >;
}

interface TracingOptions {
  resource: Resource;
  /** The part of traces to export, from 0 to 1. */
  ratio: number;
  /** Takes each span. It never throws and never waits. */
  take(span: ReadableSpan): void;
}

const SCOPE = { name: "relay-service", version: VERSION };

export class Tracing {
  readonly #options: TracingOptions;
  readonly #sampler: TraceIdRatioBasedSampler;

  constructor(options: TracingOptions) {
    this.#options = options;
    this.#sampler = new TraceIdRatioBasedSampler(options.ratio);
  }

  /** Makes the span of a request in the trace of its event. */
  readonly recordRequest = ({ relay, eventId, startedAtMs, endedAtMs }: TracedRequest): void => {
    this.#take(eventId, { part: "request" }, null, {
      name: `request ${relay.name}`,
      kind: SpanKind.SERVER,
      attributes: {
        ...describe(eventId, relay),
        "http.request.method": "POST",
        "http.response.status_code": 200,
      },
      startMs: startedAtMs,
      endMs: endedAtMs,
    });
  };

  /** Makes the spans of an attempt and its calls, and with the first attempt the span of the event. */
  readonly recordRun = ({ result }: TracedRun): void => {
    const { event, relay, startedAtMs, finishedAtMs, results, outcome, state, reason } = result;
    const named = {
      name: event.relayName,
      appId: relay?.appId ?? "",
      environmentName: relay?.environmentName ?? "",
    };
    const common = { ...describe(event.id, named), "relay.trigger": event.trigger };
    const failure = outcome === "ok" ? null : (reason ?? outcome);
    const life: SpanPart = { part: "event", firstRun: event.runs - event.attempts + 1 };
    const attempt: SpanPart = { part: "attempt", run: event.runs };
    if (event.attempts === 1) {
      const isArrival = event.runs === 1;
      const hasRequest = isArrival && event.trigger === "receiver" && event.source !== "import";
      this.#take(event.id, life, hasRequest ? { part: "request" } : null, {
        name: `event ${named.name}`,
        kind: SpanKind.PRODUCER,
        attributes: { ...common, "relay.replay": !isArrival },
        startMs: isArrival ? event.createdAt : startedAtMs,
        endMs: finishedAtMs,
      });
    }
    this.#take(event.id, attempt, life, {
      name: `attempt ${named.name}`,
      kind: SpanKind.CONSUMER,
      attributes: {
        ...common,
        "relay.attempt": event.attempts,
        "relay.run": event.runs,
        "relay.outcome": outcome,
        "relay.state": state,
        "relay.actions": results.length,
      },
      startMs: startedAtMs,
      endMs: finishedAtMs,
      failure,
    });
    for (const [action, sent] of results.entries()) {
      if (sent.beganAt === undefined) continue;
      const { type, beganAt, tookMs = 0 } = sent;
      this.#take(event.id, { part: "call", run: event.runs, action }, attempt, {
        name: type,
        kind: SpanKind.CLIENT,
        attributes: {
          ...common,
          "relay.action": action + 1,
          "relay.outcome": sent.outcome,
          ...describeExchange(sent),
        },
        startMs: beganAt,
        endMs: beganAt + tookMs,
        failure: sent.outcome === "failed" ? sent.code : null,
      });
    }
  };

  /** Returns the `traceparent` of a notice: the span of its call. */
  readonly traceparentOf = (eventId: string, run: number, action: number): string => {
    const traceId = traceIdOf(eventId);
    return formatTraceparent(
      traceId,
      spanIdOf(eventId, { part: "call", run, action }),
      this.#isSampled(traceId),
    );
  };

  #isSampled(traceId: string): boolean {
    return this.#sampler.shouldSample(ROOT_CONTEXT, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED;
  }

  #take(eventId: string, part: SpanPart, parent: SpanPart | null, span: SpanData): void {
    const traceId = traceIdOf(eventId);
    if (!this.#isSampled(traceId)) return;
    const contextOf = (one: SpanPart) => ({ traceId, spanId: spanIdOf(eventId, one), traceFlags: 1 });
    const context = contextOf(part);
    const failure = span.failure ?? null;
    this.#options.take({
      name: span.name,
      kind: span.kind,
      spanContext: () => context,
      // A parent on another node has the same ids.
      ...(parent === null ? {} : { parentSpanContext: contextOf(parent) }),
      startTime: toHrTime(span.startMs),
      endTime: toHrTime(Math.max(span.startMs, span.endMs)),
      duration: toHrTime(Math.max(0, span.endMs - span.startMs)),
      status:
        failure === null ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: failure },
      attributes: failure === null ? span.attributes : { ...span.attributes, "error.type": failure },
      links: [],
      events: [],
      ended: true,
      resource: this.#options.resource,
      instrumentationScope: SCOPE,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    });
  }
}

interface SpanData {
  name: string;
  kind: SpanKind;
  attributes: Attributes;
  /** Milliseconds since the epoch. They may have a fraction. */
  startMs: number;
  endMs: number;
  /** A code; null or absent if nothing failed. */
  failure?: string | null;
}

function describe(eventId: string, { name, appId, environmentName }: NamedRelay): Attributes {
  return {
    "relay.event.id": eventId,
    "relay.name": name,
    ...(appId === "" ? {} : { "relay.app": appId, "relay.environment": environmentName }),
  };
}

/** Describes a call by its host and status. Path and query may be secret. */
function describeExchange({ request, answer }: Pick<StoredResult, "request" | "answer">): Attributes {
  return {
    ...(request === undefined
      ? {}
      : { "http.request.method": request.method, "server.address": new URL(request.url).hostname }),
    ...(answer === undefined ? {} : { "http.response.status_code": answer.status }),
  };
}

/** Converts milliseconds since the epoch into seconds and nanoseconds. */
export function toHrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)];
}
