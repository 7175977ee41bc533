/** Disk space: the trouble starts with the first group that finds none. It ends when a group succeeds after the disk reported space. */
import { beforeEach, expect, test } from "bun:test";
import { DiskSpace } from "../../src/store/disk-space.ts";
import { START_MS, settle, VirtualClock } from "../kit/virtual-clock.ts";

const FULL = "The disk is full.";
let clock: VirtualClock;
let space: DiskSpace;
let asked: ((hasRoom: boolean) => void)[];
let told: (string | null)[];

beforeEach(() => {
  clock = new VirtualClock(START_MS);
  asked = [];
  told = [];
  space = new DiskSpace({
    clock,
    ask: () => new Promise((resolve) => asked.push(resolve)),
    everyMs: 1_000,
    trouble: FULL,
    onChange: (trouble) => told.push(trouble),
  });
});

/** Checks the disk a second later, and answers the check if there was one. */
async function look(hasRoom?: boolean): Promise<void> {
  await clock.advance(1_000);
  space.check();
  if (hasRoom !== undefined) asked.pop()?.(hasRoom);
  await settle();
}

test("successful groups on a full disk end no trouble, and the disk is checked only after a group found none", async () => {
  space.recordSuccess();
  await look();
  expect([asked.length, space.trouble]).toEqual([0, null]);
  space.recordFull();
  for (let turn = 0; turn < 5; turn++) {
    space.recordSuccess();
    await look(false);
    expect(space.trouble).toBe(FULL);
  }
  expect(told).toEqual([FULL]);
});

test("free space does not end the trouble, but the first successful group after it does", async () => {
  space.recordFull();
  await look(true);
  expect(space.trouble).toBe(FULL);
  space.recordSuccess();
  expect([space.trouble, told]).toEqual([null, [FULL, null]]);
});

test("a group that finds no space during a check invalidates the check", async () => {
  space.recordFull();
  await look();
  space.recordFull();
  asked.pop()?.(true);
  await settle();
  space.recordSuccess();
  expect(space.trouble).toBe(FULL);
  await look(true);
  space.recordFull();
  space.recordSuccess();
  expect(space.trouble).toBe(FULL);
});

test("only one check of the disk runs at a time, and not before it is due", async () => {
  space.recordFull();
  space.check();
  expect(asked).toHaveLength(0);
  await look();
  await look();
  expect(asked).toHaveLength(1);
});
