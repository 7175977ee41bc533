/**
 * Relays that go silent against their own rhythm, and relays that reject every request. The tests check when the owner gets an alert and when it
 * resolves.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DAY_MS, DEFAULT_LIMITS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { insertEvent, makePayload } from "../../src/engine/event/insert.ts";
import { learnRhythm } from "../../src/engine/health/silence-check.ts";
import { alertMissingSecrets } from "../../src/engine/maintenance/missing-secret.ts";
import type { ReceiverAnswer } from "../../src/engine/receiver/ingest.ts";
import { saveSettings } from "../../src/platform/account/environment.ts";
import { listAlerts, resolveAlert } from "../../src/platform/audit/alert.ts";
import { clearProblem } from "../../src/platform/audit/problem.ts";
import { LiveRelays } from "../../src/rules/relay/live-relay.ts";
import { requireRelay } from "../../src/rules/relay/relay.ts";
import { deleteRelay } from "../../src/rules/relay/relay-save.ts";
import { findSender } from "../../src/rules/senders/registry.ts";
import { type BareReceiver, makeBareReceiver } from "../kit/bare-receiver.ts";
import { relayOf } from "../kit/event-sql.ts";
import { type FreshStore, openFreshStore } from "../kit/fresh-store.ts";
import { makeRelayKit, OWNER, type RelayKit, receiver, schedule, sealer } from "../kit/relay-kit.ts";

const SECRET = "theSecret-of-thirty-Character5";

let fresh: FreshStore;
let kit: RelayKit;
let relays: LiveRelays;
let receiving: BareReceiver;
let logged: string[];
let serial = 0;

beforeEach(async () => {
  fresh = await openFreshStore();
  kit = makeRelayKit(fresh);
  logged = [];
  relays = new LiveRelays({ store: fresh.store, sealer, baseUrl: () => "https://relay.example.com" });
  await startReceiver();
});

async function startReceiver(node: { looks?: () => boolean } = {}): Promise<void> {
  receiving = makeBareReceiver({
    ...node,
    store: fresh.store,
    clock: fresh.clock,
    relays,
    sealer,
    log: createLog({ clock: fresh.clock, format: "json", sink: (line) => logged.push(line) }),
    limits: { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1_000_000, unverifiedCallsPerMinute: 1_000_000 },
  });
  await receiving.start();
}

async function makeRelay(name = "orders", environment: "development" | "local" = "development"): Promise<void> {
  await kit.create(receiver(name), { secret: SECRET }, environment);
  relays.invalidate();
}

function send(name = "orders", secret = SECRET): Promise<ReceiverAnswer | string> {
  const body = Buffer.from(JSON.stringify({ id: `call-${++serial}` }));
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = new Headers({ "content-type": "application/json", "x-signature": signature });
  return receiving.receiver
    .receive({ appId: "app_test", name, headers, body, search: "", source: () => "203.0.113.7" })
    .then((answer) => (answer instanceof Refusal ? answer.code : answer));
}

/** Sends this many events at this interval. The last one is now. */
async function sendEvery(everyMs: number, times: number): Promise<void> {
  for (let sent = 0; sent < times; sent++) {
    if (sent > 0) await fresh.clock.advance(everyMs);
    expect(await send()).toMatchObject({ received: true });
  }
}

/** Leaves out alerts about receivers without requests, which streak.test.ts checks. */
async function alerts(): Promise<string[]> {
  const rows = await fresh.store.read((tx) =>
    tx.all<{ code: string; target: string; count: number }>(
      "SELECT code, target, count FROM alert WHERE code <> 'relay_uncalled' AND message NOT LIKE '%received its first request.' ORDER BY id",
    ),
  );
  return rows.map(({ code, target, count }) => `${code} ${target} ${count}`);
}

async function problems(): Promise<string[]> {
  const rows = await fresh.store.read((tx) =>
    tx.all<{ code: string }>("SELECT code FROM problem WHERE cleared_at IS NULL AND code <> 'relay_uncalled' ORDER BY id"),
  );
  return rows.map(({ code }) => code);
}

const message = async (code: string): Promise<string | undefined> =>
  (await fresh.store.read((tx) => tx.get<{ message: string }>("SELECT message FROM alert WHERE code = ?1", code)))?.message;

