/**
 * Alerts about relays without results. Each kind is tested just below its threshold, at it and after recovery, with few events and thousands, and
 * across a restart.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DAY_MS, DEFAULT_LIMITS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import type { RunOutcome } from "../../src/engine/health/health.ts";
import { listAlerts, resolveAlert } from "../../src/platform/audit/alert.ts";
import { LiveRelays } from "../../src/rules/relay/live-relay.ts";
import { type BareReceiver, makeBareReceiver } from "../kit/bare-receiver.ts";
import { type FreshStore, openFreshStore } from "../kit/fresh-store.ts";
import { makeRelayKit, type RelayKit, receiver, sealer } from "../kit/relay-kit.ts";

const SECRET = "theSecret-of-thirty-Character5";
const SIGNED = "x-signature";

let fresh: FreshStore;
let kit: RelayKit;
let relays: LiveRelays;
let receiving: BareReceiver;
let limits = DEFAULT_LIMITS;
let serial = 0;

beforeEach(async () => {
  fresh = await openFreshStore();
  kit = makeRelayKit(fresh);
  relays = new LiveRelays({ store: fresh.store, sealer, baseUrl: () => "https://relay.example.com" });
  limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1_000_000, eventlessCallsPerMinute: 1_000_000, unverifiedCallsPerMinute: 1_000_000 };
  await start();
});

async function start(): Promise<void> {
  const log = createLog({ clock: fresh.clock, format: "json", sink: () => undefined });
  receiving = makeBareReceiver({
    store: fresh.store,
    clock: fresh.clock,
    relays,
    log,
    limits,
    sealer,
  });
  await receiving.start();
}

async function restart(downMs = 0): Promise<void> {
  await receiving.stop();
  await fresh.clock.advance(downMs);
  await start();
}

async function makeRelay(environment: "development" | "local" = "development"): Promise<void> {
  const definition = receiver("orders", undefined, undefined, { map: { event_id: "id", event_type: "type" }, when: { event_type: "paid" } });
  await kit.create(definition, { secret: SECRET }, environment);
  relays.invalidate();
}

/** Records a verified request, so that the receiver counts as called and verified. */
async function call(): Promise<void> {
  const relay = (await relays.current()).relays[0];
  if (relay === undefined) throw new Error("no relay");
  receiving.health.recordVerified(relay, fresh.clock.now());
}

async function send(type = "paid", headers: Record<string, string> | null = null): Promise<void> {
  const body = Buffer.from(JSON.stringify({ id: `call-${++serial}`, type }));
  const signed = { [SIGNED]: createHmac("sha256", SECRET).update(body).digest("hex") };
  const call = { appId: "app_test", name: "orders", body, search: "", source: () => "203.0.113.7" };
  await receiving.receiver.receive({ ...call, headers: new Headers({ "content-type": "application/json", ...(headers ?? signed) }) });
}

/** Runs `one` the given number of times, the first time now. */
async function every(everyMs: number, times: number, one: () => Promise<void>): Promise<void> {
  for (let done = 0; done < times; done++) {
    if (done > 0) await fresh.clock.advance(everyMs);
    await one();
  }
}

async function end(outcome: RunOutcome["outcome"], code: string | null = null, dead = false): Promise<void> {
  const relay = (await relays.current()).relays[0];
  if (relay === undefined) throw new Error("no relay");
  receiving.health.recordRun({ relay, outcome, code, why: outcome === "failed" ? "the URL answered 500." : null, dead });
}

const ignored = () => send("other");
const nobody = () => end("not_run", "person_not_found");
const fails = () => end("failed", "call_failed");
const capped = async () => {
  // Uses the app's one place in the minute, as another relay would.
  const relay = (await relays.current()).relays[0];
  if (relay !== undefined) await send();
};

async function standing(): Promise<string[]> {
  await fresh.clock.advance(0);
  const sql = "SELECT code FROM problem WHERE cleared_at IS NULL AND code <> 'relay_silent' ORDER BY id";
  return (await fresh.store.read((tx) => tx.all<{ code: string }>(sql))).map(({ code }) => code);
}

