/**
 * Tests that no rejected request and no failed run is silent. A server logs a warning, and local development prints a line. Both name the cause, have
 * a rate limit, and quote no unverified request.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningOptions, type RunningService, startRunningService } from "../kit/running-service.ts";
import { settle } from "../kit/virtual-clock.ts";

const OTHER_SECRET = "anotherSecretOfTwentyFour1";
const BARE = { headers: { "content-type": "application/json" }, body: '{"private":"of nobody known"}' };
const SCHEDULE = { trigger: { kind: "schedule", every: "1d" } };

let running: RunningService;

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

async function start(mode: "server" | "local", options: RunningOptions = {}): Promise<void> {
  running = await startRunningService({
    environments: mode === "local" ? ["local"] : ["development", "production"],
    ...options,
    config: { mode, ...options.config },
  });
}

const environment = () => (running.keys.local === undefined ? "development" : "local");

async function save(definition: Record<string, unknown>, secret: string | null = HOOK_SECRET): Promise<void> {
  const made = await running.api("POST", "/relays", { definition, secret }, environment());
  expect([made.status, made.body.code]).toEqual([201, undefined]);
}

async function makeCollection(): Promise<void> {
  const made = await running.api(
    "POST",
    "/collections",
    { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } },
    environment(),
  );
  expect(made.status).toBe(201);
}

/** Flushes all pending reports. */
async function tell(): Promise<void> {
  await running.clock.advance(1_000);
  await running.drain();
  await settle();
}

// biome-ignore lint/suspicious/noExplicitAny: a line of the log in any shape
const warned = (): any[] => running.logged.map((line) => JSON.parse(line)).filter(({ level }) => level === "warn");

interface Row {
  rule: string;
  definition?: Record<string, unknown>;
  /** Runs before the request. */
  change?: () => Promise<unknown>;
  call: () => Promise<unknown>;
  terminal: (string | RegExp)[];
  log: Record<string, unknown>[];
}

const EVENT = /evt_[0-9a-z]+/;
const where = { app: "app_test", environment: "development", relay: "orders" };

