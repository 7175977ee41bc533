/** Tests the three-way comparison of a sync: what the folder last saw, the file, and the server, in every combination. */
import { describe, expect, test } from "bun:test";
import type { Json } from "../../src/base/json.ts";
import { compareSides, listSeen, MAX_SEEN_ITEMS, markOf, type SeenItems } from "../../src/operator/sync/side-comparison.ts";

const TARGET = "relay:checkout";
const content = (version: number): Json => ({ name: "checkout", version });

/** `base`: the content that the folder last saw; `none`: it knows the environment but not the item; `fresh`: it knows nothing. */
type Base = number | "none" | "fresh";
type Row = readonly [base: Base, file: number, server: number | "absent" | "deleted", comes: string];

const TABLE: readonly Row[] = [
  // Nothing changed, or both sides made the same change.
  [1, 1, 1, "unchanged"],
  [1, 2, 2, "unchanged"],
  ["none", 1, 1, "unchanged"],
  ["fresh", 1, 1, "unchanged"],
  // One side changed.
  [1, 2, 1, "changed"],
  [1, 1, 2, "behind"],
  [1, 1, "deleted", "behind"],
  // Both sides changed.
  [1, 2, 3, "conflict"],
  [1, 2, "deleted", "conflict"],
  ["none", 1, 2, "conflict"],
  // The environment never had the item, for example because a new server has this address.
  [1, 1, "absent", "created"],
  [1, 2, "absent", "created"],
  ["none", 1, "absent", "created"],
  ["none", 1, "deleted", "created"],
  ["fresh", 1, "absent", "created"],
  ["fresh", 1, "deleted", "created"],
  // Without a base, only the environment's own record tells.
  ["fresh", 1, 2, "unknown"],
];

function seenOf(base: Base, file: number): SeenItems | null {
  if (base === "fresh") return null;
  const memory = new Map<string, Json>([["relay:other", content(9)]]);
  if (base !== "none") memory.set(TARGET, content(base));
  return listSeen(memory, new Map([[TARGET, () => content(file)]]));
}

test.each(TABLE.map((row) => [...row] as const))("the folder saw %s, the file has %s, the server %s: %s", (base, file, server, comes) => {
  const before = typeof server === "number" ? content(server) : null;
  const compared = compareSides(before, content(file), seenOf(base, file), TARGET, server === "deleted");
  expect(compared).toBe(comes as typeof compared);
});

describe("the folder's knowledge", () => {
  test("has the items of the files, and relays whose file is gone, but no catalog item that no file names", () => {
    const memory = new Map<string, Json>([
      ["relay:gone", content(1)],
      ["product:gone", { title: "Gone" }],
      ["product:book", { title: "Book", credits: 5 }],
    ]);
    const seen = listSeen(memory, new Map([["product:book", (current) => ({ title: "Book", credits: current?.credits ?? 0 })]]));
    expect([...seen]).toEqual([
      ["relay:gone", { mark: markOf(content(1)), changed: true }],
      ["product:book", { mark: markOf({ title: "Book", credits: 5 }), changed: false }],
    ]);
  });

  test("has marks of the length that the API accepts", () => {
    expect(markOf(content(1))).toMatch(/^[0-9a-f]{40}$/);
    expect(MAX_SEEN_ITEMS).toBeGreaterThanOrEqual(300);
  });
});
