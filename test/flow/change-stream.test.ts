/** The stream of changes: what it says of what happens, to whom, how often, and when it ends. */
import { afterAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { mintApiKey, revokeApiKey } from "../../src/platform/account/api-key.ts";
import { followChanges } from "../kit/change-stream.ts";
import { putEvents, WRITE } from "../kit/event-flow.ts";
import { poll } from "../kit/patience.ts";
import { HOOK_SECRET, receiverDefinition } from "../kit/relay-definition.ts";
import { APP, startRunningService } from "../kit/running-service.ts";

const running = await startRunningService({ config: { clock: systemClock }, environments: ["development", "production"] });
afterAll(() => running[Symbol.asyncDispose]());

const follow = (environment: "development" | "production" = "development", key = running.keys[environment], { service } = running) =>
  followChanges(`${service.url}/api/apps/${APP}/${environment}/stream`, { authorization: `Bearer ${key}` });

const definition = receiverDefinition({ map: { event_id: "id" }, actions: [{ ...WRITE, collection: "invoices" }] });
await running.api("POST", "/relays", { definition, secret: HOOK_SECRET });
const fields = { order: { type: "text" } };

describe("says what changed, of", () => {
  const rows: readonly [what: string, kinds: readonly string[], act: () => Promise<unknown>][] = [
    ["an event that came and ran", ["event"], () => putEvents(running, ["inv_1"], { nowMs: systemClock.now() })],
    ["a refused call", ["call"], () => running.hook("orders", { headers: { "x-signature": "wrong" }, body: "{}" })],
    ["a collection that was made", ["audit"], () => running.api("POST", "/collections", { name: "invoices", kind: "shared", fields })],
    ["a record that was written", ["record"], () => running.api("POST", "/collections/invoices/records", { data: { order: "1" } })],
    ["a relay that was paused", ["relay", "audit"], () => running.api("POST", "/relays/orders/pause", {})],
    ["an event that waits for its relay", ["event"], () => putEvents(running, ["inv_2"], { nowMs: systemClock.now() })],
    [
      "a setting",
      ["setting", "audit"],
      async () => {
        const { version } = (await running.api("GET", "/settings")).body.settings;
        return await running.api("PUT", "/settings", { version, held: true });
      },
    ],
  ];
  for (const [what, kinds, act] of rows) {
    test(what, async () => {
      await using stream = await follow();
      await using beside = await follow("production");
      await act();
      for (const kind of kinds) await stream.until(kind);
      expect(beside.messages.flat().filter((kind) => kinds.includes(kind))).toEqual([]);
    });
  }
});

test("what another process wrote may be anything", async () => {
  await using stream = await follow();
  await running.beside.run("UPDATE environment SET name = name");
  await stream.until("bulk_replay");
});

test("a flood is told twice a second, whoever reads", async () => {
  await using own = await startRunningService();
  await own.api("POST", "/relays", { definition: receiverDefinition({ map: { event_id: "id" } }), secret: HOOK_SECRET });
  // What the save touched is told before.
  await own.clock.advance(1_000);
  await using stream = await follow("development", own.keys["development"], own);
  await using other = await follow("development", own.keys["development"], own);
  for (let at = 0; at < 40; at++) {
    await putEvents(
      own,
      Array.from({ length: 10 }, (_, nth) => `flood_${at}_${nth}`),
    );
    await own.clock.advance(50);
  }
  await own.clock.advance(500);
  await own.api("POST", "/relays/orders/pause", {});
  await own.clock.advance(500);
  for (const { messages, until } of [stream, other]) {
    await until("relay");
    const told = messages.slice(
      0,
      messages.findIndex((changed) => changed.includes("relay")),
    );
    const ofFlood = told.filter((changed) => changed.includes("event"));
    // In two and a half seconds of its clock: a first time, and then once each half second.
    expect([ofFlood.length, told.filter((changed) => changed.length > 0)]).toEqual([5, ofFlood]);
  }
});

test("it ends with its key, at the first thing that changes afterwards", async () => {
  const [{ id } = { id: 0 }] = await running.rows<{ id: number }>("SELECT id FROM environment WHERE name = 'development'");
  const nowMs = systemClock.now();
  const minted = await running.service.store.write("app", (tx) =>
    mintApiKey(tx, { environment: { id, name: "development" }, kind: "secret", name: "follower", nowMs }),
  );
  await using stream = await follow("development", minted.token);
  await running.service.store.write("app", (tx) => revokeApiKey(tx, id, minted.key.id, nowMs));
  await running.api("POST", "/relays/orders/resume", {});
  await stream.ended;
  expect(stream.messages.flat()).not.toContain("relay");
});

test("a session or key has so many at a time, and room again when one has ended", async () => {
  const open = await Promise.all(Array.from({ length: 16 }, () => follow("production")));
  const refused = await fetch(`${running.service.url}/api/apps/${APP}/production/stream`, {
    headers: { authorization: `Bearer ${running.keys["production"]}` },
  });
  expect([refused.status, (await refused.json()).code]).toEqual([429, "streams_capped"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  for (const one of open) await one[Symbol.asyncDispose]();
  const look = async (): Promise<number> => {
    await using again = await follow("production");
    return again.status;
  };
  expect(await poll(look, (status) => status === 200)).toBe(200);
});

test("the service's end ends it at once", async () => {
  await using own = await startRunningService();
  await using stream = await follow("development", own.keys["development"], own);
  // Its clock stands still: an end that waited for who follows would not come.
  await own.restart();
  await stream.ended;
  await using again = await follow("development", own.keys["development"], own);
  expect(again.status).toBe(200);
});
