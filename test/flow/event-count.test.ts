/** Tests event counts by state: they match the list, they have a limit, and they take every filter of the list except the state. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { editRelay, GRANT, putEvents, WRITE } from "../kit/event-flow.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const MAP = { event_id: "id", person_email: "email" };
const define = (name: string, actions: readonly object[]) => receiverDefinition({ name, actions: actions as never[], map: MAP });

let running: RunningService;
beforeAll(async () => {
  running = await startRunningService();
  await makeOrders(running);
  const put = async (relay: string, from: number, count: number, email?: string) => {
    const ids = Array.from({ length: count }, (_, at) => `${relay}-${from + at}`);
    await putEvents(running, ids, { relay, ...(email === undefined ? {} : { email }) });
    await running.drain();
  };
  await saveRelay(running, define("orders", [GRANT, { ...WRITE, collection: "nowhere" }]));
  await put("orders", 0, 5, "ada@example.com");
  await editRelay(running, define("orders", [GRANT]));
  await put("orders", 10, 7, "ada@example.com");
  await put("orders", 20, 2);
  await running.clock.advance(60_000);
  await saveRelay(running, define("others", [GRANT]));
  await put("others", 0, 3, "eve@example.com");
  await running.api("POST", "/relays/others/pause");
  await put("others", 10, 4, "eve@example.com");
});
afterAll(() => running[Symbol.asyncDispose]());

const STATES = ["queued", "running", "done", "failed", "dead"];
const minuteLater = async (): Promise<string> => {
  const [last] = await running.rows<{ at: number }>("SELECT max(created_at) - 1000 AS at FROM event");
  return new Date(last?.at ?? 0).toISOString();
};

describe("each count matches the list", () => {
  const QUERIES: Record<string, () => string | Promise<string>> = {
    "no filter": () => "",
    "a relay": () => "relay=orders",
    "another relay": () => "relay=others",
    "a trigger": () => "trigger=receiver",
    "a trigger without events": () => "trigger=schedule",
    "a reason": () => "reason=collection_missing",
    "a reason of one person's events": () => "reason=collection_missing&person=ada@example.com",
    "whatever reason": () => "reason=any",
    "a person": () => "person=ada@example.com",
    "any reason": () => "person=eve@example.com&relay=others",
    "a text": () => "q=others-1",
    "a mapped value's beginning": () => "mapped=person_email:Eve@",
    since: async () => `since=${await minuteLater()}`,
    until: async () => `until=${await minuteLater()}`,
  };
  for (const [what, make] of Object.entries(QUERIES)) {
    test(what, async () => {
      const query = await make();
      const { counts } = (await running.api("GET", `/events/counts?${query}`)).body;
      for (const state of STATES) {
        const { items } = (await running.api("GET", `/events?${query}&state=${state}&limit=200`)).body;
        expect({ state, ...counts[state] }).toEqual({ state, count: items.length, isMore: false });
      }
      const { histogram } = (await running.api("GET", `/events/histogram?${query}`)).body;
      const drawn = (outcome: string): number => histogram.bars.reduce((sum: number, bar: Record<string, number>) => sum + (bar[outcome] ?? 0), 0);
      expect(["done", "waiting", "failed", "dead"].map(drawn)).toEqual([
        counts.done.count,
        counts.queued.count + counts.running.count,
        counts.failed.count,
        counts.dead.count,
      ]);
      expect(histogram.approximate).toBe(false);
    });
  }
});

test("counts all events without a filter", async () => {
  const { counts } = (await running.api("GET", "/events/counts")).body;
  expect(counts).toMatchObject({ dead: { count: 5 }, done: { count: 10 }, failed: { count: 2 }, queued: { count: 4 }, running: { count: 0 } });
});

test("rejects an unknown person and a state", async () => {
  expect((await running.api("GET", "/events/counts?person=nobody@example.com")).status).toBe(400);
  expect((await running.api("GET", "/events/counts?state=dead")).status).toBe(400);
});

test("stops counting at ten thousand per state, and says so", async () => {
  await running.service.store.write("app", (tx) =>
    tx.run(
      `INSERT INTO event (seq, environment_id, name_key, relay_key, trigger, state, created_at, finished_at, payload)
       WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 22000)
       SELECT (SELECT max(seq) FROM event) + i, environment_id, name_key, relay_key, trigger, CASE WHEN i <= 10500 THEN 'dead' ELSE 'done' END, created_at, created_at, payload FROM n, event WHERE seq = (SELECT min(seq) FROM event)`,
    ),
  );
  const { counts } = (await running.api("GET", "/events/counts")).body;
  expect(counts.dead).toEqual({ count: 10_000, isMore: true });
  expect(counts.done).toEqual({ count: 10_000, isMore: true });
  const trigger = async (kind: string) => (await running.api("GET", `/events/counts?trigger=${kind}`)).body.counts.done;
  expect(await trigger("receiver")).toEqual({ count: 10_000, isMore: true });
  expect(await trigger("schedule")).toEqual({ count: 0, isMore: false });
});

describe("the histogram", () => {
  const draw = async (query: string) => (await running.api("GET", `/events/histogram?${query}`)).body;

  test("has bars of equal width through the range, as wide as requested", async () => {
    const { histogram } = await draw("since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z&every=1h");
    expect(histogram.bars.length).toBe(24);
    expect(histogram).toMatchObject({ everyMs: 3_600_000, since: "2026-01-01T00:00:00.000Z", until: "2026-01-02T00:00:00.000Z" });
    expect((await draw("since=2026-01-01T00:00:00Z&until=2026-01-08T00:00:00Z")).histogram.bars.length).toBe(84);
  });

  test("shows only one state if the request names one", async () => {
    for (const state of ["failed", "done", "queued"]) {
      const { items } = (await running.api("GET", `/events?relay=others&state=${state}&limit=200`)).body;
      const { bars } = (await draw(`relay=others&state=${state}`)).histogram;
      const drawn = bars.flatMap(({ done, waiting, failed, dead }: Record<string, number>) => [done, waiting, failed, dead]);
      expect([state, drawn.reduce((sum: number, count: number) => sum + count, 0)]).toEqual([state, items.length]);
    }
  });

  test("rejects too many bars, and a range that ends before it begins", async () => {
    expect(await draw("since=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z&every=1m")).toMatchObject({ code: "invalid_input" });
    expect(await draw("since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z")).toMatchObject({ code: "invalid_input" });
  });

  test("estimates large counts from samples and says so, while dead events are exact", async () => {
    const [one] = await running.rows<{ at: number }>("SELECT max(created_at) AS at FROM event");
    const query = `since=${new Date(one?.at ?? 0).toISOString()}&relay=orders`;
    const before = (await draw(query)).histogram.bars.at(-1);
    await running.service.store.write("app", (tx) =>
      tx.run(`INSERT INTO event (seq, environment_id, name_key, relay_key, "trigger", state, attempts, runs, replays, payload, truncated, unsigned, created_at, mapped_again)
        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 40000)
        SELECT (SELECT max(seq) FROM event) + n, environment_id, name_key, relay_key, "trigger", CASE WHEN n % 4000 = 0 THEN 'dead' ELSE 'done' END, 1, 1, 0, '{}', 0, 0, ${one?.at ?? 0}, 0
        FROM number, (SELECT * FROM event WHERE name_key = (SELECT key FROM relay_name WHERE name = 'orders') LIMIT 1) AS example`),
    );
    const { approximate, bars } = (await draw(query)).histogram;
    expect(approximate).toBe(true);
    expect(bars.at(-1).dead).toBe(before.dead + 10);
    expect(Math.abs(bars.at(-1).done - 39_990)).toBeLessThan(4_000);
  });

  test("counts rejected requests of a relay and of all, and none for a filter that only an event can match", async () => {
    const since = new Date(running.clock.now()).toISOString();
    const reject = async (relay: string, count: number) => {
      for (let nth = 0; nth < count; nth++) await running.hook(relay, signedCall({ id: "a" }, "anotherSecretOfTwentyFour1"));
    };
    await reject("orders", 3);
    await running.clock.advance(60_000);
    await reject("others", 2);
    await running.clock.advance(2_000);
    const until = new Date(running.clock.now() + 1).toISOString();
    const rejected = async (query: string) =>
      (await draw(`since=${since}&until=${until}${query}`)).histogram.bars.map((bar: { rejected: number }) => bar.rejected);
    expect(await rejected("&every=1m")).toEqual([3, 2]);
    expect(await rejected("&every=1m&trigger=receiver")).toEqual([3, 2]);
    expect(await rejected("&every=1m&relay=orders")).toEqual([3, 0]);
    expect(await rejected("&every=1h")).toEqual([5]);
    for (const filter of ["state=done", "trigger=schedule", "reason=any", "q=a", "mapped=a:b"])
      expect([filter, await rejected(`&every=1h&${filter}`)]).toEqual([filter, [0]]);
    const day = new Date(running.clock.now() - 20 * DAY_MS).toISOString();
    expect((await draw(`since=${day}&until=${until}&every=6h`)).histogram.bars.at(-1).rejected).toBe(5);
  });
});