const rows: Row[] = [
  {
    rule: "a rejected request, with the cause",
    call: () => running.hook("orders", BARE),
    terminal: ["CALL  · orders · 401 bad_signature · header x-signature is missing"],
    log: [{ message: "a request created no event", ...where, code: "bad_signature", cause: "header x-signature is missing", calls: 1 }],
  },
  {
    rule: "a request that when ignores",
    definition: { when: { event_type: "order.paid" } },
    call: () => running.hook("orders", signedCall({ id: "a", type: "order.lost" })),
    terminal: ['CALL  · orders · 200 ignored · when.event_type must be "order.paid" and the request has "order.lost"'],
    log: [
      {
        message: "a request created no event",
        ...where,
        code: "ignored",
        cause: 'when.event_type must be "order.paid" and the request has "order.lost"',
      },
    ],
  },
  {
    rule: "a duplicate, with the first event",
    change: () => running.hook("orders", signedCall({ id: "a", amount: 2 })),
    call: () => running.hook("orders", signedCall({ id: "a", amount: 1 })),
    terminal: [
      /^RELAY · orders · receiver · 1 action · ok$/,
      /^CALL {2}· orders · 200 duplicate · an event with the id "a" was received before, with another body: is event_id really the event's own id\? · evt_[0-9a-z]+$/,
    ],
    log: [{ message: "a request created no event", ...where, code: "duplicate", event: expect.stringMatching(EVENT) }],
  },
  {
    rule: "an event that waits for a paused relay",
    change: () => running.api("POST", "/relays/orders/pause", {}, environment()),
    call: () => running.hook("orders", signedCall({ id: "a" })),
    terminal: [/^CALL {2}· orders · 200 waiting · its relay is paused: it runs when you resume it \(relay relays resume orders\) · evt_[0-9a-z]+$/],
    log: [{ message: "an event waits", ...where, code: "waiting", cause: expect.stringContaining("paused") }],
  },
  {
    rule: "an event that waits for a hold",
    async change() {
      const { body } = await running.api("GET", "/settings", undefined, environment());
      const put = await running.api("PUT", "/settings", { version: body.settings.version, held: true }, environment());
      expect(put.status).toBe(200);
    },
    call: () => running.hook("orders", signedCall({ id: "a" })),
    terminal: [/^CALL {2}· orders · 200 waiting · its environment is on hold: .*relay settings set held off\) · evt_[0-9a-z]+$/],
    log: [{ message: "an event waits", ...where, code: "waiting", cause: expect.stringContaining("on hold") }],
  },
  {
    rule: "a request to a name similar to a receiver's",
    call: () => running.hook("order", BARE),
    terminal: ["CALL  · order · 404 unknown_receiver · no receiver of the app has this name; did the sender mean orders?"],
    log: [
      {
        message: "a request named no receiver",
        app: "app_test",
        name: "order",
        code: "unknown_receiver",
        cause: "no receiver of the app has this name; did the sender mean orders?",
      },
    ],
  },
  {
    rule: "a request to an impossible name, by its length and fingerprint",
    call: () => running.hook("%1b%5b31m%E2%80%AEx@example.com", BARE),
    terminal: [/^CALL {2}· 19 characters, hmac:[0-9a-f]{16} · 404 unknown_receiver · no receiver of the app has this name, which may be a secret/],
    log: [{ message: "a request named no receiver", name: expect.stringMatching(/^19 characters, hmac:[0-9a-f]{16}$/) }],
  },
  {
    rule: "a request to a relay with another trigger",
    change: () => save({ name: "nightly", ...SCHEDULE, actions: [{ type: "write_record", collection: "orders", data: { order: "x" } }] }, null),
    call: () => running.hook("nightly", BARE),
    terminal: [
      /^TICK {2}· nightly · The next tick is at /,
      "CALL  · nightly · 404 unknown_receiver · the relay of this name waits for a clock and receives no requests",
    ],
    log: [{ message: "a request named no receiver", name: "nightly", cause: "the relay of this name waits for a clock and receives no requests" }],
  },
  {
    rule: "a request to a deleted relay",
    change: () => running.api("DELETE", "/relays/orders", undefined, environment()),
    call: () => running.hook("orders", BARE),
    terminal: ["CALL  · orders · 404 unknown_receiver · the relay was deleted at 2026-01-15T12:00:00.000Z"],
    log: [{ message: "a request named no receiver", name: "orders", cause: "the relay was deleted at 2026-01-15T12:00:00.000Z" }],
  },
  {
    rule: "a run with a retry: code, sentence, time, event and command",
    definition: { actions: [{ type: "call_url", url: "https://gone.example.com/x" }] },
    call: () => running.hook("orders", signedCall({ id: "a" })),
    terminal: [
      "RELAY · orders · receiver · 1 action · failed",
      /^ {8}unresolvable · .+ · retry at 12:01:0\d UTC, in 1 minute · relay events show evt_[0-9a-z]+$/,
    ],
    log: [
      {
        message: "a run failed and will be retried",
        ...where,
        code: "unresolvable",
        why: expect.any(String),
        event: expect.stringMatching(EVENT),
        nextAttemptAt: expect.stringMatching(/^2026-01-15T12:01:0/),
      },
    ],
  },
  {
    rule: "a dead event",
    definition: { actions: [{ type: "write_record", collection: "ghosts", data: { id: "1" } }] },
    call: () => running.hook("orders", signedCall({ id: "a" })),
    terminal: [
      "RELAY · orders · receiver · 1 action · failed",
      /^ {8}collection_missing · .*ghosts.* · dead, not retried automatically · relay events show evt_[0-9a-z]+$/,
    ],
    log: [{ message: "an event is dead", ...where, code: "collection_missing", event: expect.stringMatching(EVENT) }],
  },
  {
    rule: "an event that found no person",
    definition: { map: { person_email: "email" }, actions: [{ type: "email_person", subject: "a", text: "b" }] },
    call: () => running.hook("orders", signedCall({ id: "a" })),
    terminal: [
      "RELAY · orders · receiver · 1 action · failed",
      /^ {8}person_not_found · person_email resolves to nothing in this event, so no action ran · not retried · relay events show evt_[0-9a-z]+$/,
    ],
    log: [{ message: "an event ended without running", ...where, code: "person_not_found" }],
  },
];