async function told(): Promise<string[]> {
  await fresh.clock.advance(0);
  const sql = "SELECT code, message FROM alert WHERE code <> 'relay_silent' ORDER BY id";
  const rows = await fresh.store.read((tx) => tx.all<{ code: string; message: string }>(sql));
  return rows.map(({ code, message }) => `${code}: ${message}`);
}

const LOOK = 6 * MINUTE_MS;

describe("a series without results is a problem at its threshold, and not before", () => {
  const CASES: [string, string | null, () => Promise<void>][] = [
    // `when` ignores every request.
    ["three ignored requests in less than a day", null, () => every(11 * HOUR_MS, 3, ignored)],
    ["three ignored requests over a day", "relay_ignoring", () => every(12 * HOUR_MS, 3, ignored)],
    ["two ignored requests, however far apart", null, () => every(5 * DAY_MS, 2, ignored)],
    ["three ignored requests, and a day passes", "relay_ignoring", () => every(MINUTE_MS, 3, ignored).then(() => fresh.clock.advance(DAY_MS + LOOK))],
    ["two hundred ignored requests in half an hour", null, () => every(9_000, 200, ignored)],
    ["two hundred ignored requests over an hour", "relay_ignoring", () => every(18_100, 200, ignored)],
    ["one in ten requests matches, for days", null, () => every(HOUR_MS, 100, () => send(serial % 10 === 0 ? "paid" : "other"))],
    [
      "a series no longer than twice the longest that ended well",
      null,
      async () => {
        await every(HOUR_MS, 30, ignored);
        await send();
        await every(HOUR_MS, 60, ignored);
      },
    ],
    [
      "a series longer than twice the longest that ended well",
      "relay_ignoring",
      async () => {
        await every(HOUR_MS, 12, ignored);
        await send();
        await every(HOUR_MS, 25, ignored);
      },
    ],
    // No event finds its person.
    [
      "three events that find no person within an hour",
      null,
      () =>
        send()
          .then(() => end("ok"))
          .then(() => every(29 * MINUTE_MS, 3, nobody)),
    ],
    [
      "three events that find no person over an hour",
      "relay_nobody",
      () =>
        send()
          .then(() => end("ok"))
          .then(() => every(30 * MINUTE_MS, 3, nobody)),
    ],
    ["twenty events that find no person in a quarter of an hour", "relay_nobody", () => end("ok").then(() => every(48_000, 20, nobody))],
    [
      "one event that finds no person, of a relay that acted before",
      null,
      () =>
        end("ok")
          .then(nobody)
          .then(() => fresh.clock.advance(2 * DAY_MS)),
    ],
    ["the first event ever finds no person, and a day passes", "relay_nobody", () => nobody().then(() => fresh.clock.advance(DAY_MS + LOOK))],
    ["every second event finds its person", null, () => every(HOUR_MS, 20, async () => (++serial % 2 === 0 ? end("ok") : nobody()))],
    // Every attempt fails.
    [
      "an event's first three attempts, seven minutes",
      null,
      () =>
        fails()
          .then(() => fresh.clock.advance(MINUTE_MS))
          .then(fails)
          .then(() => fresh.clock.advance(5 * MINUTE_MS))
          .then(fails),
    ],
    [
      "an event's first three attempts, and half an hour passes",
      "relay_failing",
      () => every(3 * MINUTE_MS, 3, fails).then(() => fresh.clock.advance(24 * MINUTE_MS + LOOK)),
    ],
    ["a thousand attempts fail in less than half an hour", null, () => every(1_700, 1_000, fails)],
    ["a thousand attempts fail over more than half an hour", "relay_failing", () => every(1_900, 1_000, fails)],
    ["one in a hundred succeeds", null, () => every(10_000, 1_000, async () => (++serial % 100 === 0 ? end("ok") : fails()))],
    ["two failures, and days pass", null, () => every(MINUTE_MS, 2, fails).then(() => fresh.clock.advance(2 * DAY_MS))],
    ["one ref that resolves to nothing, at once", "relay_failing", () => end("failed", "ref_unresolved")],
    ["one mail without a sender domain, at once", "relay_failing", () => end("failed", "sender_domain_required")],
  ];
  test.each(CASES)("%s: %s", async (_when, code, happens) => {
    await makeRelay();
    await call();
    await happens();
    expect(await standing()).toEqual(code === null ? [] : [code]);
    await receiving.stop();
  });
});

