/** Counts the figures of a relay's problem when it is shown, because its stored message is from the time when it was raised. */
import { toIso } from "../../base/clock.ts";
import type { Reader } from "../../store/port.ts";
import { findStreak } from "./streak.ts";

/** Formats how often the problem occurred without a success between. */
const FIGURES: Readonly<Record<string, (count: string) => string>> = {
  relay_refusing: (count) => `${count} requests were rejected`,
  relay_ignoring: (count) => `${count} requests were ignored`,
  relay_nobody: (count) => `${count} events found no person`,
  relay_failing: (count) => `${count} attempts failed`,
  relay_capped: (count) => `${count} events were rejected`,
};

/** Adds the present figures to the message of an open problem or alert. */
export async function addFigures(
  tx: Reader,
  environmentId: number,
  { code, target, message }: { code: string; target: string; message: string },
): Promise<string> {
  const format = FIGURES[code];
  if (format === undefined) return message;
  const { count = null, since = null, at = null } = (await findStreak(tx, environmentId, code, target)) ?? {};
  if (count === null || since === null || at === null || count < 2) return message;
  return `${message} ${format(count.toLocaleString("en"))} since ${toIso(since)}, the last at ${toIso(at)}.`;
}
