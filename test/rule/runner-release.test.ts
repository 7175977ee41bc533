/**
 * The release of a hold. Until the newest event of that moment, events of all relays run in arrival order, however many wait. Events that send start
 * in that order. Events that cannot start now do not delay others.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { setHold as writeHoldOf } from "../../src/platform/account/environment.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { until } from "../kit/event-flow.ts";
import { EVENT_ID } from "../kit/event-sql.ts";
import { FakeCaller, OK } from "../kit/fake-caller.ts";
import { type ActionLike, breakRelay, makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { rounds } from "../kit/rounds.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { RAISED_LIMITS } from "../kit/service-config.ts";
import { type Arriving, storeEvents } from "../kit/stored-events.ts";

const map = { event_id: "id", person_email: "email" };
const WRITE = { type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } };
const CALL = { type: "call_url", url: "https://example.com/notice" };
const GIVE = { type: "grant_access", entitlement: "access:club" };
const TAKE = { type: "revoke_access", entitlement: "access:club" };

let running: RunningService;
let caller: FakeCaller;

beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller }, config: { limits: { ...RAISED_LIMITS, relaysPerEnvironment: 1_000 } } });
  await makeOrders(running);
  await running.api("PUT", "/access/club", {});
});
afterEach(() => running[Symbol.asyncDispose]());

const make = (name: string, actions: readonly ActionLike[], at: object = map) =>
  saveRelay(running, receiverDefinition({ name, actions, map: at as Record<string, string> }));

async function setHold(held: boolean): Promise<void> {
  const { version } = (await running.api("GET", "/settings")).body.settings;
  expect((await running.api("PUT", "/settings", { version, held })).status).toBe(200);
}

/** Does the same as `setHold(true)`, in the environment's next transaction. */
const writeHold = () => running.service.store.write("app", (tx) => writeHoldOf(tx, 1, true, { newestArrival: 0, nowMs: running.clock.now() }), 1);

/** Builds events of the relays in a pseudorandom order. */
function mix(count: number, relays: readonly string[]): Arriving[] {
  let state = 7;
  return Array.from({ length: count }, (_, at) => {
    state = (state * 48_271) % 2_147_483_647;
    return { relay: relays[state % relays.length] as string, email: `b${at % 50}@example.com` };
  });
}

/** Lists the events that ran, in the order of their runs. */
async function listRun(): Promise<string[]> {
  const rows = await running.rows<{ event: string }>("SELECT event_id AS event FROM audit WHERE action = 'run' ORDER BY seq");
  return rows.map(({ event }) => event);
}

/** Lists the events whose first step wrote a record, in that order. */
async function listWritten(): Promise<string[]> {
  const rows = await running.rows<{ id: string }>(
    `SELECT ${EVENT_ID} AS id FROM record JOIN event ON json_extract(event.payload, '$.mapped.event_id') = json_extract(record.data, '$.order') ORDER BY record.seq`,
  );
  return rows.map(({ id }) => id);
}

const releasedThrough = async () =>
  (await running.rows<{ through: number | null }>("SELECT released_through AS through FROM environment"))[0]?.through;

/** Runs `work` once, right after the first commit that moves an event and before the next one begins. */
function afterFirstRun(work: () => Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const stop = running.service.store.listen(() => {
      stop();
      work().then(resolve, reject);
    }, ["event_moved"]);
  });
}

const COUNT = rounds({ slice: ON_POSTGRES ? 400 : 500, soak: 2_000, long: 5_000 });

