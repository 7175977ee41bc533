/**
 * SIGKILL under load, every kind of action, then a replay of everything. Here some dozens; `RELAY_CRASH_KILLS=1000 bun test test/crash` runs the long loop. `RELAY_CRASH_SEED` repeats one.
 */
import { expect, test } from "bun:test";
import { runCrashLoop } from "./crash-loop.ts";

const kills = Number(process.env.RELAY_CRASH_KILLS ?? 30);
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

test(
  `${kills} kills under load: no acknowledged event is lost, none stuck, no effect applied twice (seed ${seed})`,
  async () => {
    const report = await runCrashLoop(kills, makeRandom(seed));
    expect(report.broken).toEqual([]);
    expect(report.acknowledged).toBeGreaterThan(kills);
  },
  { timeout: 30_000 + kills * 5_000 },
);
