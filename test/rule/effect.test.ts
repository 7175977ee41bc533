/** Records of external effects: each intended effect is settled once, and a completed effect is never forgotten. */
import { expect, test } from "bun:test";
import { DAY_MS, EVENT_RETENTION_MS } from "../../src/base/limit.ts";
import { completeEffect, deleteIntent, finalizeEffect, intendEffect } from "../../src/engine/event/effect.ts";
import { deleteUnusedActionLists, storeActionList } from "../../src/engine/event/run.ts";
import type { LiveRelay } from "../../src/rules/relay/live-relay.ts";
import { UniqueViolation, type Writer } from "../../src/store/port.ts";
import { openFreshStore } from "../kit/fresh-store.ts";

const { store } = await openFreshStore();
const key = "email_person\n\nfingerprint\n1";
let seq = 0;

/** Builds an attempt. The first attempt belongs to a new event. */
const working = (runs = 1) => ({ seq: runs === 1 ? ++seq : seq, runs });
const write = (work: (tx: Writer) => Promise<void>) => store.write("relay", work);
const effects = () => store.read((tx) => tx.all("SELECT state, result, run FROM effect WHERE event_seq = ?1", seq));

test("one attempt settles an intended effect, and a second attempt that owns it no more changes nothing", async () => {
  const first = working();
  await write((tx) => intendEffect(tx, { seq, runs: 1 }, key, "mark"));
  expect(await effects()).toEqual([{ state: "intended", result: '"mark"', run: 1 }]);
  await write((tx) => finalizeEffect(tx, first, key, "first"));
  await expect(write((tx) => finalizeEffect(tx, working(2), key, "second"))).rejects.toThrow("not intended any more");
  expect(await effects()).toEqual([{ state: "done", result: '"first"', run: 1 }]);
});

test("an effect without an intent cannot be settled", async () => {
  const one = working();
  await expect(write((tx) => finalizeEffect(tx, one, key, "done"))).rejects.toThrow("not intended any more");
  expect(await effects()).toEqual([]);
});

test("an intent is deleted if nothing was sent, and a completed effect stays and is stored once", async () => {
  const one = working();
  await write((tx) => intendEffect(tx, { seq, runs: 1 }, key, undefined));
  await write((tx) => deleteIntent(tx, seq, key));
  expect(await effects()).toEqual([]);
  await write((tx) => completeEffect(tx, one, key, { id: 1 }));
  await write((tx) => deleteIntent(tx, seq, key));
  await expect(write((tx) => completeEffect(tx, working(2), key, { id: 2 }))).rejects.toBeInstanceOf(UniqueViolation);
  expect(await effects()).toEqual([{ state: "done", result: '{"id":1}', run: 1 }]);
});

test("a list of actions is marked as used once a day, and deleted when no stored event can have run it", async () => {
  const relay = { actionList: { text: "[]", fingerprint: "list" } } as LiveRelay;
  const usedAt = () => store.read((tx) => tx.all("SELECT used_at AS usedAt FROM action_list"));
  for (const [atMs, noted] of [
    [DAY_MS, DAY_MS],
    [2 * DAY_MS - 1, DAY_MS],
    [2 * DAY_MS, 2 * DAY_MS],
  ] as const) {
    await write((tx) => storeActionList(tx, relay, atMs));
    expect(await usedAt()).toEqual([{ usedAt: noted }]);
  }
  const forget = (nowMs: number) => store.write("relay", (tx) => deleteUnusedActionLists(tx, nowMs));
  expect(await forget(2 * DAY_MS + 2 * EVENT_RETENTION_MS)).toBe(0);
  expect(await forget(2 * DAY_MS + 2 * EVENT_RETENTION_MS + 1)).toBe(1);
});
