/**
 * How a limit that is counted in memory is split where nodes serve one database side by side: evenly, and never to more than the limit
 * together. A node's windows go on where others come or go, so that in such a minute as many may pass as after a restart.
 */

export interface Nodes {
  /** Nodes that serve now, this one among them. */
  readonly live: number;
  /** The place of this one among them, from 0: the first ones take what an even split leaves over. */
  readonly rank: number;
}

/** A process that has its database for itself. */
export const ALONE: Nodes = { live: 1, rank: 0 };

/** What this node may let through of a limit. */
export function shareOf(limit: number, { live, rank }: Nodes): number {
  if (live <= 1) return limit;
  return Math.floor(limit / live) + (rank < limit % live ? 1 : 0);
}
