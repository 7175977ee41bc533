/** Tests the order and the filters of the list of relays, its pages, and that more relays need no more statements. */
import { beforeAll, describe, expect, test } from "bun:test";
import { type PageRequest, readCursor } from "../../src/base/page.ts";
import { listRelaysInOrder } from "../../src/insight/overview/relay-list.ts";
import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import { raiseProblem } from "../../src/platform/audit/problem.ts";
import { relayTarget } from "../../src/rules/relay/relay.ts";
import { pauseRelay } from "../../src/rules/relay/relay-save.ts";
import type { Reader, Store } from "../../src/store/port.ts";
import { NEXT_SEQ, relayOf } from "../kit/event-sql.ts";
import { openFreshStore } from "../kit/fresh-store.ts";
import { HOOKS, makeRelayKit, receiver, schedule } from "../kit/relay-kit.ts";

const fresh = await openFreshStore();
const { store, clock, environment } = fresh;
const kit = makeRelayKit(fresh);
const { id: environmentId } = await environment("development");
type Chosen = Parameters<typeof listRelaysInOrder>[2];

async function addEvents(name: string, state: string, count: number): Promise<void> {
  const sql = `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at)
    VALUES (${NEXT_SEQ}, ?1, ?2, ?3, 'receiver', ?4, '{}', ?5)`;
  await store.write("app", async (tx) => {
    const { relayKey, nameKey } = await relayOf(tx, environmentId, `rly_${name}`, name);
    for (let n = 0; n < count; n++) await tx.run(sql, environmentId, relayKey, nameKey, state, clock.now() - 1_000);
  });
}

async function listPage(chosen: Chosen, request: PageRequest, from: Store = store, name: EnvironmentName = "development") {
  return await listRelaysInOrder(from, { ...(await kit.context(name)), clock }, chosen, request);
}
const list = async (chosen: Chosen) => (await listPage(chosen, { limit: 50, after: null })).items.map(({ name }) => name);

/** Returns the store, which counts the statements of reads. */
function countReads(): { counted: Store; statements: () => number } {
  let statements = 0;
  const counted: Store = Object.create(store);
  counted.read = (work) =>
    store.read((tx) => {
      const reader: Reader = {
        get: (sql, ...values) => {
          statements++;
          return tx.get(sql, ...values);
        },
        all: (sql, ...values) => {
          statements++;
          return tx.all(sql, ...values);
        },
      };
      return work(reader);
    });
  return { counted, statements: () => statements };
}

beforeAll(async () => {
  for (const definition of [
    receiver("zebra", HOOKS),
    receiver("busy", HOOKS),
    receiver("broken", HOOKS),
    schedule("nightly"),
    receiver("halted", HOOKS),
  ]) {
    await clock.advance(1);
    await kit.create(definition);
  }
  await addEvents("busy", "done", 3);
  await addEvents("halted", "done", 2);
  await addEvents("zebra", "done", 1);
  await addEvents("broken", "queued", 1);
  const here = await kit.context();
  await store.write("dashboard", (tx) => pauseRelay(tx, here, "halted"));
  const problem = { environmentId, message: "Its events die.", nowMs: clock.now() };
  await store.write("app", async (tx) => {
    await raiseProblem(tx, { ...problem, code: "relay_failing", target: relayTarget("broken") });
    await raiseProblem(tx, { ...problem, code: "relay_failing", target: relayTarget("halted") });
    await raiseProblem(tx, { ...problem, code: "relay_silent", target: relayTarget("zebra") });
  });
});

