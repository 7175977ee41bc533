/**
 * Orders the attention items: first what stops the whole environment, then what fails now, then approvals, then failures whose cause is fixed, and
 * last what concerns the server. Among equals, the item that affects more events comes first.
 */

import type { AttentionItem } from "./attention-item.ts";
import type { Day } from "./last-day.ts";

type Weighed = Pick<AttentionItem, "code" | "target" | "relay" | "dead">;

/** Sorts the items, the most urgent first. `refused` holds the rejected requests of the last day by relay name. */
export function orderAttention<Item extends Weighed>(
  items: readonly Item[],
  day: Pick<Day, "relays">,
  refused: ReadonlyMap<string, number>,
): Item[] {
  const weighed = items.map((item) => ({ item, rank: rankOf(item), amount: amountOf(item, day, refused) }));
  return weighed
    .sort((one, other) => one.rank - other.rank || other.amount - one.amount)
    .map(({ item }) => item);
}

function rankOf({ code, target, dead }: Weighed): number {
  if (code === "environment_held") return 0;
  if (code === "approval_waiting") return 2;
  if (target === "server") return 4;
  return dead?.cause.stands === "no" || code === "requests_rejected" ? 3 : 1;
}

/**
 * Counts what the item affects: unfinished or failed events of the last day, rejected requests, and older dead events. An item without a relay
 * counts all relays.
 */
function amountOf(
  { relay, dead }: Weighed,
  { relays }: Pick<Day, "relays">,
  refused: ReadonlyMap<string, number>,
): number {
  const names = relay === null ? new Set([...relays.keys(), ...refused.keys()]) : [relay];
  let amount = 0;
  for (const name of names) {
    const { dead: deadToday = 0, failed = 0, waiting = 0 } = relays.get(name) ?? {};
    amount += Math.max(deadToday, dead?.events ?? 0) + failed + waiting + (refused.get(name) ?? 0);
  }
  return amount;
}
