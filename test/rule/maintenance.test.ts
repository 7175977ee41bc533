/** Retention: how long the service keeps each kind of row, and that its sweeps delay no other work. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { findDuplicate, keyOfEventId } from "../../src/engine/event/insert.ts";
import { retireEvents } from "../../src/engine/maintenance/retention.ts";
import { setHold } from "../../src/platform/account/environment.ts";
import { testOfFile } from "../kit/chosen-store.ts";
import { type MaintainedStore, openMaintainedStore } from "../kit/maintained-store.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { startRunningService } from "../kit/running-service.ts";
import { START_MS, settle } from "../kit/virtual-clock.ts";

describe("an event", () => {
  test.each([
    ["done", 29 * DAY_MS, 1],
    ["done", 31 * DAY_MS, 0],
    ["failed", 31 * DAY_MS, 0],
    ["dead", 31 * DAY_MS, 0],
    ["running", 31 * DAY_MS, 1],
    ["queued", 31 * DAY_MS, 1],
  ])("of an active relay, in state %s and %p ms old, leaves %p", async (state, ageMs, remain) => {
    await using cared = await openMaintainedStore();
    await cared.addRelay("shop", "active");
    await cared.put({ atMs: cared.clock.now() - ageMs, state });
    await cared.round();
    expect(await cared.count("event")).toBe(remain);
    expect(await cared.count("alert")).toBe(0);
  });

  test("is deleted with its runs, effects and dedupe key, and no rows of other events", async () => {
    await using cared = await openMaintainedStore();
    const nowMs = cared.clock.now();
    const old = await cared.put({ atMs: nowMs - 31 * DAY_MS, key: "old" });
    const young = await cared.put({ atMs: nowMs - DAY_MS, key: "young" });
    await cared.round();
    const rows = await cared.store.write("app", async (tx) => ({
      events: await tx.all("SELECT seq FROM event"),
      runs: await tx.all("SELECT event_seq AS seq FROM run"),
      effects: await tx.all("SELECT event_seq AS seq FROM effect"),
      old: await findDuplicate(tx, keyOfEventId(cared.environmentId, "shop", "old")),
      young: await findDuplicate(tx, keyOfEventId(cared.environmentId, "shop", "young")),
    }));
    const only = [{ seq: young }];
    expect(rows).toEqual({
      events: only,
      runs: only,
      effects: only,
      old: null,
      young: expect.objectContaining({ seq: young }),
    });
    expect(old).not.toBe(young);
  });

  test("of a relay that was deleted is deleted too", async () => {
    await using cared = await openMaintainedStore();
    await cared.put({ atMs: cared.clock.now() - 31 * DAY_MS });
    await cared.round();
    expect(await cared.count("event")).toBe(0);
  });

  test("that must stay does not protect the events after it", async () => {
    await using cared = await openMaintainedStore();
    await cared.addRelay("shop", "active");
    const atMs = cared.clock.now() - 31 * DAY_MS;
    for (let i = 0; i < 130; i++) await cared.put({ atMs: atMs - DAY_MS, state: "queued" });
    for (let i = 0; i < 250; i++) await cared.put({ atMs });
    await cared.round();
    expect(await cared.count("event WHERE state = 'queued'")).toBe(130);
    expect(await cared.count("event")).toBe(130);
  });

  test("dated ahead by a wrong clock does not protect the events after it", async () => {
    await using cared = await openMaintainedStore();
    const nowMs = cared.clock.now();
    for (let i = 0; i < 150; i++) await cared.put({ atMs: nowMs + 1_000 * DAY_MS });
    await cared.put({ atMs: nowMs - 31 * DAY_MS });
    await cared.round();
    expect(await cared.count("event")).toBe(150);
  });
});

test("old events are deleted in batches limited by bytes, each of at least one event", async () => {
  await using cared = await openMaintainedStore();
  const atMs = cared.clock.now() - 40 * DAY_MS;
  for (const [kilobytes, times] of [
    [600, 2],
    [30, 30],
  ] as const)
    for (let time = 0; time < times; time++) await cared.put({ atMs: atMs - kilobytes * 1_000 + time, text: "x".repeat(kilobytes * 1024) });
  const log = createLog({ clock: cared.clock, format: "json", sink: () => undefined });
  const left: number[] = [];
  for (let cursor: number | null = 0; cursor !== null; ) {
    const from: number = cursor;
    cursor = await cared.store.write("app", (tx) => retireEvents(tx, from, cared.clock.now(), log));
    left.push(await cared.count("event"));
  }
  expect(left).toEqual([31, 30, 13, 0]);
});

describe("events that waited for 30 days", () => {
  test.each(["held", "paused"] as const)("are dropped and logged, and the owner gets an alert (%s)", async (why) => {
    await using cared = await openMaintainedStore();
    await cared.addRelay("shop", why === "paused" ? "paused" : "active");
    const { environmentId, clock } = cared;
    if (why === "held") await cared.store.write("app", (tx) => setHold(tx, environmentId, true, { newestArrival: 0, nowMs: clock.now() }));
    for (let i = 0; i < 230; i++) await cared.put({ atMs: clock.now() - 31 * DAY_MS, state: "queued" });
    await cared.put({ atMs: clock.now() - 29 * DAY_MS, state: "queued" });
    await cared.round();
    expect(await cared.count("event")).toBe(1);
    const alerts = await cared.store.read((tx) => tx.all("SELECT code, target, message, count FROM alert WHERE code = 'events_dropped'"));
    expect(alerts).toEqual([
      {
        code: "events_dropped",
        target: "relay:shop",
        message: `Events of shop that waited for more than 30 days were dropped and do not run: ${
          why === "held"
            ? "the environment is on hold, so release it (relay settings set held off) to run what still waits."
            : "the relay is paused, so resume it (relay relays resume shop) to run what still waits."
        }`,
        count: 230,
      },
    ]);
    expect(cared.logged.filter((line) => line.includes("dropped after 30 days"))).toHaveLength(3);
  });

  test("are only dropped and logged if the owner switched events_dropped off", async () => {
    await using cared = await openMaintainedStore();
    const { environmentId, clock } = cared;
    await cared.addRelay("shop", "paused");
    await cared.store.write("dashboard", (tx) =>
      tx.run("UPDATE environment SET settings = ?2 WHERE id = ?1", environmentId, '{"alerts":{"events_dropped":false}}'),
    );
    await cared.put({ atMs: clock.now() - 31 * DAY_MS, state: "queued" });
    await cared.round();
    expect([await cared.count("event"), await cared.count("alert")]).toEqual([0, 0]);
    expect(cared.logged.filter((line) => line.includes("dropped after 30 days"))).toHaveLength(1);
  });
});

describe("other rows", () => {
  const rows: [string, string, (cared: MaintainedStore, atMs: number) => [string, ...(string | number)[]], number][] = [
    ["a signature that can be used once, until it expires", "signature_memory", signature, 0],
    ["a session until it ends", "session", session, 0],
    ["a one-time link until it ends", "signin_link", link, 0],
    ["an audit row of a run for 90 days", "audit", (cared, at) => audit(cared, at, "evt_1"), 90],
    ["an audit row of a change for 400 days", "audit", (cared, at) => audit(cared, at, null), 400],
    ["a mail for 90 days", "email", email, 90],
    ["an alert for 400 days", "alert", alert, 400],
    ["a problem that was cleared for 400 days", "problem", problem, 400],
  ];
  test.each(rows)("%s stays", async (_rule, table, make, keptDays) => {
    await using cared = await openMaintainedStore();
    await cared.store.write("app", (tx) => tx.run("INSERT INTO owner (id, email, created_at) VALUES ('own_1', 'a@example.com', 0)"));
    const nowMs = cared.clock.now();
    const before = await cared.count(table);
    for (const atMs of [nowMs - keptDays * DAY_MS - DAY_MS, nowMs - keptDays * DAY_MS + DAY_MS]) {
      const [sql, ...values] = make(cared, atMs);
      await cared.store.write("app", (tx) => tx.run(sql, ...values));
    }
    expect(await cared.count(table)).toBe(before + 2);
    await cared.round();
    expect(await cared.count(table)).toBe(before + 1);
  });

  test("an open problem, and a signature that lives as long as its secret, are never deleted", async () => {
    await using cared = await openMaintainedStore();
    const { environmentId } = cared;
    await cared.store.write("app", async (tx) => {
      await tx.run(
        "INSERT INTO problem (id, environment_id, code, target, message, raised_at) VALUES ('prb_1', ?1, 'c', 't', 'm', 0)",
        environmentId,
      );
      await tx.run(
        "INSERT INTO signature_memory (environment_id, relay_name, signed_text_hash, body_hash) VALUES (?1, 'shop', x'01', x'02')",
        environmentId,
      );
    });
    await cared.round();
    expect([await cared.count("problem"), await cared.count("signature_memory")]).toEqual([1, 1]);
  });

  test("old audit rows of changes do not protect the run rows behind them", async () => {
    await using cared = await openMaintainedStore();
    const atMs = cared.clock.now() - 100 * DAY_MS;
    await cared.store.write("app", async (tx) => {
      for (let i = 0; i < 600; i++) await tx.run(...audit(cared, atMs, null));
      for (let i = 0; i < 600; i++) await tx.run(...audit(cared, atMs, "evt_1"));
    });
    await cared.round();
    expect(await cared.count("audit WHERE event_id IS NOT NULL")).toBe(0);
    expect(await cared.count(`audit WHERE at = ${atMs}`)).toBe(600);
  });
});

describe("a round", () => {
  test("lets other writes run between its small transactions", async () => {
    await using cared = await openMaintainedStore();
    for (let i = 0; i < 1_000; i++) await cared.put({ atMs: cared.clock.now() - 31 * DAY_MS });
    await cared.clock.advance(60_000);
    expect(await cared.count("event")).toBe(900);
    await cared.put({ atMs: cared.clock.now() });
    expect(await cared.count("event")).toBe(901);
    await cared.clock.advance(10);
    expect(await cared.count("event")).toBe(801);
    await cared.round();
    expect(await cared.count("event")).toBe(1);
  });

  test("stops when asked, and continues after a restart", async () => {
    await using cared = await openMaintainedStore();
    for (let i = 0; i < 300; i++) await cared.put({ atMs: cared.clock.now() - 31 * DAY_MS });
    await cared.clock.advance(60_000);
    await cared.caretakers.stop();
    await cared.clock.advance(5 * HOUR_MS);
    expect(await cared.count("event")).toBe(200);
    cared.caretakers.start();
    await cared.clock.advance(61_000);
    expect(await cared.count("event")).toBe(0);
  });

  test("continues with the other jobs when one fails, and logs the failure", async () => {
    await using cared = await openMaintainedStore();
    const atMs = cared.clock.now() - 100 * DAY_MS;
    await cared.put({ atMs });
    await cared.store.write("app", (tx) => tx.run(...audit(cared, atMs, "evt_1")));
    await cared.direct.breakWrites("DELETE", "run", "no");
    await cared.round();
    expect([await cared.count("event"), await cared.count("audit WHERE event_id IS NOT NULL")]).toEqual([1, 0]);
    expect(cared.logged.join()).toContain("a maintenance job failed");
  });

  test("deletes nothing when the clock was just set ahead, and deletes everything old an hour later", async () => {
    await using cared = await openMaintainedStore();
    await cared.put({ atMs: cared.clock.now() });
    await cared.round();
    cared.clock.jump(400 * DAY_MS);
    await cared.clock.advance(HOUR_MS);
    expect(await cared.count("event")).toBe(1);
    expect(cared.logged.join()).toContain("the clock was set");
    await cared.clock.advance(HOUR_MS);
    expect(await cared.count("event")).toBe(0);
  });

  test.each([
    ["a clock that is a day or more after the newest event delays the sweep by an hour", DAY_MS, 1],
    ["a clock that continues from the end of the last process does not", DAY_MS - 1, 0],
    ["a clock that is before the newest event does not", -DAY_MS, 0],
  ])("at a start, %s", async (_, quietMs, remain) => {
    await using cared = await openMaintainedStore({ newestMs: START_MS - quietMs });
    await cared.put({ atMs: cared.clock.now() - 31 * DAY_MS });
    await cared.clock.advance(MINUTE_MS + 1_000);
    expect(await cared.count("event")).toBe(remain);
    await cared.clock.advance(HOUR_MS);
    expect(await cared.count("event")).toBe(0);
  });
});

test.each([1, 2])("a service that starts %d times while its clock is two months ahead keeps its events and detects a repeat", async (starts) => {
  await using running = await startRunningService();
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  expect((await running.hook("orders", signedCall({ id: "1" }))).body).not.toHaveProperty("duplicate");
  running.clock.jump(60 * DAY_MS);
  for (let start = 1; start <= starts; start++) {
    await running.restart();
    // Requests that arrive now are stored with the wrong clock's time.
    await running.hook("orders", signedCall({ id: `start ${start}` }));
    await running.clock.advance(5 * MINUTE_MS);
    await settle();
  }
  running.clock.jump(-60 * DAY_MS);
  await running.restart();
  expect((await running.hook("orders", signedCall({ id: "1" }))).body).toMatchObject({ duplicate: true });
});

describe("the file", () => {
  testOfFile("gives back the room of deleted rows, and its log is emptied", async () => {
    await using cared = await openMaintainedStore();
    const text = "x".repeat(4_000);
    for (let i = 0; i < 1_500; i++) await cared.put({ atMs: cared.clock.now() - 31 * DAY_MS, text });
    expect(cared.size().database + cared.size().log).toBeGreaterThan(6_000_000);
    await cared.round();
    expect(cared.size()).toEqual({ database: expect.any(Number), log: 0 });
    expect(cared.size().database).toBeLessThan(2_000_000);
  });

  testOfFile("is looked after while another process reads; the log waits for the next time", async () => {
    await using cared = await openMaintainedStore();
    await cared.put({ atMs: cared.clock.now() });
    const other = new Database(cared.file, { readonly: true });
    other.exec("BEGIN");
    other.query("SELECT count(*) FROM event").get();
    await cared.put({ atMs: cared.clock.now() });
    expect(await cared.store.vacuumStep()).toBe(false);
    expect(cared.size().log).toBeGreaterThan(0);
    other.exec("COMMIT");
    other.close();
    await cared.put({ atMs: cared.clock.now() });
    await cared.store.vacuumStep();
    expect([cared.size().log, await cared.count("event")]).toEqual([0, 3]);
  });

  test("is maintained while this process reads and writes", async () => {
    await using cared = await openMaintainedStore();
    const nowMs = cared.clock.now();
    const work = Array.from({ length: 40 }, (_, i) =>
      i % 3 === 0 ? cared.store.vacuumStep() : i % 3 === 1 ? cared.put({ atMs: nowMs }) : cared.count("event"),
    );
    await Promise.all(work);
    await settle();
    expect(await cared.count("event")).toBe(13);
  });
});

function signature({ environmentId }: MaintainedStore, atMs: number): [string, ...(string | number)[]] {
  return [
    `INSERT INTO signature_memory (environment_id, relay_name, signed_text_hash, body_hash, until)
     VALUES (?1, 'shop', CAST(?2 AS BLOB), x'02', ?2)`,
    environmentId,
    atMs,
  ];
}

function session(_cared: MaintainedStore, atMs: number): [string, ...(string | number)[]] {
  return ["INSERT INTO session (token_hash, id, owner_id, created_at, expires_at) VALUES (CAST(?1 AS BLOB), 'ses_' || ?1, 'own_1', 0, ?1)", atMs];
}

function link(_cared: MaintainedStore, atMs: number): [string, ...(string | number)[]] {
  return ["INSERT INTO signin_link (token_hash, kind, expires_at) VALUES (CAST(?1 AS BLOB), 'local', ?1)", atMs];
}

function audit({ environmentId }: MaintainedStore, atMs: number, eventId: string | null): [string, ...(string | number)[]] {
  const columns = "environment_id, at, actor, action, target, event_id";
  const event = eventId === null ? "NULL" : `'${eventId}'`;
  return [`INSERT INTO audit (${columns}) VALUES (?1, ?2, 'a', 'b', 'c', ${event})`, environmentId, atMs];
}

function email({ environmentId }: MaintainedStore, atMs: number): [string, ...(string | number)[]] {
  return [
    `INSERT INTO email (id, environment_id, recipient, sender, kind, subject, text, state, created_at)
     VALUES ('eml_' || ?2, ?1, 'a', 'b', 'event', 'c', 'd', 'sent', ?2)`,
    environmentId,
    atMs,
  ];
}

function alert({ environmentId }: MaintainedStore, atMs: number): [string, ...(string | number)[]] {
  return [
    "INSERT INTO alert (id, environment_id, code, target, message, at, last_at) VALUES ('alt_' || ?2, ?1, 'c', 't', 'm', ?2, ?2)",
    environmentId,
    atMs,
  ];
}

function problem({ environmentId }: MaintainedStore, atMs: number): [string, ...(string | number)[]] {
  return [
    `INSERT INTO problem (id, environment_id, code, target, message, raised_at, cleared_at)
     VALUES ('prb_' || ?2, ?1, 'c', 't', 'm', 0, ?2)`,
    environmentId,
    atMs,
  ];
}
