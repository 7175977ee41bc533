/** An event's number and the id made from it. A number is never used twice, an id finds its event, and ids of earlier versions differ. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { newId, numberedId, readNumberedId } from "../../src/base/id.ts";
import { findEventSeq } from "../../src/engine/event/event.ts";
import { insertEvent, makePayload } from "../../src/engine/event/insert.ts";
import type { Store } from "../../src/store/port.ts";
import { endSeqUntil, firstSeqAbout, firstSeqSince, forgetClockBack } from "../../src/store/time-index.ts";
import { ON_POSTGRES, roundsOf } from "../kit/chosen-store.ts";
import { relayOf } from "../kit/event-sql.ts";
import { openFreshStore, openTestStore } from "../kit/fresh-store.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const { store } = await openFreshStore();

const insert = (into: Store, nowMs = START_MS) =>
  into.write("app", async (tx) =>
    insertEvent(tx, {
      ...(await relayOf(tx, 1, "rly_1", "orders")),
      trigger: "receiver",
      payload: makePayload({}),
      unsigned: false,
      dedupe: null,
      nowMs,
    }),
  );

describe("a number", () => {
  test("is never used twice: not after events are deleted, after a restart, or with another process", async () => {
    await using opened = await openTestStore();
    const { clock } = opened;
    const given: number[] = [];
    const take = async (into: Store) => given.push((await insert(into)).seq);
    const remove = (from: Store, which: string) => from.write("app", (tx) => tx.run(`DELETE FROM event WHERE ${which}`));
    await take(opened.store);
    await take(opened.store);
    await remove(opened.store, "seq = 2");
    await take(opened.store);
    await remove(opened.store, "seq IN (SELECT seq FROM event ORDER BY seq DESC)");
    await take(opened.store);
    const direct = await opened.direct.open(clock);
    await take(direct);
    await take(opened.store);
    await remove(direct, "seq > 0");
    await take(opened.store);
    await take(direct);
    await remove(opened.store, "seq > 0");
    await direct.close();
    await opened.store.close();
    const again = await opened.direct.open(clock);
    await take(again);
    await again.close();
    expect(given).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test(`of a transaction that rolled back ${ON_POSTGRES ? "stays unused" : "goes to the next event"}`, async () => {
    const { seq } = await insert(store);
    await expect(
      store.write("app", async (tx) => {
        await insertEvent(tx, {
          ...(await relayOf(tx, 1, "rly_1", "orders")),
          trigger: "receiver",
          payload: makePayload({}),
          unsigned: false,
          dedupe: null,
          nowMs: START_MS,
        });
        throw new Error("undone");
      }),
    ).rejects.toThrow("undone");
    expect((await insert(store)).seq).toBe(seq + (ON_POSTGRES ? 2 : 1));
  });
});

describe("an id", () => {
  test("contains the time and the number, sorts after earlier ids, and can be parsed", () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 47 }), fc.nat({ max: Number.MAX_SAFE_INTEGER }), (atMs, seq) => {
        const id = numberedId("evt", atMs, seq);
        expect(id).toMatch(/^evt_[0-9a-f]{12}80008[0-9a-f]{15}$/);
        expect(readNumberedId("evt", id)).toEqual({ atMs, seq });
        expect(id > newId("evt", Math.max(0, atMs - 1)) && id < newId("evt", atMs + 1)).toBe(true);
      }),
    );
    for (let times = 0; times < 100; times++) expect(readNumberedId("evt", newId("evt", START_MS))).toBeNull();
  });

  test("finds only its own event", async () => {
    const { id, seq } = await insert(store);
    const find = (environmentId: number, text: string) => store.read((tx) => findEventSeq(tx, environmentId, text));
    expect(await find(1, id)).toBe(seq);
    const others = [
      numberedId("evt", START_MS + 1, seq),
      numberedId("evt", START_MS, seq + 1),
      newId("evt", START_MS),
      id.toUpperCase(),
      `${id}0`,
      "",
    ];
    for (const other of others) expect(await find(1, other)).toBeNull();
    expect(await find(2, id)).toBeNull();
  });

  test("of an earlier version finds its event, but the id that this version would make does not", async () => {
    const former = newId("evt", START_MS);
    const { id, seq } = await insert(store);
    await store.write("app", (tx) => tx.run("UPDATE event SET former_id = ?2 WHERE seq = ?1", seq, former));
    expect(await store.read((tx) => findEventSeq(tx, 1, former))).toBe(seq);
    expect(await store.read((tx) => findEventSeq(tx, 2, former))).toBeNull();
    expect(await store.read((tx) => findEventSeq(tx, 1, id))).toBeNull();
  });
});

describe("events by their time", () => {
  const HOUR = 3_600_000;
  /** The largest step back of the time that is not a rollback. */
  const STEP_MS = ON_POSTGRES ? 60_000 : 2_000;
  const step = fc.oneof(
    { weight: 20, arbitrary: fc.nat({ max: HOUR }) },
    fc.integer({ min: 500 - STEP_MS, max: 0 }),
    fc.integer({ min: -400 * HOUR, max: -STEP_MS - 1_000 }),
  );

  test("match a model that misses no event since or until a moment, whatever the clock did", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 60 }),
        fc.nat({ max: 59 }),
        fc.integer({ min: -2, max: 2 }),
        async (steps, at, more) => {
          await using opened = await openTestStore();
          let nowMs = START_MS;
          const rows: { seq: number; atMs: number }[] = [];
          for (const one of steps) {
            nowMs += one;
            const { seq } = await insert(opened.store, nowMs);
            // Leaves gaps, as deleted events do.
            if (rows.length % 7 === 3) await opened.store.write("app", (tx) => tx.run("DELETE FROM event WHERE seq = ?1", seq));
            else rows.push({ seq, atMs: nowMs });
          }
          const moment = (rows[at % Math.max(1, rows.length)]?.atMs ?? START_MS) + more;
          const since = await opened.store.read((tx) => firstSeqSince(tx, "event", moment));
          const until = await opened.store.read((tx) => endSeqUntil(tx, "event", moment));
          for (const { seq, atMs } of rows) {
            if (atMs >= moment) expect(seq).toBeGreaterThanOrEqual(since);
            else expect(seq).toBeLessThan(until);
          }
        },
      ),
      { numRuns: roundsOf(60) },
    );
  });

  test("find a day's first event, and delete the notes about a clock set back with the events", async () => {
    await using opened = await openTestStore();
    const read = (ms: number) => opened.store.read((tx) => firstSeqAbout(tx, "event", ms));
    for (const ms of [0, 1, 1, 500, 501, 100 * HOUR, 2 * HOUR, 3 * HOUR]) await insert(opened.store, START_MS + ms);
    expect([await read(START_MS), await read(START_MS + 1), await read(START_MS + 501), await read(START_MS + 502)]).toEqual([1, 2, 5, 6]);
    expect(await read(START_MS + 200 * HOUR)).toBe(Number.MAX_SAFE_INTEGER);
    const noted = () => opened.store.read((tx) => tx.all("SELECT seq FROM clock_rollback"));
    expect(await noted()).toEqual([{ seq: 7 }]);
    const tidy = (which: string) =>
      opened.store.write("app", async (tx) => {
        await tx.run(`DELETE FROM event WHERE ${which}`);
        await forgetClockBack(tx, "event");
      });
    await tidy("seq < 6");
    expect(await noted()).toEqual([{ seq: 7 }]);
    await tidy("seq < 7");
    expect(await noted()).toEqual([]);
  });

  test.each([
    [2_000, false],
    [2_001, !ON_POSTGRES],
    [60_000, !ON_POSTGRES],
    [60_001, true],
    [119_000, true],
    [121_000, true],
  ])("note a clock that is set back by %d ms: %p, and miss no event", async (backMs, isNoted) => {
    await using opened = await openTestStore();
    for (const ms of [0, HOUR, HOUR - backMs, HOUR - backMs + 200, HOUR - backMs + 1_000]) await insert(opened.store, START_MS + ms);
    const noted = await opened.store.read((tx) => tx.all("SELECT seq FROM clock_rollback"));
    expect(noted).toEqual(isNoted ? [{ seq: 3 }] : []);
    const since = await opened.store.read((tx) => firstSeqSince(tx, "event", START_MS + HOUR - Math.max(0, backMs - STEP_MS - 201)));
    expect(since).toBeLessThanOrEqual(2);
  });

  test("have no bounds when a clock is set back over and over, so they miss no event", async () => {
    await using opened = await openTestStore();
    for (let time = 0; time < 70; time++) await insert(opened.store, START_MS - time * HOUR);
    const [since, until] = await opened.store.read(async (tx) => [await firstSeqSince(tx, "event", START_MS), await endSeqUntil(tx, "event", 0)]);
    expect([since, until]).toEqual([0, Number.MAX_SAFE_INTEGER]);
  });
});
