/**
 * Decides which leases each node takes and gives back. All live nodes then hold the same number, plus or minus one, and few leases move. It is a pure
 * function of rows that were read in one transaction. Every node computes the same result and does its own part.
 */

export interface SharedLease {
  environmentId: number;
  /** The node that holds the lease. Null if the lease is free or expired. */
  node: string | null;
}

interface Share {
  /** Free leases that this node must take. */
  take: number[];
  /** Leases beyond this node's share, while another node has too few. */
  giveBack: number[];
}

/**
 * Computes the share of the node `self`. `live` lists the nodes that were seen recently, including `self`. `leaving` holds the leases that this node
 * already gives back.
 */
export function shareOf(
  leases: readonly SharedLease[],
  live: readonly string[],
  self: string,
  leaving: ReadonlySet<number> = new Set(),
): Share {
  const counts = new Map([...live].sort().map((node) => [node, 0]));
  for (const { node } of leases) {
    const count = node === null ? undefined : counts.get(node);
    if (node !== null && count !== undefined) counts.set(node, count + 1);
  }
  const take: number[] = [];
  for (const { environmentId } of leases.filter(({ node }) => node === null).sort(byNumber)) {
    const [node, count] = emptiest(counts);
    counts.set(node, count + 1);
    if (node === self) take.push(environmentId);
  }
  let surplus = 0;
  for (;;) {
    const [giver, most] = fullest(counts);
    const [taker, least] = emptiest(counts);
    if (most - least < 2) break;
    counts.set(giver, most - 1);
    counts.set(taker, least + 1);
    if (giver === self) surplus += 1;
  }
  // Leases that are already leaving come first. The lease for all environments, number 0, comes last.
  const own = leases.filter(({ node }) => node === self).sort((one, other) => byNumber(other, one));
  const inTurn = [...own.filter(isLeaving), ...own.filter((one) => !isLeaving(one))];
  return { take, giveBack: inTurn.slice(0, surplus).map(({ environmentId }) => environmentId) };

  function isLeaving({ environmentId }: SharedLease): boolean {
    return leaving.has(environmentId);
  }
}

function byNumber(one: SharedLease, other: SharedLease): number {
  return one.environmentId - other.environmentId;
}

/** Returns the first of the nodes that hold the fewest leases. */
function emptiest(counts: ReadonlyMap<string, number>): [string, number] {
  return [...counts].reduce((best, one) => (one[1] < best[1] ? one : best));
}

/** Returns the last of the nodes that hold the most leases. */
function fullest(counts: ReadonlyMap<string, number>): [string, number] {
  return [...counts].reduce((best, one) => (one[1] >= best[1] ? one : best));
}
