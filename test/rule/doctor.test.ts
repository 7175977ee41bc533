/** The checks of relay doctor, on healthy and broken data directories. */

import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { VERSION } from "../../src/base/release/version.ts";
import { examine } from "../../src/operator/doctor/examine.ts";
import { type DoctorTarget, type Finding, formatBytes, formatDuration } from "../../src/operator/doctor/finding.ts";
import { checkBackups } from "../../src/operator/doctor/setup-check.ts";
import { SCHEMA_VERSION } from "../../src/store/migrate/migrations.ts";
import { runCommand } from "../kit/cli-io.ts";
import { addEvent, makeFolder, openFilled } from "../kit/data-directory.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const folder = makeFolder();
afterAll(() => rmSync(folder, { recursive: true }));
const clock = new VirtualClock(Date.UTC(2030, 0, 1));

let made = 0;
async function newDirectory(events = 5): Promise<string> {
  const dataDir = join(folder, `data-${made++}`);
  mkdirSync(dataDir, { mode: 0o700 });
  await (await openFilled(dataDir, clock, events)).close();
  makeBackup(dataDir, 60 * MINUTE_MS);
  return dataDir;
}

function makeBackup(dataDir: string, agoMs: number): void {
  const backups = join(dataDir, "backups");
  rmSync(backups, { recursive: true, force: true });
  mkdirSync(backups);
  const file = join(backups, "scheduled-20291231T000000000Z.db");
  writeFileSync(file, "");
  utimesSync(file, new Date(clock.now() - agoMs), new Date(clock.now() - agoMs));
}

function look(dataDir: string, more: Partial<DoctorTarget> = {}): Promise<Finding[]> {
  return examine({
    dataDir,
    database: null,
    masterKey: null,
    baseUrl: "https://relay.example.com",
    backupEveryMs: null,
    quick: false,
    allowPrivate: [],
    readMetrics: async () => null,
    builtAt: null,
    clock,
    ...more,
  });
}

/** Lists the findings that are not ok, by check. */
async function troubles(dataDir: string, more: Partial<DoctorTarget> = {}): Promise<Record<string, string>> {
  const found = (await look(dataDir, more)).filter(({ state }) => state !== "ok");
  for (const { todo } of found) expect(todo).toMatch(/./);
  return Object.fromEntries(found.map(({ check, state }) => [check, state]));
}

function change(dataDir: string, sql: string): void {
  using database = new Database(join(dataDir, "relay.db"), { readwrite: true });
  database.run(sql);
}

function addPeople(dataDir: string, emails: readonly string[]): void {
  for (const [at, email] of emails.entries())
    change(
      dataDir,
      `INSERT INTO person (id, environment_id, email, email_key, status, attributes, created_by, created_at, updated_at)
       SELECT 'per_${at}', min(id), '${email}', '${email}', 'active', '{}', 'key:1', 1, 1 FROM environment`,
    );
}

