/** The limits of a session. Each connection sets them itself, and the service uses no connection that lacks one. */
import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { checkNotices } from "../../src/operator/doctor/server-check.ts";
import type { Reader } from "../../src/store/port.ts";
import { adviseOn } from "../../src/store/postgres/connection-advice.ts";
import { LIMITS, READ_LIMITS } from "../../src/store/postgres/connection-option.ts";
import { LimitsNotKept } from "../../src/store/postgres/error.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { runCommand } from "../kit/cli-io.ts";
import { makeFolder } from "../kit/data-directory.ts";
import { freshDatabase, placeOf } from "../kit/postgres.ts";
import { openPostgresProxy } from "../kit/postgres-proxy.ts";

const folder = makeFolder();
afterAll(() => rmSync(folder, { recursive: true }));

const BEGIN_VERSION = 196_608;
/** The startup parameters that a pooler passes on. It silently drops the others (ignore_startup_parameters). */
const PASSES = ["user", "database", "application_name", "client_encoding", "DateStyle"];

test("the limits apply behind a pooler that drops startup parameters", async () => {
  await using database = await freshDatabase();
  using proxy = await openPostgresProxy(database.url);
  const asked = new Set<string>();
  proxy.rewriteAsked = (said) => {
    if (said.length < 8 || said.readInt32BE(4) !== BEGIN_VERSION) return said;
    const words = said.toString("utf8", 8).split("\0");
    const kept: string[] = [];
    for (let at = 0; at + 1 < words.length && words[at] !== ""; at += 2) {
      const [name = "", value = ""] = words.slice(at, at + 2);
      asked.add(name);
      if (PASSES.includes(name)) kept.push(name, value);
    }
    const passed = Buffer.concat([said.subarray(0, 8), Buffer.from(`${kept.join("\0")}\0\0`)]);
    passed.writeInt32BE(passed.length, 0);
    return passed;
  };
  const store = await openPostgres(placeOf(proxy.url), { clock: systemClock });
  const read = (tx: Reader) => tx.all<{ name: string; value: string }>(READ_LIMITS);
  const found = await Promise.all([store.read(read), store.write("app", read)]);
  await store.close();
  const [reading, writing] = found.map((rows) => Object.fromEntries(rows.map(({ name, value }) => [name, value])));
  // A group's commit is answered before it is on disk, and a flush follows.
  expect({ reading, writing }).toEqual({ reading: LIMITS, writing: { ...LIMITS, synchronous_commit: "off" } });
  // PgBouncer refuses a connection with more parameters, unless it is configured to drop them.
  expect([...asked].filter((name) => !PASSES.includes(name))).toEqual([]);
});

/** A limit that the session lacks, and the value that it has instead. */
const LOST: [limit: string, other: string][] = [
  ["idle_in_transaction_session_timeout", "0"],
  ["lock_timeout", "0"],
  ["statement_timeout", "0"],
];

test.each(LOST)("a session whose %s is %s is not used: no node starts, and relay doctor fails", async (limit, other) => {
  await using database = await freshDatabase();
  using proxy = await openPostgresProxy(database.url);
  const set = `SET ${limit} = '${LIMITS[limit]}'`;
  const unset = `SET ${limit} = '${other}'`;
  proxy.rewriteAsked = (said) => Buffer.from(said.toString("latin1").replace(set, unset.padEnd(set.length)), "latin1");
  const error: unknown = await openPostgres(placeOf(proxy.url), { clock: systemClock }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(LimitsNotKept);
  expect((error as Error).message).toContain(`${limit} is ${other} and must be ${LIMITS[limit]}`);
  expect(adviseOn(error)).toContain("in session mode");
  const { code, said } = await runCommand(["doctor", "--json"], { cwd: folder, env: { RELAY_DATABASE: proxy.url }, clock: systemClock });
  const { items } = JSON.parse(said) as { items: { check: string; state: string; message: string }[] };
  expect({ code, items }).toMatchObject({
    code: 1,
    items: [{ check: "limits", state: "fail", message: expect.stringContaining(`${limit} is ${other}`) }],
  });
});

const QUEUES: [used: number, state: string][] = [
  [0, "ok"],
  [0.09, "ok"],
  [0.1, "warn"],
  [0.5, "fail"],
];

test.each(QUEUES)("a queue of notifications that is filled to %d: %s", async (used, state) => {
  const tx = { get: async () => ({ used }) } as unknown as Reader;
  const { check, state: found, message, todo } = await checkNotices(tx);
  expect({ check, found }).toEqual({ check: "notification queue", found: state as typeof found });
  expect(message).toContain(`${Math.round(used * 100)} % full`);
  if (state !== "ok") expect(todo).toContain("end the session that listens");
});
