/**
 * Transactions on PostgreSQL that decide by what the process remembers, and that the server undoes if another process changed it: what they cost, when
 * they run again, and what a reader sees of them.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { EventInserter, keyOfEventId, makeReceiverPayload } from "../../src/engine/event/insert.ts";
import { EVERYTHING, type Fence, type Store, StoreUnavailable, type Writer } from "../../src/store/port.ts";
import { NumbersAhead } from "../../src/store/postgres/event-number.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { relayOf } from "../kit/event-sql.ts";
import { freshDatabase } from "../kit/postgres.ts";
import { countRoundTrips } from "../kit/round-trip.ts";

const ENVIRONMENT = 1;
/** Enough writes for the next one to be optimistic, whatever disturbed the ones before. */
const CALM = 70;

let database: Awaited<ReturnType<typeof freshDatabase>>;
let store: Store;
let other: Store;
let admin: SQL;

beforeEach(async () => {
  database = await freshDatabase();
  store = await openPostgres(database.place, { clock: systemClock });
  other = await openPostgres(database.place, { clock: systemClock });
  admin = new SQL(database.url, { max: 1 });
});
afterEach(async () => {
  await Promise.all([store.close(), other.close(), admin.close()]);
  await database[Symbol.asyncDispose]();
});

interface Arrival {
  id: string;
  nowMs?: number;
  /** Runs in the transaction, before the event is stored. */
  work?: (tx: Writer) => Promise<void>;
}

interface Arrived {
  seq: number;
  duplicate: boolean;
}

/** The number of times that the work of each arrival ran. */
let runs: Map<string, number>;

/** Stores events as the receiver does: all that come together are one group, whose reads are sent ahead. */
function receiverOf(of: Store): (arrival: Arrival) => Promise<Arrived> {
  const draftOf = (relay: Awaited<ReturnType<typeof relayOf>>, { id, nowMs = 1_000 }: Arrival) => ({
    ...relay,
    trigger: "receiver" as const,
    payload: makeReceiverPayload("{}", {}),
    unsigned: false,
    dedupe: keyOfEventId(ENVIRONMENT, "orders", id),
    nowMs,
  });
  let relay: Awaited<ReturnType<typeof relayOf>> | null = null;
  return of.batchWrites<Arrival, Arrived>(
    "app",
    async (tx, arrivals) => {
      relay ??= await relayOf(tx, ENVIRONMENT, "rly_orders", "orders");
      const inserter = new EventInserter(tx);
      const stored: Arrived[] = [];
      for (const arrival of arrivals) {
        runs.set(arrival.id, (runs.get(arrival.id) ?? 0) + 1);
        await arrival.work?.(tx);
        stored.push(await inserter.insert(draftOf(relay, arrival)));
      }
      return stored;
    },
    {
      scopeOf: () => ENVIRONMENT,
      prefetch: (reader, arrivals) =>
        relay === null
          ? []
          : EventInserter.prefetch(
              reader,
              arrivals.map((arrival) => draftOf(relay as never, arrival)),
            ),
    },
  );
}

let receive: (arrival: Arrival) => Promise<Arrived>;
let receiveElsewhere: (arrival: Arrival) => Promise<Arrived>;

beforeEach(async () => {
  runs = new Map();
  receive = receiverOf(store);
  receiveElsewhere = receiverOf(other);
  await receiveElsewhere({ id: "elsewhere" });
  await calm();
  runs.clear();
});

/** Stores events one after another, so that the next one is stored by an optimistic transaction. */
async function calm(): Promise<void> {
  for (let at = 0; at < CALM; at++) await receive({ id: `calm ${runs.size} ${at}` });
}

const listNumbers = async () =>
  (await other.read((tx) => tx.all<{ seq: number }>("SELECT seq FROM event WHERE environment_id = ?1 ORDER BY seq", ENVIRONMENT))).map(
    ({ seq }) => seq,
  );
const runsOf = (id: string) => runs.get(id) ?? 0;

test("an event costs one round trip while no other process writes its environment", async () => {
  const counts: number[] = [];
  for (let at = 0; at < 9; at++) counts.push(await countRoundTrips(() => receive({ id: `single ${at}` })));
  expect(Math.min(...counts)).toBe(1);
});

test("an event costs three round trips at most if the server undoes its optimistic transaction", async () => {
  const counts: number[] = [];
  for (let at = 0; at < 3; at++) {
    await calm();
    await receiveElsewhere({ id: `else ${at}` });
    counts.push(await countRoundTrips(() => receive({ id: `undone ${at}` })));
    expect(runsOf(`undone ${at}`)).toBe(2);
  }
  expect(Math.min(...counts)).toBeLessThanOrEqual(3);
});

