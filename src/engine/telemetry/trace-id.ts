/**
 * Derives the ids of traces and spans from the event's public id, so that nothing is stored: attempts hours later, after a restart or on another node
 * join the trace of their event. A hash makes them look random, as samplers expect.
 */
import { createHash } from "node:crypto";

/** Returns the id of the event's trace, 32 hexadecimal digits. */
export function traceIdOf(eventId: string): string {
  return digest(`trace\n${eventId}`, 16);
}

/** The parts of a trace that are one span each. `run` is the number of a run among all runs of the event; `action` is an index from 0. */
export type SpanPart =
  | { part: "request" }
  /** A life of the event: from its arrival or replay, whose first run has this number. */
  | { part: "event"; firstRun: number }
  | { part: "attempt"; run: number }
  | { part: "call"; run: number; action: number };

/** Returns the id of a span, 16 hexadecimal digits. */
export function spanIdOf(eventId: string, part: SpanPart): string {
  return digest(`span\n${eventId}\n${Object.values(part).join("\n")}`, 8);
}

/** Returns the W3C `traceparent` of a span: its id is the parent of the spans that the called server makes. */
export function formatTraceparent(traceId: string, spanId: string, isSampled: boolean): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

function digest(text: string, bytes: number): string {
  return createHash("sha256")
    .update(text)
    .digest("hex")
    .slice(0, 2 * bytes);
}