describe("the doctor", () => {
  test("finds no problem in a healthy directory, and runs every check", async () => {
    const findings = await look(await newDirectory());
    expect(findings.map(({ check, state }) => `${check} ${state}`)).toEqual([
      "data directory ok",
      "disk space ok",
      "log ok",
      "schema ok",
      "tables ok",
      "database ok",
      "master key ok",
      "queue ok",
      "holds ok",
      "dead events ok",
      "problems ok",
      "rejected requests ok",
      "clock ok",
      "base URL ok",
      "proxy ok",
      "secrets ok",
      "sender domain ok",
      "alert channels ok",
      "alert mail ok",
      "people ok",
      "customers ok",
      "OpenID provider ok",
      "backup copies ok",
      "backups ok",
      "version ok",
      "telemetry ok",
    ]);
  });

  test("changes nothing, with or without a running server", async () => {
    const dataDir = await newDirectory();
    const picture = (): string[] =>
      readdirSync(dataDir)
        .filter((name) => !name.endsWith("-shm") && name !== "backups")
        .map((name) => `${name} ${Bun.hash(readFileSync(join(dataDir, name)))} ${statSync(join(dataDir, name)).mtimeMs}`);
    const still = picture();
    await look(dataDir);
    expect(picture()).toEqual(still);
    expect(readdirSync(dataDir).sort()).toEqual(["backups", "master.key", "relay.db"]);
    const store = await openFilled(dataDir, clock, 3);
    const live = picture();
    await look(dataDir);
    expect(picture()).toEqual(live);
    await store.close();
  });

  test("names the relay and the figures of rejected requests whose events are missing", async () => {
    const dataDir = await newDirectory();
    change(
      dataDir,
      `UPDATE relay SET accepted_at = 1893456000000, definition = '${JSON.stringify(receiverDefinition({}))}' WHERE id = 'rly_development'`,
    );
    for (const [id, arrivedAt] of [
      ["evt_1", 1893456000000],
      ["evt_2", "NULL"],
      ["evt_3", "NULL"],
    ])
      change(
        dataDir,
        `INSERT INTO rejected_delivery (relay_id, event_id, first_at, last_at, count, arrived_at) SELECT id, '${id}', 1893452400000, 1893454200000, 1, ${arrivedAt} FROM relay`,
      );
    const found = (await look(dataDir)).find(({ check }) => check === "rejected requests");
    expect(found).toEqual({
      check: "rejected requests",
      state: "warn",
      message:
        "shop/development: orders rejected 3 requests from 2029-12-31T23:00:00.000Z to 2029-12-31T23:30:00.000Z. 1 of 3 events has arrived since then.",
      todo: "relay relays rejected <relay> lists the missing events: import them, or close the list if nothing more is to come",
    });
  });

  test("counts the dead events of every age", async () => {
    const dataDir = await newDirectory();
    const store = await openFilled(dataDir, clock, 0);
    for (const days of [0, 3, 9]) await addEvent(store, 1, clock.now() - days * DAY_MS, { state: "dead" });
    await store.close();
    const found = (await look(dataDir)).find(({ check }) => check === "dead events");
    expect(found?.message).toBe("3 dead events (orders 3), the newest from 2030-01-01T00:00:00.000Z.");
  });

  test("reads rows that are only in the log", async () => {
    const dataDir = await newDirectory();
    const store = await openFilled(dataDir, clock, 0);
    await addEvent(store, 1, clock.now(), { state: "dead" });
    expect(await troubles(dataDir)).toEqual({ "dead events": "warn" });
    await store.close();
  });

  const broken: {
    rule: string;
    /** Breaks the data directory, and returns other settings of the target, if any. */
    arrange: (dataDir: string) => unknown;
    finds: Record<string, string>;
  }[] = [
    {
      rule: "a folder without a database fails",
      arrange(dataDir) {
        for (const name of ["relay.db", "relay.db-wal", "master.key"]) rmSync(join(dataDir, name), { force: true });
      },
      finds: { "data directory": "fail" },
    },
    {
      rule: "a folder that lost its database fails, as the server's start does",
      arrange: (dataDir) => rmSync(join(dataDir, "relay.db")),
      finds: { database: "fail" },
    },
    {
      rule: "a master key that other users can read fails",
      arrange: (dataDir) => chmodSync(join(dataDir, "master.key"), 0o644),
      finds: { "data directory": "fail" },
    },
    {
      rule: "a folder that other users can read is a warning",
      arrange(dataDir) {
        chmodSync(dataDir, 0o755);
        chmodSync(join(dataDir, "relay.db"), 0o644);
        return undefined;
      },
      finds: { "data directory": "warn" },
    },
    {
      rule: "a damaged database fails",
      arrange(dataDir) {
        const file = join(dataDir, "relay.db");
        const bytes = readFileSync(file);
        bytes.fill(0xa5, 40 * 4_096, 44 * 4_096);
        writeFileSync(file, bytes);
        return undefined;
      },
      finds: { database: "fail" },
    },
    {
      rule: "a database that was cut short fails",
      arrange: (dataDir) => truncateSync(join(dataDir, "relay.db"), 100_000),
      finds: { database: "fail" },
    },
    {
      rule: "a file that is no database fails",
      arrange: (dataDir) => writeFileSync(join(dataDir, "relay.db"), "x".repeat(5_000)),
      finds: { database: "fail" },
    },
    {
      rule: "rows that refer to nothing fail",
      arrange(dataDir) {
        change(
          dataDir,
          "INSERT INTO api_key (id, environment_id, kind, name, key_hash, hint, created_at) VALUES ('k', 99, 'secret', 'n', x'00', 'h', 0)",
        );
        return undefined;
      },
      finds: { database: "fail" },
    },
    {
      rule: "a newer schema fails",
      arrange: (dataDir) => change(dataDir, `INSERT INTO schema_migration VALUES (${SCHEMA_VERSION + 1}, 'later', 0, NULL)`),
      finds: { schema: "fail" },
    },
    {
      rule: "an older schema is a warning, and tables that do not belong to it fail",
      // Migration 54 created a table.
      arrange: (dataDir) => change(dataDir, "DELETE FROM schema_migration WHERE number >= 54"),
      finds: { schema: "warn", tables: "fail" },
    },
    {
      rule: "a missing master key fails if the database has sealed secrets",
      arrange: (dataDir) => rmSync(join(dataDir, "master.key")),
      finds: { "master key": "fail" },
    },
    {
      rule: "another master key fails",
      arrange: () => ({ masterKey: "ab".repeat(32) }),
      finds: { "master key": "fail" },
    },
    {
      rule: "an invalid master key fails",
      arrange: () => ({ masterKey: "short" }),
      finds: { "master key": "fail" },
    },
    {
      rule: "an event that waits too long is a warning",
      arrange: (dataDir) => addLate(dataDir, { state: "queued", atMs: clock.now() - 10 * MINUTE_MS }),
      finds: { queue: "warn" },
    },
    {
      rule: "an event that waits for a paused relay is no warning",
      async arrange(dataDir) {
        change(dataDir, "UPDATE relay SET state = 'paused'");
        return await addLate(dataDir, { state: "queued", atMs: clock.now() - 10 * MINUTE_MS });
      },
      finds: {},
    },
    {
      rule: "an event that died today is a warning",
      arrange: (dataDir) => addLate(dataDir, { state: "dead", atMs: clock.now() - MINUTE_MS }),
      finds: { "dead events": "warn" },
    },
    {
      rule: "an event that died days ago is a warning",
      arrange: (dataDir) => addLate(dataDir, { state: "dead", atMs: clock.now() - 3 * DAY_MS }),
      finds: { "dead events": "warn" },
    },
    {
      rule: "dead events whose alert an owner resolved are no warning",
      async arrange(dataDir) {
        change(
          dataDir,
          `INSERT INTO alert (id, environment_id, code, target, message, at, last_at, resolved_at, resolved_by)
           SELECT 'alt_1', id, 'relay_failed', 'relay:orders', 'm', 1, 1, ${clock.now() - DAY_MS}, 'owner:1' FROM environment WHERE name = 'development'`,
        );
        return await addLate(dataDir, { state: "dead", atMs: clock.now() - 3 * DAY_MS });
      },
      finds: {},
    },
    {
      rule: "an environment on hold is a warning",
      arrange: (dataDir) => change(dataDir, `UPDATE environment SET held_at = ${clock.now()} WHERE name = 'development'`),
      finds: { holds: "warn" },
    },
    {
      rule: "an open problem is a warning",
      arrange: (dataDir) =>
        change(
          dataDir,
          "INSERT INTO problem (id, environment_id, code, target, message, raised_at) SELECT 'prb_1', id, 'relay_unsigned_event', 'relay:orders', 'm', 0 FROM environment LIMIT 1",
        ),
      finds: { problems: "warn" },
    },
    {
      rule: "an event from the future is a warning",
      arrange: (dataDir) => addLate(dataDir, { state: "done", atMs: clock.now() + 60 * MINUTE_MS }),
      finds: { clock: "warn" },
    },
    {
      rule: "a base URL without https is a warning",
      arrange: () => ({ baseUrl: "http://relay.example.com" }),
      finds: { "base URL": "warn" },
    },
    {
      rule: "a base URL that only this machine can reach is a warning",
      arrange: () => ({ baseUrl: "http://127.0.0.1:4747" }),
      finds: { "base URL": "warn" },
    },
    {
      rule: "a missing base URL is a warning",
      arrange: () => ({ baseUrl: null }),
      finds: { "base URL": "warn" },
    },
    {
      rule: "a secret that verifies one relay name in two environments is a warning",
      arrange(dataDir) {
        change(dataDir, "UPDATE relay SET secret_digest = x'aa' WHERE id = 'rly_production'");
        change(dataDir, "UPDATE relay SET secret_kind = 'processor', secret = NULL WHERE id = 'rly_development'");
        change(dataDir, "UPDATE environment SET processor_secret_digest = x'aa' WHERE name = 'development'");
      },
      finds: { secrets: "warn" },
    },
    {
      rule: "mail without a verified sender domain is a warning",
      arrange: (dataDir) =>
        change(
          dataDir,
          `UPDATE relay SET definition = json_set(definition, '$.actions', json('[{"type":"email_person"}]')) WHERE id = 'rly_production'`,
        ),
      finds: { "sender domain": "warn" },
    },
    {
      rule: "owners who get no alert mail are a warning",
      arrange: (dataDir) =>
        change(
          dataDir,
          `INSERT INTO problem (id, environment_id, code, target, message, raised_at)
           SELECT 'prb_1', min(id), 'alerts_unmailed', 'mail', 'The last alert mail reached no owner.', 1 FROM environment`,
        ),
      finds: { problems: "warn", "alert mail": "warn" },
    },
    {
      rule: "two people with one address, in both spellings of its domain, are a warning",
      arrange: (dataDir) => addPeople(dataDir, ["zoe@xn--bcher-kva.example", "zoe@bücher.example"]),
      finds: { people: "warn" },
    },
    {
      rule: "two such people are no warning once the first is suspended, because an erasure is not always possible",
      arrange(dataDir) {
        addPeople(dataDir, ["zoe@xn--bcher-kva.example", "zoe@bücher.example"]);
        change(dataDir, "UPDATE person SET status = 'suspended' WHERE id = 'per_0'");
      },
      finds: {},
    },
    {
      rule: "one person under a domain in punycode is no warning",
      arrange: (dataDir) => addPeople(dataDir, ["zoe@xn--bcher-kva.example", "zoe@bücher.example"].slice(0, 1)),
      finds: {},
    },
    {
      rule: "missing scheduled backups are a warning",
      arrange(dataDir) {
        rmSync(join(dataDir, "backups"), { recursive: true });
        return { backupEveryMs: 60 * MINUTE_MS };
      },
      finds: { backups: "warn" },
    },
    {
      rule: "scheduled backups that stopped are a warning",
      arrange(dataDir) {
        makeBackup(dataDir, 180 * MINUTE_MS);
        return { backupEveryMs: 60 * MINUTE_MS };
      },
      finds: { backups: "warn" },
    },
    {
      rule: "scheduled backups of the stored schedule that stopped are a warning",
      arrange(dataDir) {
        makeBackup(dataDir, 180 * MINUTE_MS);
        return change(dataDir, "INSERT INTO backup_schedule (one, every_hours, keep) VALUES (1, 1, 7)");
      },
      finds: { backups: "warn" },
    },
    {
      rule: "a server without any backup is a warning",
      arrange: (dataDir) => rmSync(join(dataDir, "backups"), { recursive: true }),
      finds: { backups: "warn" },
    },
    {
      rule: "a proxy that the server noticed and that is not configured is a warning",
      arrange: (dataDir) =>
        change(
          dataDir,
          `INSERT INTO problem (id, environment_id, code, target, message, raised_at)
           SELECT 'prb_1', min(id), 'proxy_unnamed', 'proxy:172.17.0.1', 'Calls come through it.', 1 FROM environment`,
        ),
      finds: { problems: "warn", proxy: "warn" },
    },
  ];
  test("names the people with two spellings of one address, and what to do", async () => {
    const dataDir = await newDirectory();
    addPeople(dataDir, ["zoe@xn--bcher-kva.example", "zoe@bücher.example"]);
    const finding = (await look(dataDir)).find(({ check }) => check === "people");
    expect(finding?.message).toContain("per_0 (zoe@xn--bcher-kva.example) and per_1 (zoe@bücher.example) of ");
    expect(finding?.todo).toContain("relay people show <id>");
    expect(finding?.todo).toContain("Then suspend the first, or erase it on its page");
    expect(finding?.todo).toContain("To erase a person completely, erase both");
  });

  const waits = [
    { hours: 0, state: "pass", count: 2 },
    { hours: 2, state: "warn", count: 2 },
  ];
  test.each(waits)("counts the events that wait for a customer ID, and warns after an hour: $hours h", async ({ hours, state }) => {
    const dataDir = await newDirectory();
    const store = await openFilled(dataDir, clock, 0);
    for (const _event of [1, 2]) await addEvent(store, 1, clock.now() - hours * HOUR_MS, { state: "queued" });
    await store.close();
    change(dataDir, "UPDATE event SET reason = 'customer_unknown', next_attempt_at = created_at + 60000");
    const found = (await look(dataDir)).find(({ check }) => check === "customers");
    expect(found?.state).toBe(state === "pass" ? "ok" : "warn");
    expect(found?.message).toContain("Waiting for an unknown customer ID: 2 events (shop/development orders 2), the oldest for ");
    if (state === "warn") expect(found?.todo).toContain("relay people link");
  });

  for (const { rule, arrange, finds } of broken) {
    test(rule, async () => {
      const dataDir = await newDirectory(50);
      const more = ((await arrange(dataDir)) ?? {}) as Partial<DoctorTarget>;
      expect(await troubles(dataDir, more)).toEqual(finds);
    });
  }
});

