/**
 * Which node takes and gives back which lease, so that live nodes hold as many each, give or take one, and few move. A pure rule over what the
 * database says in one transaction: every node comes to the same answer and does its own part of it.
 */

export interface SharedLease {
  environmentId: number;
  /** Who holds it; null: nobody, or somebody whose time is over. */
  node: string | null;
}

interface Share {
  /** Free ones that are this node's to take. */
  take: number[];
  /** What it holds beyond its share while another is short. */
  giveBack: number[];
}

/** `live`: the nodes that turned up lately, `self` among them. `leaving`: what this node gives back already. */
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
  // What is leaving counts first, and the house, which has number 0, last.
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

/** The first of those that hold fewest. */
function emptiest(counts: ReadonlyMap<string, number>): [string, number] {
  return [...counts].reduce((best, one) => (one[1] < best[1] ? one : best));
}

/** The last of those that hold most. */
function fullest(counts: ReadonlyMap<string, number>): [string, number] {
  return [...counts].reduce((best, one) => (one[1] >= best[1] ? one : best));
}
