/**
 * SIGKILL under load, every kind of action, mails to a real server, the lock file removed at random and second servers started beside the
 * first, then a replay of everything. Here some dozens; `RELAY_CRASH_KILLS=1000 bun test test/crash` runs the long loop, with `RELAY_CRASH_POWER=1`
 * (Linux, root) of power cuts, half of them with torn writes. `RELAY_CRASH_SEED` repeats one.
 */
import { expect, test } from "bun:test";
import { makeAuthority } from "../kit/certificate.ts";
import { startMailServer } from "../kit/mail-server.ts";
import { PATIENCE_MS, TEST_MS } from "../kit/patience.ts";
import { rounds } from "../kit/rounds.ts";
import { runCrashLoop } from "./crash-loop.ts";

const kills = Number(process.env.RELAY_CRASH_KILLS ?? rounds({ slice: 3, soak: 15, long: 40 }));
const power = process.env.RELAY_CRASH_POWER !== undefined;
const seed = Number(process.env.RELAY_CRASH_SEED ?? Date.now() % 1_000_000);

/** mulberry32: small, seeded, good enough to choose moments. */
function makeRandom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const random = makeRandom(seed);
/** A mail takes a moment here, so that many are on their way when the process dies. */
const mailHooks: { onText: () => void } = { onText: () => undefined };
const mailServer = await startMailServer({
  authority: makeAuthority("Nobody"),
  security: "none",
  onRecipient: () => Bun.sleep(random() * 10),
  onText: () => {
    mailHooks.onText();
    return Bun.sleep(random() * 30);
  },
});

test(
  `${kills} kills under load: no acknowledged event is lost, none stuck, no effect applied twice, no mail silently unsent (seed ${seed})`,
  async () => {
    const report = await runCrashLoop(kills, power, random, mailServer, mailHooks);
    // A long loop is run for its figures.
    if (process.env.RELAY_CRASH_KILLS !== undefined) console.log({ ...report, broken: report.broken.length });
    expect(report.broken).toEqual([]);
    expect(report.acknowledged).toBeGreaterThan(0);
  },
  { timeout: TEST_MS + kills * PATIENCE_MS },
);
