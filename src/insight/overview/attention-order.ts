/**
 * Which of what needs somebody stands first: what stops everything, then what goes wrong now by how much it keeps from being done, then what
 * waits for an owner's word, then what is over and wants a replay alone, and the server's own at the end. What weighs the same stays as it was.
 */

import type { AttentionItem } from "./attention.ts";
import type { Day } from "./last-day.ts";

type Weighed = Pick<AttentionItem, "code" | "target" | "relay" | "dead">;

/** `refused`: calls of the last day by relay's name. */
export function orderAttention<Need extends Weighed>(
  needs: readonly Need[],
  day: Pick<Day, "relays">,
  refused: ReadonlyMap<string, number>,
): Need[] {
  const weighed = needs.map((need) => ({ need, rank: rankOf(need), amount: amountOf(need, day, refused) }));
  return weighed
    .sort((one, other) => one.rank - other.rank || other.amount - one.amount)
    .map(({ need }) => need);
}

function rankOf({ code, target, dead }: Weighed): number {
  if (code === "environment_held") return 0;
  if (code === "approval_waiting") return 2;
  if (target === "server") return 4;
  return dead?.cause.stands === "no" ? 3 : 1;
}

/** Events of the last day that are not done, calls refused, and what is dead from before; what is of no relay alone weighs as all of them. */
function amountOf(
  { relay, dead }: Weighed,
  { relays }: Pick<Day, "relays">,
  refused: ReadonlyMap<string, number>,
): number {
  const names = relay === null ? new Set([...relays.keys(), ...refused.keys()]) : [relay];
  let amount = 0;
  for (const name of names) {
    const { dead: died = 0, failed = 0, waiting = 0 } = relays.get(name) ?? {};
    amount += Math.max(died, dead?.events ?? 0) + failed + waiting + (refused.get(name) ?? 0);
  }
  return amount;
}