describe("events of all relays run in arrival order", () => {
  test(`${COUNT} held events of relays that grant and revoke leave the access of the last event`, async () => {
    await make("paid", [GIVE]);
    await make("canceled", [TAKE]);
    await make("written", [WRITE]);
    await setHold(true);
    const arriving = mix(COUNT, ["paid", "paid", "canceled", "written"]);
    const ids = await storeEvents(running, arriving);
    await setHold(false);
    await running.drain();
    expect(await listRun()).toEqual(ids);
    const last = new Map(arriving.filter(({ relay }) => relay !== "written").map(({ email, relay }) => [email, relay]));
    const holders = await running.rows<{ email: string }>(
      "SELECT DISTINCT email FROM access_grant JOIN person ON person.id = person_id WHERE revoked_at IS NULL ORDER BY email",
    );
    const paid = [...last].filter(([, relay]) => relay === "paid").map(([email]) => email);
    expect(holders.map(({ email }) => email).sort()).toEqual(paid.sort());
    await until("the release has ended", async () => (await releasedThrough()) === null);
  });

  test("of many relays", async () => {
    const names = Array.from({ length: 40 }, (_, at) => `relay-${at}`);
    for (const name of names) await make(name, [WRITE]);
    await setHold(true);
    const ids = await storeEvents(running, mix(400, names));
    await setHold(false);
    await running.drain();
    expect(await listRun()).toEqual(ids);
  });

  test("across a restart and a second hold with new events", async () => {
    await make("one", [WRITE]);
    await make("two", [WRITE]);
    await setHold(true);
    const ids = await storeEvents(running, mix(COUNT, ["one", "two"]));
    const again = afterFirstRun(() => writeHold());
    await setHold(false);
    await again;
    await running.drain();
    const ran = (await listRun()).length;
    expect([ran > 0, ran < COUNT]).toEqual([true, true]);
    ids.push(...(await storeEvents(running, mix(100, ["two", "one"]))));
    const restarted = afterFirstRun(() => running.restart());
    await setHold(false);
    await restarted;
    await running.clock.advance(5_000);
    await running.drain();
    expect(await listRun()).toEqual(ids);
    expect(await releasedThrough()).toBeNull();
  });

  test("an event that arrives during the release runs after the waiting ones, and afterwards database relays run at once again", async () => {
    await make("one", [WRITE]);
    await make("two", [WRITE]);
    await setHold(true);
    // All waiting events belong to one relay, so the other has none to wait for.
    const ids = await storeEvents(running, mix(COUNT, ["one"]));
    const call = (id: string) => running.hook("two", signedCall({ id, email: "new@example.com" }));
    const arriving = afterFirstRun(() => call("late"));
    await setHold(false);
    // biome-ignore lint/suspicious/noExplicitAny: read as JSON
    const { eventId } = ((await arriving) as any).body;
    await running.drain();
    expect(await listRun()).toEqual([...ids, eventId]);
    const next = (await call("next")).body.eventId;
    expect((await running.api("GET", `/events/${next}`)).body.event.state).toBe("done");
  });

  test("a release without waiting events ends too", async () => {
    await make("one", [WRITE]);
    await setHold(true);
    await setHold(false);
    await until("the release has ended", async () => (await releasedThrough()) === null);
  });
});

describe("relays that send", () => {
  test("start their events in arrival order across all relays", async () => {
    await make("calls", [WRITE, CALL]);
    await make("tells", [WRITE, { ...CALL, url: "https://example.com/other" }]);
    await make("writes", [WRITE]);
    await setHold(true);
    const arriving = mix(120, ["calls", "tells", "writes"]);
    const ids = await storeEvents(running, arriving);
    await setHold(false);
    await running.drain();
    expect(await listWritten()).toEqual(ids);
    expect(caller.ids).toEqual(ids.filter((_, at) => arriving[at]?.relay !== "writes"));
  });

  test("with hanging receivers delay the others only for a few seconds, and still run", async () => {
    caller.reply = () => "hang";
    await make("calls", [CALL]);
    await make("writes", [WRITE]);
    await setHold(true);
    const calls = await storeEvents(running, mix(12, ["calls"]));
    const [write] = await storeEvents(running, [{ relay: "writes", email: "b@example.com" }]);
    await setHold(false);
    await until("eight calls are out", () => caller.hanging() === 8);
    expect(await listRun()).toEqual([]);
    await running.clock.advance(10_000);
    expect([await listRun(), caller.hanging()]).toEqual([[write as string], 8]);
    expect(await releasedThrough()).not.toBeNull();
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
    expect(caller.ids).toEqual(calls);
    await until("the release has ended", async () => (await releasedThrough()) === null);
  });
});

