/** Deduplication: what counts as the same event and for how long. Keys with equal short forms are never taken for each other. */
import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { DAY_MS } from "../../src/base/limit.ts";
import {
  type DedupeKey,
  findDuplicate,
  insertEvent,
  keyOfBody,
  keyOfEventId,
  keyOfOccurrence,
  makeReceiverPayload,
} from "../../src/engine/event/insert.ts";
import { relayOf, seqOf } from "../kit/event-sql.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const { store } = await openFreshStore();
const bytes = (text: string) => new TextEncoder().encode(text);
const MIDNIGHT = Date.UTC(2026, 0, 16);

beforeEach(() =>
  store.write("app", async (tx) => {
    await tx.run("DELETE FROM event");
  }),
);

const insert = (dedupe: DedupeKey | null) =>
  store.write("app", async (tx) =>
    insertEvent(tx, {
      ...(await relayOf(tx, 1, "rly_1", "orders")),
      trigger: "receiver",
      payload: makeReceiverPayload("{}", {}),
      unsigned: false,
      dedupe,
      nowMs: START_MS,
    }),
  );

/** Deletes the event as retention does. Its key can stay in memory. */
const forget = (id: string) => store.write("app", (tx) => tx.run("DELETE FROM event WHERE seq = ?1", seqOf(id)));

describe("the same event", () => {
  const rows: [string, DedupeKey, DedupeKey, boolean][] = [
    ["one event_id of one relay name", keyOfEventId(1, "orders", "a"), keyOfEventId(1, "orders", "a"), true],
    ["another event_id", keyOfEventId(1, "orders", "a"), keyOfEventId(1, "orders", "b"), false],
    ["another relay name", keyOfEventId(1, "orders", "a"), keyOfEventId(1, "order", "a"), false],
    ["another environment", keyOfEventId(1, "orders", "a"), keyOfEventId(2, "orders", "a"), false],
    ["an event_id in a different case", keyOfEventId(1, "orders", "a"), keyOfEventId(1, "orders", "A"), false],
    ["one event_id with half a surrogate pair", keyOfEventId(1, "orders", "a\ud800"), keyOfEventId(1, "orders", "a\ud800"), true],
    ["an event_id with another half of a surrogate pair", keyOfEventId(1, "orders", "a\ud800"), keyOfEventId(1, "orders", "a\ud801"), false],
    [
      "an event_id with the replacement character instead of half a surrogate pair",
      keyOfEventId(1, "orders", "a\ud800"),
      keyOfEventId(1, "orders", "a\ufffd"),
      false,
    ],
    ["an event_id of digits with a leading zero", keyOfEventId(1, "orders", "1"), keyOfEventId(1, "orders", "01"), false],
    ["one body in one UTC day", keyOfBody(1, "orders", bytes("{}"), MIDNIGHT - DAY_MS), keyOfBody(1, "orders", bytes("{}"), MIDNIGHT - 1), true],
    ["one body in the next UTC day", keyOfBody(1, "orders", bytes("{}"), MIDNIGHT - 1), keyOfBody(1, "orders", bytes("{}"), MIDNIGHT), false],
    ["another body", keyOfBody(1, "orders", bytes("{}"), MIDNIGHT), keyOfBody(1, "orders", bytes("{ }"), MIDNIGHT), false],
    ["a body and an event_id of the same text", keyOfBody(1, "orders", bytes("a"), MIDNIGHT), keyOfEventId(1, "orders", "a"), false],
    ["one occurrence of one relay", keyOfOccurrence(1, "rly_1", "t"), keyOfOccurrence(1, "rly_1", "t"), true],
    ["one occurrence of another relay", keyOfOccurrence(1, "rly_1", "t"), keyOfOccurrence(1, "rly_2", "t"), false],
  ];
  for (const [name, first, second, same] of rows) {
    test(`${name} ${same ? "is a duplicate and returns the first row's id" : "is another event"}`, async () => {
      const one = await insert(first);
      const other = await insert(second);
      expect(one.duplicate).toBe(false);
      expect(other.duplicate).toBe(same);
      expect(other.id === one.id).toBe(same);
      expect(await store.read((tx) => tx.all("SELECT seq FROM event"))).toHaveLength(same ? 1 : 2);
    });
  }

  test("without a key, no event is a duplicate", async () => {
    expect([(await insert(null)).duplicate, (await insert(null)).duplicate]).toEqual([false, false]);
  });

  test("many concurrent requests with one key make one event", async () => {
    const key = keyOfEventId(1, "orders", "a");
    const answers = await Promise.all(Array.from({ length: 50 }, () => insert(key)));
    expect(answers.filter((answer) => !answer.duplicate)).toHaveLength(1);
    expect(new Set(answers.map((answer) => answer.id)).size).toBe(1);
  });

  test("a key lives as long as its event row", async () => {
    const key = keyOfEventId(1, "orders", "a");
    const { id } = await insert(key);
    await forget(id);
    expect((await insert(key)).duplicate).toBe(false);
  });
});

describe("keys with equal first bits", () => {
  /** Four keys that the in-memory index cannot tell apart. */
  const twins = [0x10, 0x11, 0x1f, 0x18].map((low, index): DedupeKey => {
    const hash = new Uint8Array(16).fill(0xab);
    hash[8] = low;
    hash[15] = index;
    return { hash };
  });

  test("belong to different events", async () => {
    const ids = [];
    for (const key of twins) ids.push(await insert(key));
    expect(ids.map((answer) => answer.duplicate)).toEqual([false, false, false, false]);
    for (const [index, key] of twins.entries()) {
      expect((await store.write("app", (tx) => findDuplicate(tx, key)))?.id).toBe(ids[index]?.id as string);
    }
  });

  test("leave the others unchanged when one event is deleted", async () => {
    const [first, second] = twins as [DedupeKey, DedupeKey];
    const { id } = await insert(first);
    const other = await insert(second);
    await forget(id);
    expect(await store.write("app", (tx) => findDuplicate(tx, first))).toBeNull();
    expect((await insert(second)).id).toBe(other.id);
    expect((await insert(first)).duplicate).toBe(false);
  });

  test("never become negative or lost by the top bit of a hash", async () => {
    for (const top of [0x7f, 0x80, 0xff]) {
      const key: DedupeKey = { hash: new Uint8Array(16).fill(top) };
      const { id, seq } = await insert(key);
      expect(await insert(key)).toEqual({ id, seq, duplicate: true });
    }
  });
});

test("any order of arrivals and deletions matches a model", async () => {
  const step = fc.record({ key: fc.integer({ min: 0, max: 7 }), gone: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      await store.write("app", async (tx) => {
        await tx.run("DELETE FROM event");
      });
      const held = new Map<number, string>();
      for (const { key: number, gone } of steps) {
        // Pairs of keys agree in their first bits.
        const hash = new Uint8Array(16).fill(number >> 1);
        hash[15] = number;
        const known = held.get(number);
        if (gone && known !== undefined) {
          await forget(known);
          held.delete(number);
        } else {
          const answer = await insert({ hash });
          expect(answer.duplicate).toBe(known !== undefined);
          if (known !== undefined) expect(answer.id).toBe(known);
          held.set(number, answer.id);
        }
      }
    }),
    { numRuns: 40 },
  );
});
