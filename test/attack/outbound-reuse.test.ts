/**
 * Reused connections to servers that misbehave, with a thousand notices each. No notice is lost, and none is read more often than with a new
 * connection for each call. None fails because a connection was closed while it waited.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createCaller } from "../../src/platform/outbound/caller.ts";

const NOTICES = 1_000;
const AT_ONCE = 8;

interface Counts {
  read: Record<string, number>;
  dropped: Record<string, number>;
  connections: number;
}

/** Posts every notice until it gets a response, as its attempts do. Returns the number of attempts of each and the server's counts. */
async function postAll(manner: string, isKeeping: boolean): Promise<Counts & { attempts: Map<string, number> }> {
  await using server = Bun.spawn([process.execPath, join(import.meta.dir, "../kit/rude-server.ts"), manner], { stdout: "pipe", stderr: "inherit" });
  const { value } = await server.stdout.getReader().read();
  const url = `http://localhost:${new TextDecoder().decode(value).trim()}/`;
  // The clock does not move, so even on a slow machine the caller learns in time that a server closed a connection.
  const clock = { ...systemClock, monotonicMs: () => 0 };
  const caller = createCaller({ concurrency: 32, ownHosts: () => [], allowPrivate: [], clock });
  if (!isKeeping) caller.close();
  const attempts = new Map<string, number>();
  let next = 0;
  async function post(): Promise<void> {
    while (next < NOTICES) {
      const id = `evt_${next++}`;
      for (let isOk = false; !isOk; ) {
        await Bun.sleep(Math.random() * 6);
        attempts.set(id, (attempts.get(id) ?? 0) + 1);
        const outcome = await caller.call({ url, body: JSON.stringify({ id }), signingSecret: "secret", local: true });
        isOk = outcome.kind === "answered" && outcome.ok && outcome.body === "ok";
        if (!isOk) expect(outcome).toMatchObject({ kind: "unreachable", code: "connection_failed" });
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, post));
  caller.close();
  const counts = (await (await fetch(url)).json()) as Counts;
  return { ...counts, attempts };
}

const MANNERS: [manner: string, failsNever: boolean][] = [
  ["closes", true],
  ["half-closes", true],
  ["resets", false],
  ["drips", false],
];

test.each(MANNERS)(
  "a server that %s reads each notice once more than it left it unanswered, over reused connections as over single ones",
  async (manner, failsNever) => {
    const [kept, single] = [await postAll(manner, true), await postAll(manner, false)];
    for (const { read, dropped, attempts } of [kept, single]) {
      expect(Object.keys(read)).toHaveLength(NOTICES);
      for (const [id, count] of Object.entries(read)) {
        const drops = dropped[id] ?? 0;
        expect([id, count]).toEqual([id, 1 + drops]);
        expect(attempts.get(id)).toBeLessThanOrEqual(failsNever ? 1 : 1 + drops);
      }
    }
    expect(kept.connections).toBeLessThan(single.connections * 0.6);
  },
);
