/**
 * Requests an apply under a key, which identifies a repeated request. After a lost response the command sends the request again, and the server
 * returns the first response with its secrets.
 */
import { sleep } from "../../../base/clock.ts";
import { Refusal } from "../../../base/refusal.ts";
import type { PlanResult } from "../../../operator/sync/plan-view.ts";
import { CommandFailure } from "../command.ts";
import type { Io } from "../io.ts";

const RETRY_EVERY_MS = 1_000;

interface Patience {
  /** The time from the first request in which the command repeats it. */
  forMs: number;
  /** Repeats also on a server of an earlier version, which knows no key, because it applies this plan only once. */
  isOnce: boolean;
}

/** Sends the apply until a response arrives. Throws the server's refusal, or the failure of the last request. */
export async function requestApply(
  send: (keyed: { key?: string }) => Promise<PlanResult>,
  { forMs, isOnce }: Patience,
  io: Io,
): Promise<PlanResult> {
  let keyed: { key?: string } = { key: crypto.randomUUID() };
  const endsAt = io.clock.now() + forMs;
  for (;;) {
    try {
      return await send(keyed);
    } catch (error) {
      if (isUnknownKey(error)) {
        keyed = {};
        continue;
      }
      const isRepeatable = isOnce || keyed.key !== undefined;
      if (!isAway(error) || !isRepeatable || io.clock.now() >= endsAt) throw error;
      io.inform(
        "The server's response was lost. The command sends the same request again, and the server applies it only once.",
      );
      await sleep(io.clock, RETRY_EVERY_MS);
    }
  }
}

/** Reports whether the server is of an earlier version, which knows no key. */
function isUnknownKey(error: unknown): boolean {
  const problems = error instanceof Refusal ? (error.extra.problems ?? []) : [];
  return problems.length > 0 && problems.every(({ field }) => field === "key");
}

/** Reports whether no response arrived, so that it is unknown if the server did the work. */
export function isAway(error: unknown): boolean {
  const code = error instanceof CommandFailure || error instanceof Refusal ? error.code : null;
  return code === "service_not_running" || code === "not_recorded";
}
