/**
 * Verification while a receiver's secret is being rotated: the new one first, then, until the overlap ends, the one before it. A call
 * that neither verifies is refused for what the new one says; when the overlap ends is the call's own time to say, not a reload's.
 */
import type { Verifier } from "../verify/contract.ts";

/** `untilMs`: from then on (milliseconds since the epoch) `previous` verifies nothing. */
export function overlapVerifiers(present: Verifier, previous: Verifier, untilMs: number): Verifier {
  return {
    verify(call) {
      const verdict = present.verify(call);
      if (verdict.verified || call.nowMs >= untilMs) return verdict;
      const earlier = previous.verify(call);
      return earlier.verified ? earlier : verdict;
    },
  };
}
