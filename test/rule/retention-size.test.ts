/** Events are stored for 30 days. Under a steady load the file then stops growing, and it shrinks when the load stops. */
import { expect } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/base/limit.ts";
import { testOfFile } from "../kit/chosen-store.ts";
import { openMaintainedStore } from "../kit/maintained-store.ts";

const EVENTS_A_DAY = 240;

testOfFile("ninety days of steady load: the file stops growing after the 35th, and shrinks when the load stops", async () => {
  await using cared = await openMaintainedStore();
  const empty = cared.size().database;
  const text = "x".repeat(1_000);
  const sizes: number[] = [];
  for (let day = 0; day < 90; day++) {
    for (let part = 0; part < 4; part++) {
      const atMs = cared.clock.now();
      const puts = Array.from({ length: EVENTS_A_DAY / 4 }, (_, i) => cared.put({ atMs: atMs + i, key: `${day}-${part}-${i}`, text }));
      await Promise.all(puts);
      await cared.clock.advance(6 * HOUR_MS);
    }
    sizes.push(cared.size().database + cared.size().log);
  }
  const [at10 = 0, at20 = 0, at35 = 0] = [sizes[10], sizes[20], sizes[35]];
  expect(at20 / at10).toBeGreaterThan(1.5);
  expect(Math.max(...sizes.slice(35))).toBeLessThan(at35 * 1.05);
  const kept = await cared.count("event");
  expect(kept).toBeGreaterThanOrEqual(EVENTS_A_DAY * 30);
  expect(kept).toBeLessThanOrEqual(EVENTS_A_DAY * 31);
  expect([await cared.count("run"), await cared.count("effect")]).toEqual([kept, kept]);
  await cared.clock.advance(15 * DAY_MS);
  expect(cared.size().database).toBeLessThan(at35 * 0.7);
  await cared.clock.advance(17 * DAY_MS);
  expect(await cared.count("event")).toBe(0);
  // The tables and indexes take pages without any row too.
  expect((cared.size().database - empty) / (at35 - empty)).toBeLessThan(0.15);
});
