/** Counts the figures of a relay's problem when it is shown, because its stored message is from the time when it was raised. */
import { toIso } from "../../base/clock.ts";
import type { Reader } from "../../store/port.ts";
import { relayTarget } from "./relay.ts";

/** Formats how often the problem occurred without a success between. */
const FIGURES: Readonly<Record<string, (count: string) => string>> = {
  relay_refusing: (count) => `${count} requests were rejected`,
  relay_ignoring: (count) => `${count} requests were ignored`,
  relay_nobody: (count) => `${count} events found no person`,
  relay_failing: (count) => `${count} attempts failed`,
  relay_capped: (count) => `${count} events were rejected`,
};

const STREAK = `SELECT CASE WHEN $code = 'relay_refusing' THEN refused_count ELSE CAST(streaks ->> ('$.runs.' || $code || '.count') AS INTEGER) END AS count,
    CASE WHEN $code = 'relay_refusing' THEN refused_since ELSE CAST(streaks ->> ('$.runs.' || $code || '.since') AS INTEGER) END AS since,
    CASE WHEN $code = 'relay_refusing' THEN refused_at ELSE CAST(streaks ->> ('$.runs.' || $code || '.at') AS INTEGER) END AS at
  FROM relay WHERE environment_id = $environmentId AND name = $relay`;

/** Adds the present figures to the message of an open problem or alert. */
export async function addFigures(
  tx: Reader,
  environmentId: number,
  { code, target, message }: { code: string; target: string; message: string },
): Promise<string> {
  const format = FIGURES[code];
  const prefix = relayTarget("");
  if (format === undefined || !target.startsWith(prefix)) return message;
  const relay = target.slice(prefix.length);
  const streak = await tx.get<{ count: number | null; since: number; at: number }>(STREAK, {
    environmentId,
    code,
    relay,
  });
  if (streak?.count == null || streak.count < 2) return message;
  const { count, since, at } = streak;
  return `${message} ${format(count.toLocaleString("en"))} since ${toIso(since)}, the last at ${toIso(at)}.`;
}
