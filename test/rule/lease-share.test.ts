import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type SharedLease, shareOf } from "../../src/store/lease/lease-share.ts";

/** The leases of numbers 0, 1, …, each with who holds it. */
function leasesOf(...holders: (string | null)[]): SharedLease[] {
  return holders.map((node, environmentId) => ({ environmentId, node }));
}

/** Every node does its part, one after the other, until none has any; answers who holds what and how many leases moved. */
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
    ["one alone takes all that is free", leasesOf(null, null, null), ["a"], "a", { take: [0, 1, 2], giveBack: [] }],
    ["what another holds is left alone", leasesOf("a", "b"), ["a", "b"], "a", { take: [], giveBack: [] }],
    ["free ones go to whoever holds fewest", leasesOf("a", "a", null, null), ["a", "b"], "a", { take: [], giveBack: [] }],
    ["and are taken by that one", leasesOf("a", "a", null, null), ["a", "b"], "b", { take: [2, 3], giveBack: [] }],
    ["one more than another is no surplus", leasesOf("a", "a", "b"), ["a", "b"], "a", { take: [], giveBack: [] }],
    ["two more than another are, and the house moves last", leasesOf("a", "a", "a"), ["a", "b"], "a", { take: [], giveBack: [2] }],
    ["who has fewest gives nothing back", leasesOf("a", "a", "a"), ["a", "b"], "b", { take: [], giveBack: [] }],
    ["a node that shows up no more gets nothing", leasesOf("a", null, null), ["a"], "a", { take: [1, 2], giveBack: [] }],
    ["and what it holds until then is nobody's to take", leasesOf("a", "gone", "gone"), ["a"], "a", { take: [], giveBack: [] }],
    ["of those with a surplus one gives", leasesOf("a", "a", "b", "b"), ["a", "b", "c"], "b", { take: [], giveBack: [3] }],
    ["and the other does not", leasesOf("a", "a", "b", "b"), ["a", "b", "c"], "a", { take: [], giveBack: [] }],
  ] as const) {
    test(what, () => {
      expect(shareOf(leases, live, self)).toEqual({ take: [...share.take], giveBack: [...share.giveBack] });
    });
  }

  test("what leaves already is not given twice", () => {
    expect(shareOf(leasesOf("a", "a", "a", "a"), ["a", "b"], "a", new Set([1])).giveBack).toEqual([1, 3]);
    expect(shareOf(leasesOf("a", "a", "a"), ["a", "b"], "a", new Set([1])).giveBack).toEqual([1]);
  });
});

describe("the nodes together", () => {
  const names = ["a", "b", "c", "d", "e"];
  const scene = fc
    .record({ nodes: fc.integer({ min: 1, max: 5 }), holders: fc.array(fc.integer({ min: -1, max: 5 }), { minLength: 1, maxLength: 20 }) })
    .map(({ nodes, holders }) => ({
      live: names.slice(0, nodes),
      leases: leasesOf(...holders.map((at) => (at < 0 || at >= nodes ? null : (names[at] ?? null)))),
    }));

  test("whoever held what, all is held in the end, as evenly as it can be, and stays", () => {
    fc.assert(
      fc.property(scene, ({ live, leases }) => {
        const { after } = settle(leases, live);
        const counts = countOf(after, live);
        expect(after.every(({ node }) => node !== null)).toBe(true);
        expect((counts.at(-1) ?? 0) - (counts[0] ?? 0)).toBeLessThanOrEqual(1);
      }),
    );
  });

  test("no two of them take the same", () => {
    fc.assert(
      fc.property(scene, ({ live, leases }) => {
        const taken = live.flatMap((self) => shareOf(leases, live, self).take);
        expect(new Set(taken).size).toBe(taken.length);
        expect(taken.length).toBe(leases.filter(({ node }) => node === null).length);
      }),
    );
  });

  test("one that joins moves its own share and no more, and one that leaves nothing of the others", () => {
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