describe("a relay is silent", () => {
  test("after more than twice its longest gap without an event, with one alert, and recovers with the next event", async () => {
    await makeRelay();
    await sendEvery(12 * HOUR_MS, 15);
    await fresh.clock.advance(24 * HOUR_MS);
    expect(await alerts()).toEqual([]);
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(await alerts()).toEqual(["relay_silent relay:orders 1"]);
    expect(await problems()).toEqual(["relay_silent"]);
    expect(await message("relay_silent")).toMatch(
      /^orders received its last event at 2026-01-22T12:00:00\.000Z, and had no gap longer than 12 hours in the two weeks before\. .+\.$/,
    );
    await fresh.clock.advance(3 * DAY_MS);
    expect(await alerts()).toHaveLength(1);
    await send();
    await receiving.stop();
    expect(await alerts()).toEqual(["relay_silent relay:orders 1", "relay_recovered relay:orders 1"]);
    expect(await problems()).toEqual([]);
  });

  test("with a problem that an owner resolved: it returns neither by time nor after a restart, and the next silence alerts", async () => {
    await makeRelay();
    await sendEvery(12 * HOUR_MS, 15);
    await fresh.clock.advance(25 * HOUR_MS);
    const { id: environmentId } = await fresh.environment("development");
    const open = await fresh.store.read((tx) => listAlerts(tx, environmentId, { limit: 9, after: null }, true));
    const id = open.items.find(({ code }) => code === "relay_silent")?.id ?? "";
    const resolved = { environmentId, id, by: "owner ada@example.com", nowMs: fresh.clock.now() };
    await fresh.store.write("app", (tx) => resolveAlert(tx, resolved));
    await receiving.stop();
    await startReceiver();
    await fresh.clock.advance(2 * DAY_MS);
    expect([await alerts(), await problems()]).toEqual([["relay_silent relay:orders 1"], []]);
    await sendEvery(12 * HOUR_MS, 15);
    await fresh.clock.advance(7 * DAY_MS);
    expect(await problems()).toEqual(["relay_silent"]);
  });

  test("if the one node that runs the shared checks looks for it", async () => {
    await receiving.stop();
    let looks = false;
    await startReceiver({ looks: () => looks });
    await makeRelay();
    await sendEvery(12 * HOUR_MS, 15);
    await fresh.clock.advance(3 * DAY_MS);
    expect(await problems()).toEqual([]);
    looks = true;
    await fresh.clock.advance(10 * MINUTE_MS);
    expect([await alerts(), await problems()]).toEqual([["relay_silent relay:orders 1"], ["relay_silent"]]);
  });

  test("only after six hours, however short its gaps are", async () => {
    await makeRelay();
    await sendEvery(HOUR_MS, 169);
    await sendEvery(MINUTE_MS, 30);
    await fresh.clock.advance(6 * HOUR_MS - MINUTE_MS);
    expect(await alerts()).toEqual([]);
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(await alerts()).toEqual(["relay_silent relay:orders 1"]);
  });

  test("by its longest gap, so that quiet nights count as its rhythm", async () => {
    await makeRelay();
    for (let day = 0; day < 8; day++) {
      await sendEvery(HOUR_MS, 12);
      if (day < 7) await fresh.clock.advance(13 * HOUR_MS);
    }
    await fresh.clock.advance(25 * HOUR_MS);
    expect(await alerts()).toEqual([]);
    await fresh.clock.advance(2 * HOUR_MS);
    expect(await alerts()).toHaveLength(1);
  });

  test("only after three days while its history is shorter than a week, which covers a first night and a first weekend", async () => {
    await makeRelay();
    await sendEvery(HOUR_MS, 12);
    await fresh.clock.advance(3 * DAY_MS);
    expect(await alerts()).toEqual([]);
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(await alerts()).toHaveLength(1);
  });

  const NEVER: [string, () => Promise<void>][] = [
    [
      "never with fewer than eight events, which are no rhythm",
      async () => {
        await makeRelay();
        await sendEvery(HOUR_MS, 7);
      },
    ],
    ["never without any event", () => makeRelay()],
    [
      "never in local development",
      async () => {
        await makeRelay("orders", "local");
        await sendEvery(HOUR_MS, 10);
      },
    ],
    [
      "never as a schedule, which ticks by this service's clock",
      async () => {
        await kit.create(schedule("orders"));
        relays.invalidate();
        const context = await kit.context();
        for (let tick = 20; tick > 0; tick--) await putEvent(context.environment.id, fresh.clock.now() - tick * MINUTE_MS);
      },
    ],
  ];
  test.each(NEVER)("%s", async (_rule, prepare) => {
    await prepare();
    await fresh.clock.advance(10 * DAY_MS);
    expect(await alerts()).toEqual([]);
  });

  test("not within an hour of a start, and with no second alert after it", async () => {
    await makeRelay();
    await sendEvery(HOUR_MS, 10);
    await receiving.stop();
    await fresh.clock.advance(4 * DAY_MS);
    await startReceiver();
    await fresh.clock.advance(55 * MINUTE_MS);
    expect(await alerts()).toEqual([]);
    await fresh.clock.advance(10 * MINUTE_MS);
    expect(await alerts()).toHaveLength(1);
    await receiving.stop();
    await startReceiver();
    await fresh.clock.advance(DAY_MS);
    expect(await alerts()).toHaveLength(1);
    await send();
    await receiving.stop();
    expect(await alerts()).toEqual(["relay_silent relay:orders 1", "relay_recovered relay:orders 1"]);
  });

  test("not because the clock was set ahead", async () => {
    await makeRelay();
    await sendEvery(HOUR_MS, 10);
    fresh.clock.jump(30 * DAY_MS);
    await fresh.clock.advance(30 * MINUTE_MS);
    fresh.clock.jump(-30 * DAY_MS);
    await fresh.clock.advance(30 * MINUTE_MS);
    expect(await alerts()).toEqual([]);
  });

  test("no longer after it was deleted, and a new relay with its name starts without history", async () => {
    await makeRelay();
    await sendEvery(HOUR_MS, 10);
    await fresh.clock.advance(4 * DAY_MS);
    const context = await kit.context();
    await fresh.store.write("app", (tx) => deleteRelay(tx, { ...context, actor: OWNER }, "orders"));
    relays.invalidate();
    await makeRelay();
    await fresh.clock.advance(10 * DAY_MS);
    expect(await alerts()).toHaveLength(1);
    expect(await problems()).toEqual([]);
    await sendEvery(HOUR_MS, 10);
    await fresh.clock.advance(4 * DAY_MS);
    expect(await problems()).toEqual(["relay_silent"]);
  });
});

