/** Counts a request in the windows of several limits, in all of them or in none. Callers choose the windows. */
import type { Limiter } from "./limiter.ts";
import { sharingNetworksOf, wideNetworkOf } from "./network.ts";

/** A window that must have a place for a request. */
interface Need {
  limiter: Limiter;
  name: string;
  /** The amount to count. Default: 1. With 0, the window is only checked. */
  amount?: number;
  /** A bound of this window below the limiter's own limit. */
  atMost?: number;
}

/** Returns the first full window and when it resets, or null if none is full. Counts nothing. */
export function findFull<One extends Need>(needs: readonly One[]): { need: One; resetAtMs: number } | null {
  for (const need of needs) {
    const resetAtMs = need.limiter.fullUntil(need.name, need.atMost);
    if (resetAtMs !== null) return { need, resetAtMs };
  }
  return null;
}

/**
 * Draws the places that these windows lack, for all of them or for none. It must run before the windows are checked. A single process has nothing to
 * draw. Throws StoreUnavailable.
 */
export async function drawPlaces(needs: readonly Need[]): Promise<void> {
  const asks = needs.flatMap(({ limiter, name, amount = 1 }) =>
    amount > 0 && limiter.isShort(name, amount) ? [{ limiter, name, amount }] : [],
  );
  const places = asks[0]?.limiter.places ?? null;
  if (places === null) return;
  // A request that will be refused draws nothing.
  const isRefused = needs.some(
    ({ limiter, name }) => !limiter.isShort(name) && limiter.fullUntil(name) !== null,
  );
  if (!isRefused) await places.draw(asks);
}

/** Counts in every window and returns null. If a window is full, counts nothing, and returns that window and when it resets. */
export function takeAll<One extends Need>(needs: readonly One[]): { need: One; resetAtMs: number } | null {
  const full = findFull(needs);
  if (full !== null) return full;
  for (const { limiter, name, amount = 1 } of needs) if (amount > 0) limiter.count(name, amount);
  return null;
}

/** Returns the caller's own window, and the window of its wide network if it has one. */
export function needsOfSource(
  source: string,
  own: Limiter,
  wide: Limiter,
): (Need & { network: string | null })[] {
  const network = wideNetworkOf(source);
  const ownNeed = { limiter: own, name: source, network: null };
  return network === null ? [ownNeed] : [ownNeed, { limiter: wide, name: network, network }];
}

/**
 * Returns the windows of a caller's networks in a shared limit. A network may count one more only while its count is below the rest of the limit,
 * times its weight. One network stops at half of the limit, two at a third each, and k networks leave 1 / (k + 1) for others.
 */
export function needsOfShare(
  source: string,
  shared: { limiter: Limiter; name: string },
  byNetwork: Limiter,
): (Need & { network: string })[] {
  const left = shared.limiter.left(shared.name);
  return sharingNetworksOf(source).map(({ network, weight }) => ({
    limiter: byNetwork,
    name: `${shared.name} ${network}`,
    network,
    atMost: weight * left,
  }));
}
