import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type SharedLease, shareOf } from "../../src/store/lease/lease-share.ts";

/** Builds leases with the numbers 0, 1, … and their holders. */
function leasesOf(...holders: (string | null)[]): SharedLease[] {
  return holders.map((node, environmentId) => ({ environmentId, node }));
}

/** Lets every node act in turn until none has anything to do. Returns the holders and the number of moved leases. */
function settle(before: readonly SharedLease[], live: readonly string[]): { after: SharedLease[]; moved: number } {
  let after = [...before];
  let moved = 0;
  for (let round = 0; round < 100; round++) {
    let changed = false;
    for (const self of live) {
      const { take, giveBack } = shareOf(after, live, self);
      after = after.map(({ environmentId, node }) => ({
        environmentId,
        node: take.includes(environmentId) ? self : giveBack.includes(environmentId) ? null : node,
      }));
      moved += giveBack.length;
      changed ||= take.length + giveBack.length > 0;
    }
    if (!changed) return { after, moved };
  }
  throw new Error("The leases never come to rest.");
}

function countOf(leases: readonly SharedLease[], live: readonly string[]): number[] {
  return live.map((id) => leases.filter(({ node }) => node === id).length).sort((one, other) => one - other);
}

describe("a node's share", () => {
  for (const [what, leases, live, self, share] of [
    ["takes all free leases for a single node", leasesOf(null, null, null), ["a"], "a", { take: [0, 1, 2], giveBack: [] }],
    ["leaves the leases of another node", leasesOf("a", "b"), ["a", "b"], "a", { take: [], giveBack: [] }],
    ["leaves free leases to the node with the fewest", leasesOf("a", "a", null, null), ["a", "b"], "a", { take: [], giveBack: [] }],
    ["takes free leases for the node with the fewest", leasesOf("a", "a", null, null), ["a", "b"], "b", { take: [2, 3], giveBack: [] }],
    ["gives back nothing if it has one lease more than another node", leasesOf("a", "a", "b"), ["a", "b"], "a", { take: [], giveBack: [] }],
    ["gives back a lease if it has two more, and the highest number first", leasesOf("a", "a", "a"), ["a", "b"], "a", { take: [], giveBack: [2] }],
    ["gives back nothing for the node with the fewest leases", leasesOf("a", "a", "a"), ["a", "b"], "b", { take: [], giveBack: [] }],
    ["ignores a node that is no longer live", leasesOf("a", null, null), ["a"], "a", { take: [1, 2], giveBack: [] }],
    ["leaves the leases that a dead node still holds", leasesOf("a", "gone", "gone"), ["a"], "a", { take: [], giveBack: [] }],
    ["gives back a lease of one of the nodes with a surplus", leasesOf("a", "a", "b", "b"), ["a", "b", "c"], "b", { take: [], giveBack: [3] }],
    ["gives back nothing of the other nodes", leasesOf("a", "a", "b", "b"), ["a", "b", "c"], "a", { take: [], giveBack: [] }],
  ] as const) {
    test(what, () => {
      expect(shareOf(leases, live, self)).toEqual({ take: [...share.take], giveBack: [...share.giveBack] });
    });
  }

  test("does not give back a lease that is already leaving", () => {
    expect(shareOf(leasesOf("a", "a", "a", "a"), ["a", "b"], "a", new Set([1])).giveBack).toEqual([1, 3]);
    expect(shareOf(leasesOf("a", "a", "a"), ["a", "b"], "a", new Set([1])).giveBack).toEqual([1]);
  });
});

describe("all nodes together", () => {
  const names = ["a", "b", "c", "d", "e"];
  const scene = fc
    .record({ nodes: fc.integer({ min: 1, max: 5 }), holders: fc.array(fc.integer({ min: -1, max: 5 }), { minLength: 1, maxLength: 20 }) })
    .map(({ nodes, holders }) => ({
      live: names.slice(0, nodes),
      leases: leasesOf(...holders.map((at) => (at < 0 || at >= nodes ? null : (names[at] ?? null)))),
    }));

  test("hold every lease in the end, as evenly as possible, and stay there", () => {
    fc.assert(
      fc.property(scene, ({ live, leases }) => {
        const { after } = settle(leases, live);
        const counts = countOf(after, live);
        expect(after.every(({ node }) => node !== null)).toBe(true);
        expect((counts.at(-1) ?? 0) - (counts[0] ?? 0)).toBeLessThanOrEqual(1);
      }),
    );
  });

  test("never take the same lease twice", () => {
    fc.assert(
      fc.property(scene, ({ live, leases }) => {
        const taken = live.flatMap((self) => shareOf(leases, live, self).take);
        expect(new Set(taken).size).toBe(taken.length);
        expect(taken.length).toBe(leases.filter(({ node }) => node === null).length);
      }),
    );
  });

  test("move only a joining node's share, and none of the others' leases when a node leaves", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 20 }), (nodes, count) => {
        const live = names.slice(0, nodes);
        const { after: even } = settle(leasesOf(...Array<null>(count).fill(null)), live);
        const joined = settle(even, names.slice(0, nodes + 1));
        expect(joined.moved).toBe(Math.floor(count / (nodes + 1)));
        const without = joined.after.map(({ environmentId, node }) => ({ environmentId, node: node === names[nodes] ? null : node }));
        expect(settle(without, live).moved).toBe(0);
      }),
    );
  });
});
