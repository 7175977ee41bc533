/** The relays in memory: a stored snapshot is never older than the last change. */
import { expect, test } from "bun:test";
import { type LiveRelay, LiveRelays, Snapshot } from "../../src/rules/relay/live-relay.ts";
import type { Store } from "../../src/store/port.ts";
import { openTestStore } from "../kit/fresh-store.ts";
import { makeRelayKit, receiver, sealer } from "../kit/relay-kit.ts";

const SCHEDULE = {
  id: "rly_1",
  name: "daily",
  state: "active",
  heldAt: null,
  sourceName: null,
  signingSecret: null,
  previousSigningSecret: null,
  previousSigningSecretUntil: null,
  definition: '{ "name": "daily", "trigger": { "kind": "schedule", "every": "1d" }, "actions": [] }',
};

/** Opens relays over reads that the test ends. */
function openHeld() {
  const reads: PromiseWithResolvers<object[]>[] = [];
  const read = () => {
    const one = Promise.withResolvers<object[]>();
    reads.push(one);
    return one.promise;
  };
  let reloads = 0;
  const onSchedules = () => {
    reloads += 1;
  };
  const relays = new LiveRelays({ store: { read } as Partial<Store> as Store, sealer, baseUrl: () => "https://relay.example.com", onSchedules });
  return { relays, reads, reloads: () => reloads };
}

test("a load that a change overtook is not stored, whichever of the two ends first", async () => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const { relays, reads, reloads } = openHeld();
    const overtaken = relays.current();
    relays.invalidate();
    const present = relays.current();
    for (const at of order) reads[at]?.resolve([SCHEDULE]);
    expect(await relays.current()).toBe(await present);
    expect(await overtaken).not.toBe(await present);
    expect([reads.length, reloads()]).toEqual([2, 1]);
  }
});

test("the next caller retries a failed load, and concurrent callers share one load", async () => {
  const { relays, reads } = openHeld();
  const failing = [relays.current(), relays.current()];
  expect(reads).toHaveLength(1);
  reads[0]?.reject(new Error("The disk is gone."));
  for (const one of failing) await expect(one).rejects.toThrow("The disk is gone.");
  const next = relays.current();
  reads[1]?.resolve([]);
  expect(await relays.current()).toBe(await next);
});

test("a reload reports whose events it makes due: relays that no longer wait, and relays that were deleted", () => {
  const snapshotOf = (waiting: Record<string, boolean>) => {
    const definition = { trigger: { kind: "receiver" } };
    const relays = Object.entries(waiting).map(([id, waits]) => ({ id, definition, waiting: waits, receiver: null }) as unknown as LiveRelay);
    return new Snapshot(relays);
  };
  const before = snapshotOf({ released: true, still: true, gone: false, goneWaiting: true, ran: false, pausedNow: false });
  const after = snapshotOf({ released: false, still: true, ran: false, pausedNow: true, made: false });
  expect(after.listReleased(before)).toEqual(["released", "gone", "goneWaiting"]);
});

test("a reload decrypts only what changed", async () => {
  await using opened = await openTestStore({ environments: ["development"] });
  const kit = makeRelayKit(opened);
  for (const name of ["edited", "rotated", "paused", "still"]) await kit.create(receiver(name));
  let baseUrl = "https://relay.example.com";
  const relays = new LiveRelays({ store: opened.store, sealer, baseUrl: () => baseUrl });
  const load = async () => {
    relays.invalidate();
    return new Map((await relays.current()).relays.map((relay) => [relay.name, relay]));
  };
  const changed = (before: Map<string, LiveRelay>, after: Map<string, LiveRelay>) =>
    [...after.keys()].filter((name) => before.get(name) !== after.get(name)).sort();
  const first = await load();
  expect(changed(first, await load())).toEqual([]);
  await kit.update("edited", receiver("edited", undefined, undefined, { map: { event_id: "other" } }), 1);
  await kit.rotate("rotated", null);
  await opened.store.write("dashboard", (tx) => tx.run("UPDATE relay SET state = 'paused' WHERE name = 'paused'"));
  const second = await load();
  expect(changed(first, second)).toEqual(["edited", "paused", "rotated"]);
  expect([second.get("edited")?.version, second.get("paused")?.waiting]).toEqual([2, true]);
  baseUrl = "https://elsewhere.example.com";
  const third = await load();
  expect(third.get("still")?.receiver?.url).toBe("https://elsewhere.example.com/hooks/app_test/still");
  await opened.store.write("dashboard", (tx) => tx.run("UPDATE relay SET secret = x'00' WHERE name = 'still'"));
  expect((await load()).get("still")?.receiver?.closed).toBe("unreadable");
});