test("local development without any backup is no warning, and that of a server names every way to schedule backups", () => {
  const patient = { dataDir: join(folder, "none"), database: null, masterKey: null, baseUrl: null, backupEveryMs: null, quick: false, clock };
  expect([checkBackups(patient, true).state, checkBackups(patient, false).state]).toEqual(["ok", "warn"]);
  for (const way of ["Settings › Backups", "relay backups schedule 1d", "relay serve --backup-every 1d"])
    expect(checkBackups(patient, false).todo).toContain(way);
});

describe("the command", () => {
  const run = (dataDir: string, ...line: string[]) => runCommand(["doctor", "--data-dir", dataDir, ...line], { cwd: folder, clock });

  test("exits with 0 if there are only warnings, and says what to do", async () => {
    const { code, said } = await run(await newDirectory());
    expect(code).toBe(0);
    expect(said).toMatch(/^CHECK +STATE +FOUND$/m);
    expect(said).toMatch(/^base URL +warn .*To do: .*--base-url/m);
  });

  test("exits with 1 if a check fails", async () => {
    const dataDir = await newDirectory();
    rmSync(join(dataDir, "master.key"));
    expect(await run(dataDir)).toMatchObject({ code: 1, said: expect.stringMatching(/^master key +fail/m) });
  });

  test("prints every field of the findings with --json", async () => {
    const { code, said } = await run(await newDirectory(), "--json", "--base-url", "https://relay.example.com");
    expect(code).toBe(0);
    const { items } = JSON.parse(said);
    expect(items.length).toBeGreaterThan(10);
    for (const item of items) expect(Object.keys(item)).toEqual(["check", "state", "message", "todo"]);
  });
});