describe("a valid event over the cap", () => {
  const CASES: [string, string | null, number, number][] = [
    ["one event", null, 0, 1],
    ["nineteen events in one minute", null, 1_000, 19],
    ["twenty events in one minute", "relay_capped", 1_000, 20],
    ["one event and its repeat in the next minute", "relay_capped", MINUTE_MS, 2],
  ];
  test.each(CASES)("%s: %s", async (_when, code, everyMs, times) => {
    limits = { ...limits, verifiedEventsPerMinute: 1 };
    await restart();
    await makeRelay();
    await fresh.clock.advance(MINUTE_MS);
    for (let done = 0; done < times; done++) {
      if (done > 0) await fresh.clock.advance(everyMs);
      // Uses the app's one event of a new minute.
      if (done === 0 || everyMs >= MINUTE_MS) await send();
      await capped();
    }
    expect(await standing()).toEqual(code === null ? [] : [code]);
    if (code === null) return;
    await fresh.clock.advance(HOUR_MS - LOOK);
    expect(await standing()).toEqual([code]);
    await fresh.clock.advance(2 * LOOK);
    expect(await standing()).toEqual([]);
    expect((await told()).map((one) => one.split(":")[0])).toEqual([code, "relay_recovered"]);
  });
});

describe("a receiver without requests", () => {
  const UNCALLED: [string, string[], () => Promise<void>][] = [
    ["raises a problem after a day", ["relay_uncalled"], () => fresh.clock.advance(DAY_MS + LOOK)],
    ["raises no problem before", [], () => fresh.clock.advance(DAY_MS - MINUTE_MS)],
    ["ignores a scanner's request without a signature", ["relay_uncalled"], () => send("paid", {}).then(() => fresh.clock.advance(DAY_MS + LOOK))],
    [
      "counts a request with a wrong signature",
      ["never_verified"],
      () => send("paid", { [SIGNED]: "wrong" }).then(() => fresh.clock.advance(DAY_MS + LOOK)),
    ],
    [
      "counts a request with a signature under another name",
      ["never_verified"],
      () => send("paid", { "x-other-signature": "abc" }).then(() => fresh.clock.advance(DAY_MS + LOOK)),
    ],
    ["counts a valid request", [], () => send().then(() => fresh.clock.advance(DAY_MS + LOOK))],
  ];
  test.each(UNCALLED)("%s", async (_rule, codes, happens) => {
    await makeRelay();
    await happens();
    expect(await standing()).toEqual(codes);
  });

  test("raises no problem in local development", async () => {
    await makeRelay("local");
    await fresh.clock.advance(3 * DAY_MS);
    expect(await standing()).toEqual([]);
  });

  test("raises one alert, and resolves it at the first request", async () => {
    await makeRelay();
    await fresh.clock.advance(DAY_MS + LOOK);
    await restart(HOUR_MS);
    await fresh.clock.advance(DAY_MS);
    expect(await told()).toEqual([
      expect.stringMatching(
        /^relay_uncalled: orders was made at .+Z and it received no request yet: give its sender the URL https:\/\/relay\.example\.com\/hooks\/app_test\/orders, and test a request with relay send orders\.$/,
      ),
    ]);
    await send();
    expect((await told())[1]).toBe("relay_recovered: orders received its first request.");
    expect(await standing()).toEqual([]);
  });
});

test("a scanner's requests without a signature do not count as rejected requests", async () => {
  await makeRelay();
  await send();
  await every(10 * MINUTE_MS, 20, () => send("paid", {}));
  expect(await standing()).toEqual([]);
  await every(10 * MINUTE_MS, 20, () => send("paid", { "x-hub-signatur": "abc" }));
  expect(await standing()).toEqual(["relay_refusing"]);
});