const NIGHTLY = {
  name: "nightly",
  trigger: { kind: "schedule", every: "1d", at: "09:00" },
  actions: [{ type: "write_record", collection: "orders", data: { order: "x" } }],
};
const MID_PERIOD =
  "The next tick is at 2026-01-16T09:00:00.000Z. The schedule counts from 2026-01-15T12:00:00.000Z, when the relay was created, changed or resumed or a hold of its environment ended. Periods that began earlier do not tick";
const PAUSED = /The relay is paused, so no tick is recorded/;

describe("a schedule's next tick is reported on creation and on pause", () => {
  test("in the terminal of local development", async () => {
    await start("local");
    await makeCollection();
    await save(NIGHTLY, null);
    await settle();
    await running.api("POST", "/relays/nightly/pause", {}, "local");
    await settle();
    expect(running.lines).toEqual([`TICK  · nightly · ${MID_PERIOD}`, expect.stringMatching(PAUSED)]);
    await running.restart();
    await settle();
    expect(running.lines.slice(2)).toEqual([expect.stringMatching(PAUSED)]);
  });

  test("in a server's log, but not again at its start", async () => {
    await start("server");
    await makeCollection();
    await save(NIGHTLY, null);
    await settle();
    await running.restart();
    await settle();
    const told = running.logged.map((line) => JSON.parse(line)).filter(({ message }) => message === "a schedule waits for its tick");
    expect(told).toMatchObject([{ level: "info", app: "app_test", environment: "development", relay: "nightly", why: MID_PERIOD }]);
  });
});

describe("the terminal of local development reports", () => {
  test.each(rows.map((row) => [row.rule, row] as const))("%s", async (_rule, { definition, change, call, terminal }) => {
    await start("local", { ports: {} });
    await makeCollection();
    await save(receiverDefinition(definition ?? {}));
    await change?.();
    await tell();
    await call();
    await tell();
    expect(running.lines).toHaveLength(terminal.length);
    for (const [at, line] of terminal.entries()) {
      if (typeof line === "string") expect(running.lines[at]).toBe(line);
      else expect(running.lines[at]).toMatch(line);
    }
  });
});

describe("a server's log warns of", () => {
  test.each(rows.map((row) => [row.rule, row] as const))("%s", async (_rule, { definition, change, call, log }) => {
    await start("server");
    await makeCollection();
    await save(receiverDefinition(definition ?? {}));
    await change?.();
    await tell();
    await call();
    await tell();
    expect(warned()).toEqual(log.map((line) => expect.objectContaining(line)));
    expect(running.lines.every((line) => line.startsWith("RELAY · "))).toBe(true);
  });
});

