/**
 * Posts one export to the collector and evaluates its response. Source: OTLP 1, "OTLP/HTTP": only 429, 502, 503 and 504 are retried, after the
 * seconds of Retry-After if the collector names them.
 */
import type {
  IExportMetricsServiceResponse,
  IExportTraceServiceResponse,
} from "@opentelemetry/otlp-transformer";
import type { Clock } from "../../base/clock.ts";
import type { TelemetryConfig } from "../../base/config.ts";
import { VERSION } from "../../base/release/version.ts";
import { cutToLine } from "../../base/text.ts";
import { OperatorClient, OperatorRequestFailed } from "../../platform/outbound/operator-client.ts";

/** The most bytes of a response that are read. A collector answers with a few. */
const MAX_RESPONSE_BYTES = 65_536;
const MAX_MESSAGE_CHARS = 200;
/** The longest wait that a collector can ask for. */
const LONGEST_ASKED_MS = 600_000;
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export type Signal = "traces" | "metrics";

export type ExportOutcome =
  /** `rejected`: the spans or data points that the collector did not accept. */
  | { kind: "ok"; rejected: number; message: string | null }
  /** `afterMs`: the wait that the collector asks for, or null. */
  | { kind: "retry"; afterMs: number | null; message: string }
  | { kind: "failed"; message: string };

interface CollectorDeps {
  config: TelemetryConfig;
  clock: Clock;
  allowPrivate: readonly string[];
}

/** The two forms of one signal, as the package of OpenTelemetry serializes it. */
export interface Serializer<Data> {
  serializeRequest(data: Data): Uint8Array | undefined;
  deserializeResponse(data: Uint8Array): IExportTraceServiceResponse | IExportMetricsServiceResponse;
}

export class Collector {
  readonly #deps: CollectorDeps;
  readonly #client: OperatorClient;

  constructor(deps: CollectorDeps) {
    this.#deps = deps;
    this.#client = new OperatorClient(deps);
  }

  /** Sends one export at a time. Never throws. */
  async post<Data>(signal: Signal, data: Data, serializer: Serializer<Data>): Promise<ExportOutcome> {
    const { config, clock } = this.#deps;
    try {
      const { status, headers, body } = await this.#client.request({
        method: "POST",
        url: new URL(`${config.endpoint}/v1/${signal}`),
        headers: {
          "user-agent": `relay-service/${VERSION}`,
          ...config.headers,
          "content-type": config.protocol === "http/json" ? "application/json" : "application/x-protobuf",
        },
        body: serializer.serializeRequest(data) ?? new Uint8Array(),
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: config.exportWithinMs,
      });
      if (status >= 200 && status < 300) return readAccepted(body, serializer);
      const message = `The collector answered ${status}.`;
      if (!RETRYABLE.has(status)) return { kind: "failed", message };
      return { kind: "retry", afterMs: readRetryAfter(headers["retry-after"], clock.now()), message };
    } catch (error) {
      if (!(error instanceof OperatorRequestFailed)) throw error;
      return { kind: "retry", afterMs: null, message: error.message };
    }
  }

  close(): void {
    this.#client.close();
  }
}

/** Reads which part the collector did not accept. A response that cannot be read counts as complete success. */
function readAccepted<Data>(body: Uint8Array, serializer: Serializer<Data>): ExportOutcome {
  try {
    const partial = body.byteLength === 0 ? undefined : serializer.deserializeResponse(body).partialSuccess;
    if (partial === undefined || partial === null) return { kind: "ok", rejected: 0, message: null };
    const rejected = Number(
      ("rejectedSpans" in partial ? partial.rejectedSpans : undefined) ??
        ("rejectedDataPoints" in partial ? partial.rejectedDataPoints : undefined) ??
        0,
    );
    const message = partial.errorMessage ? cutToLine(partial.errorMessage, MAX_MESSAGE_CHARS) : null;
    return { kind: "ok", rejected: Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0, message };
  } catch {
    return { kind: "ok", rejected: 0, message: null };
  }
}

/** Reads Retry-After, seconds or a date, as milliseconds from now; null if it is neither. */
function readRetryAfter(text: string | undefined, nowMs: number): number | null {
  if (text === undefined) return null;
  const askedMs = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs;
  return Number.isNaN(askedMs) ? null : Math.min(LONGEST_ASKED_MS, Math.max(0, askedMs));
}