async function putEvent(environmentId: number, atMs: number, relayName = "orders"): Promise<void> {
  await fresh.store.write("app", async (tx) =>
    insertEvent(tx, {
      ...(await relayOf(tx, environmentId, `rly_${relayName}`, relayName)),
      trigger: "receiver",
      payload: makePayload({ event: {}, mapped: {} }),
      unsigned: false,
      dedupe: null,
      nowMs: atMs,
    }),
  );
}

test("a rhythm is the relay's longest gap of two weeks, whatever is in between", async () => {
  await makeRelay();
  const { environment } = await kit.context();
  const row = await fresh.store.read((tx) => requireRelay(tx, environment.id, "orders"));
  const endMs = fresh.clock.now();
  await fresh.store.write("app", (tx) => tx.run("UPDATE relay SET created_at = 0"));
  const agoHours = [500, 400, 330, 329.5, 329, 300, 299.2, 250, 249.9, 249.8, 200, 199, 150, 90, 89, 10, 9.5, 9, 0];
  for (const ago of agoHours) {
    await putEvent(environment.id, endMs - ago * HOUR_MS);
    await putEvent(environment.id, endMs - ago * HOUR_MS + MINUTE_MS, "another");
  }
  const gaps = agoHours.flatMap((ago, index) => {
    const before = agoHours[index - 1];
    return before === undefined || before > 14 * 24 ? [] : [before - ago];
  });
  expect(await fresh.store.read((tx) => learnRhythm(tx, row, endMs))).toEqual({
    longestGapMs: Math.max(...gaps) * HOUR_MS,
    silentAfterMs: 2 * Math.max(...gaps) * HOUR_MS,
  });
});