describe("the list of relays", () => {
  const orders: [what: string, chosen: Chosen, names: string[]][] = [
    ["newest first", { sort: "newest" }, ["halted", "nightly", "broken", "busy", "zebra"]],
    ["by name", { sort: "name" }, ["broken", "busy", "halted", "nightly", "zebra"]],
    ["by trouble, then by traffic", { sort: "trouble" }, ["halted", "broken", "zebra", "nightly", "busy"]],
    ["by traffic, then by name", { sort: "traffic" }, ["busy", "halted", "broken", "zebra", "nightly"]],
    ["only failing ones", { sort: "traffic", state: "failing" }, ["halted", "broken"]],
    ["only paused ones, with trouble too", { sort: "name", state: "paused" }, ["halted"]],
    ["only those of a state that no relay has", { sort: "name", state: "capped" }, []],
    ["with a text in the name", { sort: "name", search: "US" }, ["busy"]],
    ["with a text in the trigger", { sort: "name", search: "every day" }, ["nightly"]],
    ["newest first with a text", { sort: "newest", search: "webhook" }, ["halted", "broken", "busy", "zebra"]],
    ["with a state and a text", { sort: "trouble", state: "failing", search: "bro" }, ["broken"]],
    ["without a match", { sort: "trouble", search: "100%" }, []],
  ];
  test.each(orders)("shows relays %s", async (_what, chosen, names) => {
    expect(await list(chosen)).toEqual(names);
  });

  test.each(["newest", "name", "trouble", "traffic"] as const)("has every relay once over its pages, sorted by %s", async (sort) => {
    const names: string[] = [];
    let after: string | null = null;
    do {
      const { items, next } = await listPage({ sort }, { limit: 2, after });
      names.push(...items.map(({ name }) => name));
      after = next === null ? null : readCursor(next);
    } while (after !== null);
    expect(names).toEqual(await list({ sort }));
  });

  test("with a text has each relay once, newest first, though one is created and one is deleted between two pages", async () => {
    const { id: environmentOf } = await environment("local");
    for (const name of ["one", "two", "three", "four"]) {
      await clock.advance(1);
      await kit.create(receiver(name, HOOKS), {}, "local");
    }
    const chosen: Chosen = { sort: "newest", search: "webhook" };
    const read = (after: string | null) => listPage(chosen, { limit: 2, after }, store, "local");
    const { items, next } = await read(null);
    const after = readCursor(next ?? "");
    await kit.create(receiver("five", HOOKS), {}, "local");
    const second = await read(after);
    await store.write("app", (tx) => tx.run("DELETE FROM relay WHERE environment_id = ?1 AND name IN ('five', 'four')", environmentOf));
    const third = await read(after);
    const names = [items, second.items, third.items].map((page) => page.map(({ name }) => name));
    expect(names).toEqual([
      ["four", "three"],
      ["two", "one"],
      ["two", "one"],
    ]);
    expect([second.next, third.next]).toEqual([null, null]);
  });
});

describe("a list of 300 relays", () => {
  const MANY = 300;
  beforeAll(async () => {
    for (let at = 0; at < MANY; at++) await kit.create(receiver(`many-${at}`, HOOKS), {}, "production");
    const { id } = await environment("production");
    const sql = `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at)
      VALUES (${NEXT_SEQ}, ?1, ?2, ?3, 'receiver', 'done', '{}', ?4)`;
    await store.write("app", async (tx) => {
      for (let at = 0; at < MANY; at++) {
        const { relayKey, nameKey } = await relayOf(tx, id, `rly_many-${at}`, `many-${at}`);
        await tx.run(sql, id, relayKey, nameKey, clock.now() - 1_000);
      }
    });
  });

  test.each([
    ["newest", 200, 30],
    ["trouble", 50, 70],
    ["traffic", 200, 70],
  ] as const)("sorted by %s reads a page of %d with at most %d statements", async (sort, limit, most) => {
    const { counted, statements } = countReads();
    const { items } = await listPage({ sort }, { limit, after: null }, counted, "production");
    expect(items.length).toBe(limit);
    expect(items.every(({ last24h }) => last24h.done === 1)).toBe(true);
    expect(statements()).toBeLessThanOrEqual(most);
  });

  test("counts every event of a relay that has more than its share of the limit", async () => {
    const { id } = await environment("production");
    const { nameKey } = await store.write("app", (tx) => relayOf(tx, id, "rly_many-7", "many-7"));
    await store.write("app", (tx) =>
      tx.run(
        `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
         SELECT (SELECT max(seq) FROM event) + i, ?1, (SELECT relay_key FROM event WHERE name_key = ?2 LIMIT 1), ?2, 'receiver', 'done', '{}', ?3 FROM n`,
        id,
        nameKey,
        clock.now() - 500,
      ),
    );
    const { items } = await listPage({ sort: "traffic" }, { limit: 2, after: null }, store, "production");
    expect(items.map(({ name, last24h }) => [name, last24h])).toEqual([
      ["many-7", { done: 2_501, failed: 0, dead: 0, waiting: 0 }],
      ["many-0", { done: 1, failed: 0, dead: 0, waiting: 0 }],
    ]);
  });
});