test.each([
  [0, "0 bytes"],
  [1_023, "1023 bytes"],
  [1_024, "1.0 KiB"],
  [3_670_016, "3.5 MiB"],
])("%d bytes are written %s", (bytes, words) => {
  expect(formatBytes(bytes)).toBe(words);
});

test.each([
  [59_999, "under a minute"],
  [60_000, "1 minute"],
  [59 * MINUTE_MS, "59 minutes"],
  [61 * MINUTE_MS, "1 hour"],
  [47 * 60 * MINUTE_MS, "47 hours"],
  [72 * 60 * MINUTE_MS, "3 days"],
])("%d milliseconds are written %s", (ms, words) => {
  expect(formatDuration(ms)).toBe(words);
});

async function addLate(dataDir: string, event: { state: string; atMs: number }): Promise<undefined> {
  const store = await openFilled(dataDir, clock, 0);
  await addEvent(store, 1, event.atMs, { state: event.state });
  await store.close();
  return undefined;
}

describe("the export of telemetry", () => {
  const series = (up: Record<string, number>, dropped: number): string =>
    [
      ...Object.entries(up).map(([signal, value]) => `relay_otlp_up{signal="${signal}"} ${value}`),
      `relay_otlp_spans_total{outcome="dropped"} ${dropped}`,
    ].join("\n");
  const rows: { rule: string; metrics: string | null; state: string; message: string }[] = [
    { rule: "no server", metrics: null, state: "ok", message: "No server runs here, so nothing is exported." },
    {
      rule: "nothing exported",
      metrics: series({}, 0),
      state: "ok",
      message: "The server exported nothing yet, or OTEL_EXPORTER_OTLP_ENDPOINT is not set.",
    },
    {
      rule: "both signals exported",
      metrics: series({ traces: 1, metrics: 1 }, 0),
      state: "ok",
      message: "The last export of traces and metrics succeeded.",
    },
    {
      rule: "an export failed",
      metrics: series({ traces: 0, metrics: 1 }, 512),
      state: "warn",
      message: "The last export of traces failed. 512 spans of traces were dropped since the start.",
    },
    {
      rule: "a span was dropped before",
      metrics: series({ traces: 1 }, 1),
      state: "warn",
      message: "The exports succeed. 1 span of traces was dropped since the start.",
    },
  ];
  test.each(rows)("$rule", async ({ metrics, state, message }) => {
    const found = (await look(await newDirectory(0), { readMetrics: async () => metrics })).find(({ check }) => check === "telemetry");
    expect([found?.state, found?.message]).toEqual([state, message]);
  });
});

describe("the version", () => {
  const rows: { rule: string; builtAt: string | null; state: string; message: string }[] = [
    { rule: "not built from a release", builtAt: null, state: "ok", message: ", not from a release." },
    { rule: "built today", builtAt: "2029-12-31T12:00:00.000Z", state: "ok", message: ", built less than a day ago." },
    { rule: "built 179 days ago", builtAt: "2029-07-06T00:00:00.000Z", state: "ok", message: ", built 179 days ago." },
    { rule: "built 180 days ago is old", builtAt: "2029-07-05T00:00:00.000Z", state: "warn", message: ", built 180 days ago." },
  ];
  test.each(rows)("$rule", async ({ builtAt, state, message }) => {
    const found = (await look(await newDirectory(0), { builtAt })).find(({ check }) => check === "version");
    expect([found?.state, found?.message]).toEqual([state, `${VERSION}${message}`]);
  });
});
