/**
 * The index of dedupe keys against a model. Rollbacks, freezes, kills, restarts and other processes lose no committed key. A key that was not stored
 * is rarely a candidate.
 */
import { afterEach, expect, test } from "bun:test";
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { numberOfHash } from "../../src/base/id.ts";
import { DAY_MS } from "../../src/base/limit.ts";
import { makeFlush } from "../../src/store/dedupe/flush.ts";
import { SegmentFilters } from "../../src/store/dedupe/segment.ts";
import type { Store, Writer } from "../../src/store/port.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { rounds } from "../kit/rounds.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Small segments, so that a few hundred keys fill several of them. */
const SEGMENT_KEYS = 300;

class Case {
  readonly clock = new VirtualClock(Date.UTC(2026, 0, 1));
  folder = mkdtempSync(join(tmpdir(), "relay-keys-"));
  stores: Store[] = [];
  /** The numbers that still exist and that each committed key was stored for. */
  readonly kept = new Map<number, Set<number>>();
  last = 0;
  readonly #segmentKeys: number;

  constructor(segmentKeys = SEGMENT_KEYS) {
    this.#segmentKeys = segmentKeys;
    folders.push(this.folder);
  }

  async open(): Promise<Store> {
    const store = await openSqlite(join(this.folder, "data.db"), { clock: this.clock, segmentKeys: this.#segmentKeys });
    this.stores.push(store);
    return store;
  }

  async close(): Promise<void> {
    for (const store of this.stores.splice(0)) await store.close();
  }

  /** Leaves what is on the disk now, and nothing that the process had in memory, as a SIGKILL does. */
  async kill(): Promise<void> {
    const left = this.folder;
    this.folder = mkdtempSync(join(tmpdir(), "relay-keys-"));
    folders.push(this.folder);
    for (const end of ["", "-wal"]) {
      if (existsSync(join(left, `data.db${end}`))) cpSync(join(left, `data.db${end}`), join(this.folder, `data.db${end}`));
    }
    await this.close();
  }

  note(key: number, value: number): void {
    const values = this.kept.get(key) ?? new Set();
    this.kept.set(key, values.add(value));
  }

  async checkAll(store: Store): Promise<void> {
    const wrong: number[] = [];
    let strangers = 0;
    await store.write("app", async (tx) => {
      for (const [key, values] of this.kept) {
        const found = new Set(await tx.keys.find(hashOf(key)));
        if ([...values].some((value) => !found.has(value))) wrong.push(key);
      }
      for (let key = 1_000_000; key < 1_000_500; key++) strangers += (await tx.keys.find(hashOf(key))).length;
    });
    expect({ wrong, strangers }).toEqual({ wrong: [], strangers: 0 });
  }
}

function hashOf(key: number): Uint8Array {
  return (Bun.CryptoHasher.hash("sha256", `key ${key}`) as Buffer).subarray(0, 16);
}

const FAIL = new Error("not today");

/** Stores this many new keys, and every third key again for another number. */
async function keepKeys(tx: Writer, at: Case, count: number, done: [number, number][]): Promise<void> {
  for (let index = 0; index < count; index++) {
    at.last += 1;
    const key = index % 3 === 2 ? at.last - 1 : at.last;
    await tx.keys.add(hashOf(key), at.last);
    done.push([key, at.last]);
  }
}

type Act = { act: "keep" | "fail" | "part" | "foreign" | "close" | "kill" | "forget"; count: number };

const act: fc.Arbitrary<Act> = fc.record({
  act: fc.constantFrom("keep", "keep", "keep", "keep", "fail", "part", "foreign", "close", "kill", "forget"),
  count: fc.integer({ min: 1, max: 90 }),
});

async function play(acts: readonly Act[]): Promise<void> {
  const at = new Case();
  let store = await at.open();
  for (const { act: what, count } of acts) {
    const keep = async (by: Store) => {
      const done: [number, number][] = [];
      await by.write("app", (tx) => {
        done.length = 0;
        return keepKeys(tx, at, count, done);
      });
      for (const [key, value] of done) at.note(key, value);
    };
    switch (what) {
      case "keep":
        await Promise.all([keep(store), keep(store)]);
        break;
      case "fail": {
        // One of two concurrent writes throws, so the group is rolled back and runs again.
        const failing = store.write("app", async (tx) => {
          await keepKeys(tx, at, count, []);
          throw FAIL;
        });
        await Promise.all([keep(store), failing.catch(() => undefined)]);
        break;
      }
      case "part": {
        const done: [number, number][] = [];
        await store.write("app", async (tx) => {
          done.length = 0;
          await keepKeys(tx, at, count, done);
          const undone = tx.attempt(async () => {
            await keepKeys(tx, at, count, []);
            throw FAIL;
          });
          await undone.catch(() => undefined);
          await keepKeys(tx, at, 1, done);
        });
        for (const [key, value] of done) at.note(key, value);
        break;
      }
      case "foreign":
        await keep(at.stores[1] ?? (await at.open()));
        break;
      case "close":
        await at.close();
        store = await at.open();
        break;
      case "kill":
        await at.kill();
        store = await at.open();
        break;
      case "forget": {
        const before = at.last - 4 * SEGMENT_KEYS;
        while (await store.write("app", (tx) => tx.keys.deleteBefore(before)));
        for (const [key, values] of at.kept) {
          for (const value of values) if (value < before) values.delete(value);
          if (values.size === 0) at.kept.delete(key);
        }
        break;
      }
    }
  }
  await at.checkAll(store);
  await at.close();
}

test("any order of writes, failures, savepoints, starts, kills, other processes and deletions matches the model", async () => {
  await fc.assert(fc.asyncProperty(fc.array(act, { minLength: 10, maxLength: 60 }), play), {
    numRuns: Number(process.env.RELAY_FUZZ_RUNS ?? rounds({ slice: 10, soak: 50 })),
  });
});

test("two processes that flush at once lose no key, also if one takes the other's segment for interrupted", async () => {
  const keep = (count: number): Act => ({ act: "keep", count });
  const foreign: Act = { act: "foreign", count: 1 };
  await play([
    ...[45, 74, 31, 1].map(keep),
    foreign,
    foreign,
    foreign,
    ...Array.from({ length: 160 }, (_, index) => (index % 5 === 4 ? foreign : keep(1))),
  ]);
});

test("a kill between any two groups of a freeze loses no key", async () => {
  const at = new Case();
  let store = await at.open();
  for (let turn = 0; turn < 90; turn++) {
    const done: [number, number][] = [];
    await store.write("app", (tx) => {
      done.length = 0;
      return keepKeys(tx, at, 8, done);
    });
    for (const [key, value] of done) at.note(key, value);
    if (turn % 3 !== 0) continue;
    await at.kill();
    store = await at.open();
  }
  await at.checkAll(store);
  await at.close();
});

test("a table that is sorted across many groups loses no key after rollbacks and kills", async () => {
  const at = new Case(40_000);
  let store = await at.open();
  const keep = async (count: number): Promise<void> => {
    const done: [number, number][] = [];
    await store.write("app", (tx) => {
      done.length = 0;
      return keepKeys(tx, at, count, done);
    });
    for (const [key, value] of done) at.note(key, value);
  };
  const segments = () => store.read((tx) => tx.all<{ newest: number }>("SELECT newest FROM dedupe_segment"));
  const freezeWith = async (groups: number): Promise<void> => {
    for (let turn = 0; turn < groups; turn++) {
      const failing = store.write("app", async (tx) => {
        await keepKeys(tx, at, 3, []);
        throw FAIL;
      });
      await Promise.all([keep(3), failing.catch(() => undefined)]);
    }
  };
  while (at.last < 40_000) await keep(1_000);
  // The table has 131,072 places, which eight groups sort.
  for (const groups of [3, 12]) {
    await freezeWith(groups);
    await at.kill();
    store = await at.open();
    await at.checkAll(store);
  }
  expect(await segments()).toEqual([]);
  await freezeWith(66);
  expect(await segments()).toEqual([]);
  await freezeWith(6);
  expect(await segments()).toHaveLength(1);
  await at.checkAll(store);
  await at.close();
  store = await at.open();
  await at.checkAll(store);
  await at.close();
});

test("flushed keys leave the log, deleted events leave the segments, and the index continues", async () => {
  const at = new Case();
  const store = await at.open();
  for (let turn = 0; turn < 400; turn++) {
    const done: [number, number][] = [];
    await store.write("app", (tx) => {
      done.length = 0;
      return keepKeys(tx, at, 8, done);
    });
    for (const [key, value] of done) at.note(key, value);
  }
  const count = () =>
    store.read(async (tx) => ({
      log: (await tx.get<{ count: number }>("SELECT count(*) AS count FROM dedupe_log"))?.count ?? 0,
      segments: (await tx.get<{ count: number }>("SELECT count(*) AS count FROM dedupe_segment"))?.count ?? 0,
      pages: (await tx.get<{ count: number }>("SELECT count(*) AS count FROM dedupe_page"))?.count ?? 0,
    }));
  const before = await count();
  expect(before.segments).toBeGreaterThan(3);
  expect(before.log).toBeLessThan(400);
  await at.checkAll(store);
  while (await store.write("app", (tx) => tx.keys.deleteBefore(at.last + 1)));
  expect(await count()).toMatchObject({ segments: 0 });
  await at.close();
});

test("the key of the oldest stored event outlives every segment but its own", async () => {
  const at = new Case();
  const store = await at.open();
  const segments = () => store.read((tx) => tx.all<{ newest: number }>("SELECT newest FROM dedupe_segment ORDER BY newest"));
  while ((await segments()).length < 2) await store.write("app", (tx) => keepKeys(tx, at, 12, []));
  const [{ newest: oldest } = { newest: 0 }] = await segments();
  const kept = () => store.write("app", async (tx) => (await tx.keys.find(hashOf(oldest % 3 === 0 ? oldest - 1 : oldest))).includes(oldest));
  // The event of this number is the oldest one.
  expect(await store.write("app", (tx) => tx.keys.deleteBefore(oldest))).toBe(false);
  expect([await kept(), (await segments()).length]).toEqual([true, 2]);
  while (await store.write("app", (tx) => tx.keys.deleteBefore(oldest + 1)));
  expect([await kept(), (await segments()).length]).toEqual([false, 1]);
  await at.close();
});

test("twenty segments lose no key when some are deleted and others take their places, also after a start", async () => {
  const at = new Case();
  let store = await at.open();
  const segments = () => store.read(async (tx) => (await tx.get<{ count: number }>("SELECT count(*) AS count FROM dedupe_segment"))?.count ?? 0);
  const fillUpTo = async (count: number): Promise<void> => {
    while ((await segments()) < count) {
      const done: [number, number][] = [];
      await store.write("app", (tx) => {
        done.length = 0;
        return keepKeys(tx, at, 12, done);
      });
      for (const [key, value] of done) at.note(key, value);
    }
  };
  await fillUpTo(20);
  await at.checkAll(store);
  const before = Math.floor(at.last / 2);
  while (await store.write("app", (tx) => tx.keys.deleteBefore(before)));
  for (const [key, values] of at.kept) if (Math.max(...values) < before) at.kept.delete(key);
  expect(await segments()).toBeWithin(8, 13);
  await at.checkAll(store);
  await fillUpTo(20);
  await at.checkAll(store);
  await at.close();
  store = await at.open();
  // Each of the first transactions reads some filters.
  for (let turn = 0; turn < 6; turn++) await at.checkAll(store);
  await at.close();
});

/** Builds a segment's filter as versions up to 0.11 did, with an older placement of bits and no data after its words. */
function formerFilter(pages: readonly Uint8Array[], bytes: number): Uint8Array {
  const words = new Uint32Array(bytes / 4);
  for (const page of pages) {
    const pairs = new Float64Array(page.slice().buffer);
    for (let at = 0; at < pairs.length; at += 2) {
      const key = pairs[at] ?? 0;
      const block = (key & (words.length / 16 - 1)) * 512;
      const step = ((Math.floor(key / 2 ** 32) & 0xff) << 1) | 1;
      for (let turn = 0; turn < 8; turn++) {
        const bit = block + (((key >>> 23) + turn * step) & 511);
        words[bit >>> 5] = (words[bit >>> 5] ?? 0) | (1 << (bit & 31));
      }
    }
  }
  return new Uint8Array(words.buffer);
}

test("segments of an earlier version with other filters hold their keys next to newer ones", async () => {
  const at = new Case();
  let store = await at.open();
  const listed = () =>
    store.read((tx) => tx.all<{ segment: number; filter: Uint8Array }>("SELECT segment, filter FROM dedupe_segment ORDER BY segment"));
  const fillUpTo = async (count: number): Promise<void> => {
    while ((await listed()).length < count) {
      const done: [number, number][] = [];
      await store.write("app", (tx) => {
        done.length = 0;
        return keepKeys(tx, at, 12, done);
      });
      for (const [key, value] of done) at.note(key, value);
    }
  };
  await fillUpTo(5);
  for (const { segment, filter } of (await listed()).slice(0, 3))
    await store.write("app", async (tx) => {
      const pages = await tx.all<{ keys: Uint8Array }>(
        "SELECT keys FROM dedupe_page WHERE id >= ?1 AND id < ?2",
        segment * 2 ** 20,
        (segment + 1) * 2 ** 20,
      );
      const former = formerFilter(
        pages.map(({ keys }) => keys),
        filter.length - 1,
      );
      await tx.run("UPDATE dedupe_segment SET filter = ?2 WHERE segment = ?1", segment, former);
    });
  await at.close();
  store = await at.open();
  for (let turn = 0; turn < 3; turn++) await at.checkAll(store);
  await fillUpTo(12);
  await at.checkAll(store);
  const kinds = (await listed()).map(({ filter }) => filter.length % 4);
  expect(kinds.toSorted()).toEqual([0, 0, 0, ...Array.from({ length: 9 }, () => 1)]);
  await at.close();
});

test("a key in none of eight full segments is a false candidate at most once in 250 lookups", () => {
  const filters = new SegmentFilters();
  let count = 0;
  const next = (): number => numberOfHash(hashOf(count++));
  const size = 50_000;
  for (let segment = 0; segment < 8; segment++) {
    const { filter } = makeFlush({ size, greatestValue: 1, keys: new Float64Array(), values: new Float64Array() }, 1);
    // A full segment puts this many keys into a block.
    for (let key = 0; key < filter.words.length * 1.75; key++) filter.addEach(Float64Array.of(next(), 1));
    filters.add(filter.words, true);
  }
  let inVain = 0;
  for (let key = 0; key < 50_000; key++) if (filters.mayHold(next(), 8)) inVain += 1;
  expect(inVain).toBeLessThan(200);
});

test("a key that an earlier version stored is found until its event is deleted", async () => {
  const at = new Case();
  let store = await at.open();
  const hash = hashOf(1);
  const slot = new DataView(hash.buffer, hash.byteOffset, 8).getBigUint64(0) & 0x7fff_ffff_ffff_fff0n;
  await store.write("app", (tx) => tx.run("INSERT INTO dedupe (slot, event_seq) VALUES (?1, 7), (?2, 8)", slot, slot + 1n));
  await at.close();
  store = await at.open();
  expect(await store.write("app", async (tx) => await tx.keys.find(hash))).toEqual([7, 8]);
  await store.write("app", (tx) => tx.keys.deleteSlot(hash, 7));
  expect(await store.write("app", async (tx) => await tx.keys.find(hash))).toEqual([8]);
  await at.close();
});

test("the index is read in steps before the first key needs it", async () => {
  const at = new Case();
  let store = await at.open();
  for (let turn = 0; turn < 120; turn++) {
    await store.write("app", async (tx) => {
      for (let index = 0; index < 8; index++) await tx.keys.add(hashOf(turn * 8 + index), turn * 8 + index + 1);
    });
  }
  await at.close();
  at.clock.advance(DAY_MS);
  store = await at.open();
  const warm = store.warm();
  const found = await store.write("app", async (tx) => {
    let all = 0;
    for (let key = 0; key < 120 * 8; key++) if ((await tx.keys.find(hashOf(key))).includes(key + 1)) all += 1;
    return all;
  });
  expect(found).toBe(120 * 8);
  await warm;
  await at.close();
});

test("single keys share rows of the log, and a rollback of the transaction that extended a row loses none", async () => {
  const at = new Case();
  let store = await at.open();
  const keep = (key: number) => store.write("app", async (tx) => await tx.keys.add(hashOf(key), key + 1));
  for (let key = 0; key < 100; key++) {
    await keep(key);
    const undone = store.write("app", async (tx) => {
      await tx.keys.add(hashOf(1_000 + key), key + 1);
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
  }
  const rows = await store.read((tx) => tx.get<{ count: number }>("SELECT count(*) AS count FROM dedupe_log"));
  expect(rows?.count).toBe(4);
  await at.close();
  store = await at.open();
  const found = await store.write("app", async (tx) => {
    const all: (readonly number[])[] = [];
    for (let key = 0; key < 100; key++) all.push(await tx.keys.find(hashOf(key)), await tx.keys.find(hashOf(1_000 + key)));
    return all;
  });
  expect(found).toEqual(Array.from({ length: 100 }, (_, key) => [[key + 1], []]).flat());
  await at.close();
});
