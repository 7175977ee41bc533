/**
 * A flood of rejected requests, as many as this machine can send. An accepted request needs no further write, event or wait because of it. The log
 * gets a line a minute for each kind, and the database a few rows. The test counts lines, rows and bytes, never times.
 */
import { expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { ON_POSTGRES } from "../kit/chosen-store.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const SECONDS = 2;
const A_SECOND = 10_000;
const AT_ONCE = 50;
const ACCEPTED_A_SECOND = 4;
const PRIVATE = "words-that-nobody-verified";

const KINDS: readonly (() => Parameters<RunningService["hook"]>)[] = [
  () => ["orders", signedCall({ id: "a", note: PRIVATE }, "anotherSecretOfTwentyFour1")],
  () => ["orders", { headers: { "content-type": "application/json" }, body: JSON.stringify({ note: PRIVATE }) }],
  () => ["orders", { headers: { "x-signature": "zz" }, body: PRIVATE }],
  () => ["ordres", signedCall({ id: "a", note: PRIVATE })],
];

async function bytesOf(running: RunningService): Promise<number> {
  const size = ON_POSTGRES ? "SELECT pg_database_size(current_database()) AS bytes" : "SELECT page_count * 4096 AS bytes FROM pragma_page_count()";
  const [row] = await running.rows<{ bytes: number }>(size);
  return row?.bytes ?? 0;
}

test.each([
  ["each is looked into, as no cap stops it", { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1_000_000, unverifiedCallsPerMinute: 1_000_000 }],
  ["the address is over its cap", { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1_000_000 }],
])("accepted requests cost the same in a flood: %s", async (_name, limits) => {
  await using running = await startRunningService({ config: { limits } });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  let serial = 0;
  let commits = 0;
  running.service.store.listen(() => commits++);
  const accept = async (): Promise<number> => {
    const before = commits;
    expect((await running.hook("orders", signedCall({ id: `good-${++serial}`, amount: 1 }))).status).toBe(200);
    await running.drain();
    return commits - before;
  };
  await accept();
  const alone = await accept();
  const before = await bytesOf(running);
  running.logged.splice(0);

  for (let second = 0; second < SECONDS; second++) {
    let sent = 0;
    const refuse = async (): Promise<void> => {
      for (; sent < A_SECOND; ) {
        const kind = KINDS[sent++ % KINDS.length];
        if (kind === undefined) return;
        const { status } = await running.hook(...kind());
        expect([401, 404, 429]).toContain(status);
      }
    };
    const flood = Array.from({ length: AT_ONCE }, refuse);
    for (let one = 0; one < ACCEPTED_A_SECOND; one++) expect(await accept()).toBe(alone);
    await Promise.all(flood);
    await running.clock.advance(1_000);
  }
  const told = running.logged.length;
  await running.clock.advance(60_000);

  const events = await running.rows<{ state: string }>("SELECT state FROM event");
  expect(events).toHaveLength(2 + SECONDS * ACCEPTED_A_SECOND);
  expect(events.every(({ state }) => state === "done")).toBe(true);
  // The log has each kind once, and its count at the end of the minute.
  expect(told).toBeLessThanOrEqual(2 * KINDS.length);
  expect(running.logged.length).toBeLessThanOrEqual(4 * KINDS.length);
  const text = running.logged.join("\n");
  expect(text.length).toBeLessThan(16 * 1024);
  expect(text).toMatch(/in the last minute/);
  expect(text).not.toContain(PRIVATE);
  const [calls] = await running.rows<{ count: number }>("SELECT count(*) AS count FROM recent_request");
  // Any number of equal requests share one row.
  expect(calls?.count).toBeLessThanOrEqual(4 * KINDS.length);
  expect((await bytesOf(running)) - before).toBeLessThan(2 * 1024 * 1024);
});