describe("a flood", () => {
  test("logs one line per minute and cause, with its count", async () => {
    await start("server", { config: { trustedProxies: ["127.0.0.1"] } });
    await makeOrders(running);
    await saveRelay(running, receiverDefinition({}));
    for (let from = 0; from < 90; from++) {
      const headers = { ...BARE.headers, "x-forwarded-for": `198.51.100.${from}` };
      await running.hook("orders", { ...BARE, headers });
      await running.hook(`made-up-${from}`, { ...BARE, headers });
    }
    await tell();
    const first = warned();
    expect(first.map(({ message }) => message)).toEqual(["a request created no event", "a request named no receiver"]);
    await running.clock.advance(60_000);
    const later = warned().slice(first.length);
    expect(later.every(({ message }) => / more in the last minute$/.test(message))).toBe(true);
    const told = [...first.filter(({ calls }) => calls > 0), ...later].filter(({ relay }) => relay === "orders");
    const more = later.filter(({ relay }) => relay === "orders").map(({ message }) => Number(/(\d+) more/.exec(message)?.[1] ?? 0));
    expect((told[0]?.calls ?? 0) + more.reduce((sum, count) => sum + count, 0)).toBe(90);
  });

  test("counts causes that differ only in a number as one cause", async () => {
    await start("server");
    await makeOrders(running);
    const verify = {
      scheme: "signature",
      header: "x-signature",
      signatureKey: "v1",
      timestampKey: "t",
      signedPayload: "{timestamp}.{body}",
      encoding: "hex",
    };
    await saveRelay(running, receiverDefinition({ verify }));
    for (let at = 0; at < 20; at++) await running.hook("orders", { headers: { "x-signature": `t=${1768470000 + at},v1=00` }, body: "{}" });
    await tell();
    expect(warned().filter(({ code }) => code === "bad_signature")).toEqual([expect.objectContaining({ calls: 20 })]);
  });

  test("prints a limited number of lines per minute in the terminal, and counts the rest", async () => {
    await start("local", { config: { trustedProxies: ["127.0.0.1"] } });
    await makeCollection();
    await save(receiverDefinition({}));
    for (let from = 0; from < 100; from++) {
      const headers = { ...BARE.headers, "x-forwarded-for": `198.51.100.${from}` };
      await running.hook(`made-up-${from}`, { ...BARE, headers });
    }
    await tell();
    expect(running.lines).toHaveLength(60);
    await running.clock.advance(60_000);
    expect(running.lines.at(-1)).toBe("CALL  · 40 more requests created no event in the last minute · relay requests list");
  });
});

test("no report contains a secret or a word of an unverified request", async () => {
  await start("server");
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  await running.hook("orders", {
    headers: { "x-signature": "c0ffee-of-a-stranger", authorization: "Bearer of-a-stranger" },
    body: '{"of":"a-stranger"}',
  });
  await running.hook("orders", signedCall({ of: "a-stranger" }, OTHER_SECRET));
  await tell();
  expect(warned().length).toBeGreaterThan(0);
  expect(running.logged.join("\n")).not.toMatch(/a-stranger/);
  expect(running.logged.join("\n")).not.toContain(HOOK_SECRET);
});

describe("a request that a relay's when ignores", () => {
  const filter = receiverDefinition({ when: { event_type: "order.paid" } });
  const ignore = (id: number) => running.hook("orders", signedCall({ id: `i${id}`, type: "order.lost" }));
  // biome-ignore lint/suspicious/noExplicitAny: a line of the log in any shape
  const told = (): any[] => running.logged.map((line) => JSON.parse(line)).filter(({ code }) => code === "ignored");

  /** Sends a request every 30 seconds for two hours. */
  async function busy(): Promise<void> {
    for (let sent = 0; sent < 240; sent++) {
      await ignore(sent);
      await running.clock.leap(30_000);
    }
  }

  test("logs one info line per hour with a count if the relay acts on other requests", async () => {
    await start("server");
    await makeCollection();
    await save(filter);
    await running.hook("orders", signedCall({ id: "a", type: "order.paid" }));
    await tell();
    await busy();
    expect(told().map(({ level, message }) => [level, message])).toEqual([
      ["info", "a request created no event"],
      ["info", expect.stringMatching(/^a request created no event: 1(19|20) more in the last hour$/)],
    ]);
    expect(warned().filter(({ code }) => code === "ignored")).toEqual([]);
  });

  test("logs one warning, and not one per minute, if the relay never acted", async () => {
    await start("server");
    await makeCollection();
    await save(filter);
    await busy();
    expect(told().map(({ level }) => level)).toEqual(["warn", "warn"]);
    expect(told()[0]).toMatchObject({ cause: 'when.event_type must be "order.paid" and the request has "order.lost"' });
  });
});