describe("events that cannot start now delay no others", () => {
  test("of a paused relay run when it resumes", async () => {
    await make("paused", [WRITE]);
    await make("one", [WRITE]);
    await running.api("POST", "/relays/paused/pause");
    await setHold(true);
    const [held] = await storeEvents(running, mix(1, ["paused"]));
    const ids = await storeEvents(running, mix(20, ["one"]));
    await setHold(false);
    await running.drain();
    expect(await listRun()).toEqual(ids);
    await until("the release has ended", async () => (await releasedThrough()) === null);
    await running.api("POST", "/relays/paused/resume");
    await running.drain();
    expect(await listRun()).toEqual([...ids, held as string]);
  });

  test("of a relay that is paused during the release", async () => {
    await make("paused", [WRITE]);
    await make("one", [WRITE]);
    await setHold(true);
    const arriving = mix(COUNT, ["one", "paused"]);
    const ids = await storeEvents(running, arriving);
    const pausing = afterFirstRun(() =>
      running.service.store.write(
        "app",
        async (tx) => {
          await tx.run("UPDATE relay SET state = 'paused' WHERE name = 'paused'");
          tx.notify("relay");
        },
        1,
      ),
    );
    await setHold(false);
    await pausing;
    await running.drain();
    const isOf = (name: string) => (id: string) => arriving[ids.indexOf(id)]?.relay === name;
    expect((await listRun()).filter(isOf("one"))).toEqual(ids.filter(isOf("one")));
    expect((await listRun()).filter(isOf("paused")).length).toBeLessThan(ids.filter(isOf("paused")).length);
    await running.api("POST", "/relays/paused/resume");
    await running.drain();
    expect((await listRun()).filter(isOf("paused"))).toEqual(ids.filter(isOf("paused")));
  });

  test("because they wait for a retry, are dead, or have a broken payload", async () => {
    await make("fails", [CALL]);
    await make("dies", [{ ...WRITE, collection: "nowhere" }]);
    await make("one", [WRITE]);
    caller.reply = () => ({ kind: "unreachable", code: "timeout", message: "no answer" });
    await setHold(true);
    const [, , broken] = await storeEvents(running, [...mix(1, ["fails"]), ...mix(1, ["dies"]), ...mix(1, ["one"])]);
    await running.service.store.write("app", (tx) => tx.run(`UPDATE event SET payload = '{broken' WHERE ${EVENT_ID} = ?1`, broken as string));
    const ids = await storeEvents(running, mix(20, ["one"]));
    await setHold(false);
    await running.drain();
    expect((await listRun()).filter((id) => ids.includes(id))).toEqual(ids);
    const states = await running.rows("SELECT state, reason FROM event ORDER BY seq LIMIT 3");
    expect(states).toEqual([
      { state: "queued", reason: "timeout" },
      { state: "dead", reason: "collection_missing" },
      { state: "queued", reason: "internal" },
    ]);
    await until("the release has ended", async () => (await releasedThrough()) === null);
  });

  test("of a relay that cannot be opened", async () => {
    await make("closed", [WRITE]);
    await make("one", [WRITE]);
    await setHold(true);
    await storeEvents(running, mix(1, ["closed"]));
    await breakRelay(running.service.store, "closed", ({ actions }) => {
      for (const action of actions) action.type = "nothing";
    });
    const ids = await storeEvents(running, mix(20, ["one"]));
    await setHold(false);
    await until("the others ran", async () => (await listRun()).length === 20);
    expect(await listRun()).toEqual(ids);
    await until("the release has ended", async () => (await releasedThrough()) === null);
  });
});