describe("a problem that was resolved manually just before a stop does not return with the next request", () => {
  const RESOLVED: [string, () => Promise<void>, number, number][] = [
    ["relay_ignoring", ignored, 8 * HOUR_MS, 5],
    ["relay_nobody", nobody, 30 * MINUTE_MS, 4],
    ["relay_failing", fails, 15 * MINUTE_MS, 4],
    ["relay_refusing", () => send("paid", { [SIGNED]: "wrong" }), 5 * MINUTE_MS, 8],
  ];
  test.each(RESOLVED)("%s", async (code, happens, everyMs, times) => {
    await makeRelay();
    await call();
    await every(everyMs, times, happens);
    await fresh.clock.advance(LOOK);
    expect(await standing()).toContain(code);
    const { id: environmentId } = await fresh.environment("development");
    const open = await fresh.store.read((tx) => listAlerts(tx, environmentId, { limit: 9, after: null }, true));
    const id = open.items.find((alert) => alert.code === code)?.id ?? "";
    await fresh.store.write("app", (tx) => resolveAlert(tx, { environmentId, id, by: "owner", nowMs: fresh.clock.now() }));
    await restart();
    await happens();
    await fresh.clock.advance(LOOK);
    expect(await standing()).not.toContain(code);
    await every(everyMs, 3 * times, happens);
    await fresh.clock.advance(LOOK);
    expect(await standing()).toContain(code);
  });
});

describe("each problem alerts once with its cause, survives a restart, and resolves at the first success", () => {
  const STORIES: [string, () => Promise<void>, () => Promise<void>, string, string][] = [
    [
      "relay_ignoring",
      ignored,
      () => send(),
      `relay_ignoring: orders has ignored every request since 2026-01-15T12:00:00.000Z, the last one because when.event_type must be "paid" and the request has "other".`,
      "relay_recovered: orders acts on requests again: one matched its when.",
    ],
    [
      "relay_nobody",
      nobody,
      () => end("ok"),
      "relay_nobody: No event of orders has found its person since 2026-01-15T12:00:00.000Z, so no action ran.",
      "relay_recovered: orders acts again: an event found its person.",
    ],
    [
      "relay_failing",
      fails,
      () => end("ok"),
      "relay_failing: Every attempt of an event of orders has failed since 2026-01-15T12:00:00.000Z. Last failure: the URL answered 500.",
      "relay_recovered: orders acts again: every action of an event succeeded.",
    ],
  ];
  test.each(STORIES)("%s", async (code, bad, good, message, over) => {
    await makeRelay();
    await call();
    await every(12 * HOUR_MS, 2, bad);
    await restart(12 * HOUR_MS);
    expect(await standing()).toEqual([]);
    await bad();
    expect(await told()).toEqual([message]);
    await every(12 * HOUR_MS, 3, bad);
    await restart();
    expect(await told()).toEqual([message]);
    expect(await standing()).toEqual([code]);
    await good();
    expect(await told()).toEqual([message, over]);
    expect(await standing()).toEqual([]);
    await receiving.stop();
  });

  test("a failure that waiting cannot fix raises the problem without a second alert, and its end is reported", async () => {
    await makeRelay();
    await end("failed", "sender_domain_required");
    expect([await standing(), await told()]).toEqual([["relay_failing"], []]);
    await end("ok");
    expect(await told()).toEqual(["relay_recovered: orders acts again: every action of an event succeeded."]);
  });

  test("attempts that made events dead raise the problem without another alert", async () => {
    await makeRelay();
    await end("failed", "entitlement_unknown", true);
    await every(10 * MINUTE_MS, 4, fails);
    await fresh.clock.advance(LOOK);
    expect([await standing(), await told()]).toEqual([["relay_failing"], []]);
  });

  test("a time in which nothing ran does not count toward a series", async () => {
    await makeRelay();
    await every(3 * MINUTE_MS, 3, fails);
    await restart(10 * DAY_MS);
    await fresh.clock.advance(20 * MINUTE_MS);
    expect(await standing()).toEqual([]);
    await fresh.clock.advance(10 * MINUTE_MS + LOOK);
    expect(await standing()).toEqual(["relay_failing"]);
  });

  test("saving the definition starts the count again", async () => {
    await makeRelay();
    await every(11 * HOUR_MS, 3, ignored);
    const definition = receiver("orders", undefined, undefined, { map: { event_id: "id", event_type: "type" }, when: { event_type: "due" } });
    await kit.update("orders", definition, 1);
    relays.invalidate();
    await every(11 * HOUR_MS, 2, ignored);
    expect(await standing()).toEqual([]);
  });
});