describe("a relay that never verified a request", () => {
  const reject = () => send("orders", "aWrongSecret");

  test("is a problem from the first rejected request on, with one alert and its cause, until the first that verifies", async () => {
    await makeRelay();
    expect(await reject()).toBe("bad_signature");
    await fresh.clock.advance(1_500);
    expect(await alerts()).toEqual(["never_verified relay:orders 1"]);
    expect(await message("never_verified")).toStartWith(
      "orders has not verified a request yet and rejects what arrives. The last request was rejected because the signature does not match",
    );
    for (let sent = 0; sent < 20; sent++) {
      await fresh.clock.advance(4 * MINUTE_MS);
      await reject();
    }
    await fresh.clock.advance(1_500);
    expect(await problems()).toEqual(["never_verified"]);
    expect(await alerts()).toHaveLength(1);
    await send();
    await receiving.stop();
    expect(await problems()).toEqual([]);
    expect(await alerts()).toEqual(["never_verified relay:orders 1", "relay_recovered relay:orders 1"]);
  });

  test("survives a restart, and an owner who resolves it is alerted again only by relay_refusing", async () => {
    await makeRelay();
    await reject();
    await receiving.stop();
    await startReceiver();
    await reject();
    await fresh.clock.advance(1_500);
    expect(await alerts()).toHaveLength(1);
    const { id: environmentId } = await fresh.environment("development");
    await fresh.store.write("app", (tx) =>
      clearProblem(tx, { environmentId, code: "never_verified", target: "relay:orders", nowMs: fresh.clock.now() }),
    );
    await fresh.clock.advance(MINUTE_MS);
    expect(await send("orders", "anotherWrongSecret")).toBe("bad_signature");
    await fresh.clock.advance(1_500);
    expect(await problems()).toEqual([]);
    await fresh.clock.advance(5 * MINUTE_MS);
    for (let sent = 0; sent < 5; sent++) {
      await fresh.clock.advance(4 * MINUTE_MS);
      await reject();
    }
    await fresh.clock.advance(1_500);
    expect(await problems()).toEqual(["relay_refusing"]);
  });
});

describe("a relay whose secret is missing", () => {
  const STRIPE = {
    ...receiver("orders"),
    trigger: { kind: "receiver", verify: findSender("stripe")?.verify, map: { event_id: "id", event_type: "type" } },
  };
  const listProblemsOf = () =>
    fresh.store.read((tx) => tx.all<{ code: string; message: string }>("SELECT code, message FROM problem WHERE cleared_at IS NULL"));

  test("is a problem from the save on that names the place of the secret, an alert after a quarter of an hour, and over once it is stored", async () => {
    await kit.create(STRIPE);
    relays.invalidate();
    const [problem, ...others] = await listProblemsOf();
    expect(others).toEqual([]);
    expect(problem?.code).toBe("secret_missing");
    expect(problem?.message).toContain("Find it at Stripe: Open Workbench");
    expect(problem?.message).toContain("relay relays set-secret orders");
    const later = (ms: number) => alertMissingSecrets(fresh.store, fresh.clock.now() + ms);
    await later(14 * MINUTE_MS);
    expect(await alerts()).toEqual([]);
    const { environment } = await kit.context();
    const silent = await fresh.store.write("app", (tx) => saveSettings(tx, environment, { alerts: { secret_missing: false } }, environment.version));
    await later(15 * MINUTE_MS);
    expect(await alerts()).toEqual([]);
    await fresh.store.write("app", (tx) => saveSettings(tx, silent, { alerts: {} }, silent.version));
    await later(15 * MINUTE_MS);
    await later(16 * MINUTE_MS);
    expect(await alerts()).toEqual(["secret_missing relay:orders 1"]);
    await kit.rotate("orders", "whsec_theSecret0of1thirtyCharacters");
    expect(await listProblemsOf()).toEqual([]);
  });
});