test("events that come while a group is under way are stored once each, and their numbers rise in the order of the commits", async () => {
  const seqs: number[] = [];
  const arrivals = Array.from({ length: 300 }, (_, at) => receive({ id: `many ${at}` }).then(({ seq }) => seqs.push(seq)));
  await Promise.all(arrivals);
  expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
  expect((await listNumbers()).filter((seq) => seqs.includes(seq))).toEqual(seqs);
  expect([...runs.values()].every((count) => count === 1)).toBe(true);
});

describe("a write runs again and sees what changed, if before it", () => {
  const CASES: readonly (readonly [what: string, change: () => Promise<unknown>])[] = [
    ["another process stored an event with its key", () => receiveElsewhere({ id: "next" })],
    ["another process stored another event", () => receiveElsewhere({ id: "else" })],
    ["another process wrote everything", () => other.write("app", (tx) => tx.run("UPDATE event_last SET seq = seq"), EVERYTHING)],
    ["another program wrote by SQL", () => admin.unsafe("UPDATE event SET preview = '' WHERE seq < 0; UPDATE writer_turn SET node = ''")],
    ["this process wrote everything", () => store.write("app", (tx) => tx.run("UPDATE event_last SET seq = seq"), EVERYTHING)],
    ["another process stored an event far in the future", () => receiveElsewhere({ id: "future", nowMs: 10_000_000 })],
  ];
  test.each(CASES)("%s", async (what, change) => {
    await change();
    const before = Math.max(...(await listNumbers()));
    const stored = await receive({ id: "next" });
    const isKnown = what.includes("its key");
    expect([stored.duplicate, stored.seq > before]).toEqual([isKnown, !isKnown]);
    const rows = await other.read((tx) => tx.all("SELECT seq FROM clock_rollback"));
    expect(rows).toHaveLength(what.includes("future") ? 1 : 0);
    await calm();
    const numbers = await listNumbers();
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});

test("a second event with a key is a duplicate of the first, and costs the group one more run", async () => {
  const first = await receive({ id: "twice" });
  const [second, next] = await Promise.all([receive({ id: "twice" }), receive({ id: "next" })]);
  expect([second, next.duplicate]).toEqual([{ ...first, duplicate: true }, false] as never);
  expect([runsOf("twice"), runsOf("next")]).toEqual([3, 2]);
});

test("a write that asks for the events with a key, and stores none, finds the one that this process stored", async () => {
  const { seq } = await receive({ id: "asked" });
  const { hash } = keyOfEventId(ENVIRONMENT, "orders", "asked");
  const ask = async (tx: Writer): Promise<readonly number[]> => {
    await tx.keys.prefetch?.([hash]);
    return await tx.keys.find(hash);
  };
  expect(await store.write("app", ask, ENVIRONMENT)).toEqual([seq]);
});

test("two events with a key in one group are one event", async () => {
  const [first, second] = await Promise.all([receive({ id: "same" }), receive({ id: "same" })]);
  expect([first.duplicate, second.duplicate, first.seq === second.seq]).toEqual([false, true, true]);
});

test("a write that fails does not undo the others of its group", async () => {
  const fail = async () => {
    throw new Error("refused");
  };
  const results = await Promise.allSettled([receive({ id: "one" }), receive({ id: "bad", work: fail }), receive({ id: "two" })]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect((results[1] as PromiseRejectedResult).reason.message).toBe("refused");
});

test("a write that fails by what this process wrongly remembers runs again before its caller gets the error", async () => {
  await receiveElsewhere({ id: "else" });
  let runsOfWork = 0;
  const work = async () => {
    runsOfWork += 1;
    if (runsOfWork === 1) throw new Error("by old knowledge");
  };
  expect((await receive({ id: "next", work })).duplicate).toBe(false);
  expect(runsOfWork).toBe(2);
});

test("a draw of the next numbers that fails does not fail the events whose commit it precedes", async () => {
  await admin.unsafe(`CREATE SEQUENCE fault; ALTER FUNCTION draw_event_numbers(bigint) RENAME TO draw_without_fault;
    CREATE FUNCTION draw_event_numbers(wanted bigint) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('fault') = 1 THEN RAISE lock_not_available; END IF;
      RETURN draw_without_fault(wanted);
    END $$`);
  const stored: Arrived[] = [];
  for (let at = 0; at < 9; at++) stored.push(await receive({ id: `draws ${at}` }));
  const numbers = await listNumbers();
  expect(stored.map(({ seq }) => numbers.includes(seq))).toEqual(stored.map(() => true));
  expect(Number((await admin`SELECT last_value FROM fault`)[0].last_value)).toBeGreaterThan(1);
});

test("a statement that violates a constraint fails only its own write", async () => {
  const violate = (tx: Writer) => tx.post("INSERT INTO event_last (seq) VALUES (NULL)");
  const results = await Promise.allSettled([receive({ id: "one" }), receive({ id: "bad", work: violate }), receive({ id: "two" })]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("groups that follow one that fails run again after it, each once", async () => {
  await receiveElsewhere({ id: "else" });
  const arrivals = Array.from({ length: 200 }, async (_, at) => {
    await Bun.sleep(at % 7);
    return await receive({ id: `many ${at}` });
  });
  const stored = await Promise.all(arrivals);
  expect(stored.filter(({ duplicate }) => duplicate)).toEqual([]);
  expect(new Set(stored.map(({ seq }) => seq)).size).toBe(200);
});

test("two processes that store at the same time keep one order of numbers and store each event once", async () => {
  const seen: { seq: number; duplicate: boolean }[] = [];
  const store = async (receiver: typeof receive, name: string) => {
    for (let at = 0; at < 60; at++) {
      const before = Math.max(0, ...(await listNumbers()));
      const stored = await receiver({ id: `${at % 2 === 0 ? "shared" : name} ${at}` });
      if (!stored.duplicate) expect(stored.seq).toBeGreaterThan(before);
      seen.push(stored);
    }
  };
  await Promise.all([store(receive, "here"), store(receiveElsewhere, "there")]);
  expect(seen.filter(({ duplicate }) => !duplicate)).toHaveLength(90);
});

test("a lease that another process took is noticed before an event counts as this process's", async () => {
  await admin.unsafe("CREATE TABLE held (node text); INSERT INTO held VALUES ('this')");
  const asked: string[] = [];
  const fence: Fence = async (tx) => {
    const row = await tx.get<{ node: string }>("SELECT node FROM held");
    asked.push(row?.node ?? "");
    if (row?.node !== "this") throw new StoreUnavailable("Another process has the lease.");
  };
  const fenced = store.withFence(fence, ENVIRONMENT);
  const holds: boolean[] = [];
  const work = async (tx: Writer) => {
    holds.push(await fenced.fenceHolds(tx));
  };
  for (let at = 0; at < 3; at++) await receive({ id: `own ${at}`, work });
  expect([holds, asked]).toEqual([[true, true, true], ["this"]]);
  await other.write("app", (tx) => tx.run("UPDATE held SET node = 'other'"), ENVIRONMENT);
  await receive({ id: "after", work });
  expect(holds.at(-1)).toBe(false);
});

describe("numbers that were drawn ahead", () => {
  test("are given in rising order, above the last one that was given, whatever the order of the draws", () => {
    const ahead = new NumbersAhead();
    const nowMs = systemClock.monotonicMs();
    ahead.add([7, 8, 9], nowMs);
    ahead.recordGiven(5);
    ahead.add([3, 4, 5, 6], nowMs);
    expect(ahead.takeAll()).toEqual([6, 7, 8, 9]);
    expect(ahead.takeAll()).toEqual([]);
  });

  test("are not used after five seconds, because times rise with numbers", () => {
    const ahead = new NumbersAhead();
    ahead.add([1, 2], systemClock.monotonicMs() - 5_001);
    expect(ahead.takeAll()).toEqual([]);
    ahead.add([3], systemClock.monotonicMs());
    expect(ahead.takeAll()).toEqual([3]);
  });
});

test("an expectation that is wrong is the cause, also where a later statement of the transaction is the first of its kind", async () => {
  const write = (of: Store) => of.write("app", (tx) => tx.get("SELECT 1 AS one"), ENVIRONMENT);
  for (let time = 0; time < 4; time++) {
    const fresh = await openPostgres(database.place, { clock: systemClock });
    const receiveFirst = receiverOf(fresh);
    await receiveFirst({ id: `first ${time}` });
    for (let at = 0; at < 20; at++) await write(fresh);
    await write(other);
    const stored = await Promise.allSettled(Array.from({ length: 9 }, (_, at) => receiveFirst({ id: `next ${time} ${at}` })));
    expect(stored.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => "fulfilled"));
    await fresh.close();
  }
});
