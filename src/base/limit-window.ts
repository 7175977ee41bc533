/**
 * The windows that one request needs room in, of several limits at once: it counts in all of them or in none. Which windows those are, the callers
 * decide.
 */
import type { Limiter } from "./limiter.ts";
import { sharingNetworksOf, wideNetworkOf } from "./network.ts";

/** A window that a request needs room in. */
interface Need {
  limiter: Limiter;
  name: string;
  /** How much it counts: 1 unless told; 0 only looks. */
  amount?: number;
  /** A bound of this window below its limiter's own. */
  atMost?: number;
}

/** The first window without room, and when it has some; null where each has room. Counts nothing. */
export function findFull<One extends Need>(needs: readonly One[]): { need: One; resetAtMs: number } | null {
  for (const need of needs) {
    const resetAtMs = need.limiter.fullUntil(need.name, need.atMost);
    if (resetAtMs !== null) return { need, resetAtMs };
  }
  return null;
}

/**
 * Before windows are looked at: draws the places that are wanting for them, for each or for none. In one process there is nothing to do. Throws
 * StoreUnavailable.
 */
export async function drawPlaces(needs: readonly Need[]): Promise<void> {
  const asks = needs.flatMap(({ limiter, name, amount = 1 }) =>
    amount > 0 && limiter.isShort(name, amount) ? [{ limiter, name, amount }] : [],
  );
  const places = asks[0]?.limiter.places ?? null;
  if (places === null) return;
  // What is refused draws nothing.
  const isRefused = needs.some(
    ({ limiter, name }) => !limiter.isShort(name) && limiter.fullUntil(name) !== null,
  );
  if (!isRefused) await places.draw(asks);
}

/** Counts in every window, having looked at all of them before; or in none, and answers the first one without room and when it has some. */
export function takeAll<One extends Need>(needs: readonly One[]): { need: One; resetAtMs: number } | null {
  const full = findFull(needs);
  if (full !== null) return full;
  for (const { limiter, name, amount = 1 } of needs) if (amount > 0) limiter.count(name, amount);
  return null;
}

/** A caller's own window, and that of the wide network it belongs to where there is one. */
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
 * What each network of a caller may take of a limit that others share: one more only while the limit has as much left as the network has
 * taken, times its weight. One network stops at half of the limit, two at a third each, and k leave the part 1 / (k + 1) for others.
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