describe("a relay rejects every request", () => {
  const refuse = async (times: number, everyMs: number): Promise<void> => {
    for (let sent = 0; sent < times; sent++) {
      if (sent > 0) await fresh.clock.advance(everyMs);
      expect(await send("orders", "aWrongSecret")).toBe("bad_signature");
    }
  };

  /** Makes a relay that verified a request long ago. */
  const makeVerified = async (): Promise<void> => {
    await makeRelay();
    const [relay] = (await relays.current()).relays;
    if (relay === undefined) throw new Error("There is no relay.");
    receiving.health.recordVerified(relay, fresh.clock.now());
  };

  test("when five requests over fifteen minutes were all unverified, with one alert and its cause, until the first that verifies", async () => {
    await makeVerified();
    await refuse(5, 4 * MINUTE_MS);
    await refuse(20, MINUTE_MS);
    await fresh.clock.advance(0);
    expect(await alerts()).toEqual(["relay_refusing relay:orders 1"]);
    expect(await problems()).toEqual(["relay_refusing"]);
    expect(await message("relay_refusing")).toMatch(
      /^orders has rejected every request since 2026-01-15T12:00:00\.000Z\. One was rejected because the signature does not match; .+\.$/,
    );
    expect(await send()).toMatchObject({ received: true });
    await receiving.stop();
    expect(await alerts()).toEqual(["relay_refusing relay:orders 1", "relay_recovered relay:orders 1"]);
    expect(await problems()).toEqual([]);
  });

  test("after verified ones, and a second sentence says that the sender may have a new secret", async () => {
    await makeRelay();
    await send();
    await fresh.clock.advance(HOUR_MS);
    await refuse(5, 4 * MINUTE_MS);
    await fresh.clock.advance(1_000);
    expect(await message("relay_refusing")).toMatch(
      /\. One was rejected because .+\. Requests verified until .+, and nothing was changed here since then: the sender may have a new secret\.$/,
    );
  });

  const NOT_YET: [string, () => Promise<void>][] = [
    ["four requests are too few", () => refuse(4, HOUR_MS)],
    ["fifteen minutes must pass between the first and the last", () => refuse(50, 15_000)],
    [
      "a verified request in between starts the count again",
      async () => {
        await refuse(4, 10 * MINUTE_MS);
        await send();
        await refuse(4, 10 * MINUTE_MS);
      },
    ],
    ["requests more than a day apart do not count together", () => refuse(10, 25 * HOUR_MS)],
  ];
  test.each(NOT_YET)("%s", async (_rule, calls) => {
    await makeVerified();
    await calls();
    await receiving.stop();
    expect(await alerts()).toEqual([]);
  });

  test("and is still known after a restart: there is no second alert, and it recovers", async () => {
    await makeVerified();
    await refuse(5, 4 * MINUTE_MS);
    await receiving.stop();
    await startReceiver();
    await refuse(5, 4 * MINUTE_MS);
    await send();
    await receiving.stop();
    expect(await alerts()).toEqual(["relay_refusing relay:orders 1", "relay_recovered relay:orders 1"]);
  });

  test("also counted from before a restart, and the row shows since when, how many and the last accepted request", async () => {
    const row = () =>
      fresh.store.read((tx) =>
        tx.get("SELECT refused_since AS since, refused_count AS count, refused_at AS at, accepted_at AS accepted, version FROM relay"),
      );
    const touched: string[] = [];
    await makeRelay();
    fresh.store.listen((topics) => touched.push(...topics.keys()));
    await send();
    const startMs = fresh.clock.now();
    await fresh.clock.advance(HOUR_MS);
    await refuse(4, 4 * MINUTE_MS);
    const since = startMs + HOUR_MS;
    await receiving.stop();
    expect(await row()).toEqual({ since, count: 4, at: since + 12 * MINUTE_MS, accepted: startMs, version: 1 });
    await fresh.clock.advance(4 * MINUTE_MS);
    await startReceiver();
    await refuse(1, 0);
    await fresh.clock.advance(1_000);
    expect(await message("relay_refusing")).toStartWith("orders has rejected every request since 2026-01-15T13:00:00.000Z. ");
    expect(await row()).toEqual({ since, count: 5, at: since + 16 * MINUTE_MS, accepted: startMs, version: 1 });
    await send();
    await receiving.stop();
    expect(await row()).toMatchObject({ since: null, count: 0, at: null, accepted: fresh.clock.now() });
    expect(touched).not.toContain("relay");
  });

  const SWITCHES: [string, Record<string, boolean>, string[]][] = [
    ["switched off, neither the problem nor its end is an alert", { relay_refusing: false }, []],
    ["with recovered switched off, only the problem is an alert", { relay_recovered: false }, ["relay_refusing relay:orders 1"]],
  ];
  test.each(SWITCHES)("%s, and the problem is shown either way", async (_rule, switches, told) => {
    await makeVerified();
    const { environment } = await kit.context();
    await fresh.store.write("app", (tx) => saveSettings(tx, environment, { alerts: switches }, environment.version));
    await refuse(5, 4 * MINUTE_MS);
    await fresh.clock.advance(0);
    expect(await problems()).toEqual(["relay_refusing"]);
    await send();
    await receiving.stop();
    expect(await problems()).toEqual([]);
    expect(await alerts()).toEqual(told);
  });
});
