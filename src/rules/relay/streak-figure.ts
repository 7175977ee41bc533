/** Counts the figures of a relay's problem when it is shown, because its stored message is from the time when it was raised. */
import { toIso } from "../../base/clock.ts";
import { formatCount } from "../../base/text.ts";
import type { Reader } from "../../store/port.ts";
import { countRejectedIds, findRejected, REQUESTS_REJECTED } from "./rejected-request.ts";
import { relayOf } from "./relay.ts";
import { findStreak } from "./streak.ts";

/** Formats how often the problem occurred without a success between. */
const FIGURES: Readonly<Record<string, (count: string) => string>> = {
  relay_ignoring: (count) => `${count} requests were ignored`,
  relay_nobody: (count) => `${count} events found no person`,
  relay_failing: (count) => `${count} attempts failed`,
  relay_capped: (count) => `${count} events were rejected`,
};
/** Problems of a receiver that rejects requests because of its secret or its recipe. */
const REJECTING: ReadonlySet<string> = new Set(["relay_refusing", "never_verified", "secret_missing"]);

interface Subject {
  code: string;
  target: string;
  message: string;
}

/** Adds the present figures to the message of an open problem or alert. */
export async function addFigures(
  tx: Reader,
  environmentId: number,
  { code, target, message }: Subject,
  nowMs: number,
): Promise<string> {
  if (code === REQUESTS_REJECTED)
    return (await findRejected(tx, environmentId, target, nowMs))?.message ?? message;
  const format = REJECTING.has(code)
    ? (count: string) => `So far ${count} requests were rejected`
    : FIGURES[code];
  if (format === undefined) return message;
  const { count = null, since = null, at = null } = (await findStreak(tx, environmentId, code, target)) ?? {};
  if (count === null || since === null || at === null || count < 2) return message;
  const figures = `${format(formatCount(count))} since ${toIso(since)}, the last at ${toIso(at)}.`;
  const ids = REJECTING.has(code)
    ? await countRejectedIds(tx, environmentId, relayOf(target) ?? "", since)
    : 0;
  // A sender repeats a rejected request, so there can be fewer events than requests.
  if (ids === 0 || ids >= count) return `${message} ${figures}`;
  return `${message} ${figures} They name ${ids === 1 ? "1 event" : `${formatCount(ids)} different events`}.`;
}
