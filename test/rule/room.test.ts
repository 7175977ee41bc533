/** Room on a disk: the trouble stands from the first group that finds none until one succeeds after the disk said that it has room. */
import { beforeEach, expect, test } from "bun:test";
import { Room } from "../../src/store/disk-space.ts";
import { START_MS, settle, VirtualClock } from "../kit/virtual-clock.ts";

const FULL = "The disk is full.";
let clock: VirtualClock;
let room: Room;
let asked: ((hasRoom: boolean) => void)[];
let told: (string | null)[];

beforeEach(() => {
  clock = new VirtualClock(START_MS);
  asked = [];
  told = [];
  room = new Room({
    clock,
    ask: () => new Promise((resolve) => asked.push(resolve)),
    everyMs: 1_000,
    trouble: FULL,
    onChange: (trouble) => told.push(trouble),
  });
});

/** A second later the disk is asked; answers it, if it was. */
async function look(hasRoom?: boolean): Promise<void> {
  await clock.advance(1_000);
  room.look();
  if (hasRoom !== undefined) asked.pop()?.(hasRoom);
  await settle();
}

test("groups that succeed on a full disk end nothing, and no disk is asked before one found none", async () => {
  room.noteKept();
  await look();
  expect([asked.length, room.trouble]).toEqual([0, null]);
  room.noteNone();
  for (let turn = 0; turn < 5; turn++) {
    room.noteKept();
    await look(false);
    expect(room.trouble).toBe(FULL);
  }
  expect(told).toEqual([FULL]);
});

test("room alone ends nothing either: the first group that succeeds after it does", async () => {
  room.noteNone();
  await look(true);
  expect(room.trouble).toBe(FULL);
  room.noteKept();
  expect([room.trouble, told]).toEqual([null, [FULL, null]]);
});

test("a group that finds none while the disk is asked makes its answer one of before", async () => {
  room.noteNone();
  await look();
  room.noteNone();
  asked.pop()?.(true);
  await settle();
  room.noteKept();
  expect(room.trouble).toBe(FULL);
  await look(true);
  room.noteNone();
  room.noteKept();
  expect(room.trouble).toBe(FULL);
});

test("the disk is asked once at a time, and not before it is due", async () => {
  room.noteNone();
  room.look();
  expect(asked).toHaveLength(0);
  await look();
  await look();
  expect(asked).toHaveLength(1);
});
