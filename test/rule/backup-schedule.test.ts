/** Scheduled backups: when they are due, how many stay, and what a failure or a stop leaves. */

import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { backupFile } from "../../src/operator/backup/backup.ts";
import { type BackupPlan, BackupSchedule, type StartBackup } from "../../src/operator/backup/schedule.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const folder = mkdtempSync(join(tmpdir(), "relay-schedule-"));
afterAll(() => rmSync(folder, { recursive: true }));

const START_MS = Date.UTC(2030, 0, 1);
let made = 0;

/** Starts a schedule over a folder. A backup writes an empty file, and `fails` makes backups fail. */
function begin(given: { everyMs?: number; keep?: number; dataDir?: string; clock?: VirtualClock; start?: StartBackup } = {}) {
  const dataDir = given.dataDir ?? join(folder, `data-${made++}`);
  const clock = given.clock ?? new VirtualClock(START_MS);
  const lines: string[] = [];
  const told: boolean[] = [];
  const plan: BackupPlan | null = { everyMs: given.everyMs ?? HOUR_MS, keep: given.keep ?? 3 };
  const state: { fails: boolean; started: number; plan: BackupPlan | null } = { fails: false, started: 0, plan };
  const start: StartBackup =
    given.start ??
    ((file) => {
      state.started += 1;
      if (state.fails) return { done: Promise.reject(new Error("no room on the disk")), stop: () => undefined };
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "");
      return { done: Promise.resolve(), stop: () => undefined };
    });
  const schedule = new BackupSchedule({
    dataDir,
    readPlan: async () => state.plan,
    clock,
    log: createLog({ clock, format: "json", sink: (line) => lines.push(line) }),
    start,
    onBackup: (one) => told.push(one),
  });
  const list = (): string[] => {
    try {
      return readdirSync(join(dataDir, "backups")).sort();
    } catch {
      return [];
    }
  };
  return { schedule, dataDir, clock, lines, told, state, list };
}

describe("a scheduled backup", () => {
  test("follows a plan that changes while the server runs", async () => {
    const { clock, state, schedule, list } = begin();
    state.plan = null;
    await clock.advance(DAY_MS);
    expect(state.started).toBe(0);
    state.plan = { everyMs: 6 * HOUR_MS, keep: 2 };
    schedule.wake();
    await clock.advance(1);
    expect(state.started).toBe(1);
    await clock.advance(DAY_MS);
    expect([state.started, list().length]).toEqual([5, 2]);
    state.plan = null;
    await clock.advance(DAY_MS);
    expect(state.started).toBe(5);
    await schedule.stop();
  });

  test("is made soon after the first start, and its name says when", async () => {
    const { clock, list, schedule } = begin();
    await clock.advance(MINUTE_MS);
    expect(list()).toEqual(["scheduled-20300101T000100000Z.db"]);
    await schedule.stop();
  });

  test("is made once for each period", async () => {
    const { clock, state, schedule } = begin({ everyMs: 6 * HOUR_MS });
    await clock.advance(2 * DAY_MS);
    expect(state.started).toBe(8);
    await schedule.stop();
  });

  test("counts its period from the last backup, so that a restart neither skips nor repeats one", async () => {
    const first = begin({ everyMs: DAY_MS });
    await first.clock.advance(HOUR_MS);
    await first.schedule.stop();
    const second = begin({ everyMs: DAY_MS, dataDir: first.dataDir, clock: first.clock });
    await second.clock.advance(22 * HOUR_MS);
    expect(second.state.started).toBe(0);
    await second.clock.advance(2 * HOUR_MS);
    expect(second.state.started).toBe(1);
    await second.schedule.stop();
  });

  test("keeps only the newest files, and leaves other files unchanged", async () => {
    const { clock, list, dataDir, schedule } = begin({ keep: 3 });
    mkdirSync(join(dataDir, "backups"), { recursive: true });
    const others = ["before-migration-20200101T000000000Z.db", "mine.db", "scheduled-mine.db"];
    for (const name of others) writeFileSync(join(dataDir, "backups", name), "");
    await clock.advance(5 * HOUR_MS + 30 * MINUTE_MS);
    expect(list()).toEqual(
      [...others, "scheduled-20300101T030100000Z.db", "scheduled-20300101T040100000Z.db", "scheduled-20300101T050100000Z.db"].sort(),
    );
    await schedule.stop();
  });

  test("that fails is logged, retried within 15 minutes, and deletes no older backup", async () => {
    const { clock, list, lines, told, state, schedule } = begin({ keep: 1 });
    await clock.advance(MINUTE_MS);
    const before = list();
    state.fails = true;
    await clock.advance(HOUR_MS + 20 * MINUTE_MS);
    expect(list()).toEqual(before);
    expect(lines.join()).toContain("no room on the disk");
    const tries = state.started;
    expect(tries).toBeGreaterThan(2);
    state.fails = false;
    await clock.advance(15 * MINUTE_MS);
    expect(list()).toHaveLength(1);
    expect(list()).not.toEqual(before);
    expect(told).toEqual([true, ...Array(tries - 1).fill(false), true]);
    await schedule.stop();
  });

  test("is made on time after the clock was set back, and deletes backups with future dates first", async () => {
    const { clock, list, dataDir, schedule } = begin({ keep: 2 });
    mkdirSync(join(dataDir, "backups"), { recursive: true });
    for (const days of [10, 20]) writeFileSync(backupFile(dataDir, "scheduled", START_MS + days * DAY_MS), "");
    await clock.advance(3 * HOUR_MS);
    expect(list()).toEqual(["scheduled-20300101T010100000Z.db", "scheduled-20300101T020100000Z.db"]);
    await schedule.stop();
  });

  test("that is running when the server stops is aborted, and its partial file is removed", async () => {
    let stopped = 0;
    const { clock, list, lines, schedule } = begin({
      start(file) {
        const part = join(dirname(file), `.${basename(file)}.abc.part`);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(part, "half");
        const { promise, reject } = Promise.withResolvers<void>();
        return {
          done: promise,
          stop() {
            stopped += 1;
            reject(new Error("ended"));
          },
        };
      },
    });
    await clock.advance(MINUTE_MS);
    expect(list()).toHaveLength(1);
    await schedule.stop();
    expect({ stopped, left: list(), logged: lines }).toEqual({ stopped: 1, left: [], logged: [] });
    await clock.advance(DAY_MS);
    expect(list()).toEqual([]);
  });
});
