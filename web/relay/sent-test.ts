/** Texts for a test event: its result, and the body of an example for editing. */
import { parseExact, writeExact } from "../base/exact-json.ts";

/** Answer of the service to a test event. */
export interface SentTest {
  outcome: "new" | "known" | "ignored";
  eventId: string | null;
  message: string | null;
}

export function formatSentTest({ outcome, eventId, message }: SentTest): string {
  if (outcome === "known")
    return `Nothing ran, because the test event is a duplicate of ${eventId ?? "an ignored request"}.`;
  if (outcome === "ignored") return `Relay ignored the test event, because ${message}.`;
  return message ?? "Test event sent. It has the same effects as a real event.";
}

/** Indents a JSON body. Returns any other body unchanged. */
export function formatBody(body: string): string {
  try {
    return writeExact(parseExact(body), 2);
  } catch {
    return body;
  }
}
