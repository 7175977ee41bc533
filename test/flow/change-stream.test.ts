/** Tests the stream of changes: its messages, its readers, its rate and its end. */
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

describe("reports changes of", () => {
  const rows: readonly [what: string, kinds: readonly string[], act: () => Promise<unknown>][] = [
    ["an event that arrived and ran", ["event"], () => putEvents(running, ["inv_1"], { nowMs: systemClock.now() })],
    ["a rejected request", ["call"], () => running.hook("orders", { headers: { "x-signature": "wrong" }, body: "{}" })],
    ["a new collection", ["audit"], () => running.api("POST", "/collections", { name: "invoices", kind: "shared", fields })],
    ["a new record", ["record"], () => running.api("POST", "/collections/invoices/records", { data: { order: "1" } })],
    ["a paused relay", ["relay", "audit"], () => running.api("POST", "/relays/orders/pause", {})],
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
      await using direct = await follow("production");
      await act();
      for (const kind of kinds) await stream.until(kind);
      expect(direct.messages.flat().filter((kind) => kinds.includes(kind))).toEqual([]);
    });
  }
});

test("reports all kinds of data after another process writes", async () => {
  await using stream = await follow();
  await running.direct.run("UPDATE environment SET name = name");
  await stream.until("bulk_replay");
});

test("reports a flood twice a second, for each reader", async () => {
  await using own = await startRunningService();
  await own.api("POST", "/relays", { definition: receiverDefinition({ map: { event_id: "id" } }), secret: HOOK_SECRET });
  // Reports the changes of the save before the flood.
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
    // Reports once at first, and then every half second, for two and a half seconds of the clock.
    expect([ofFlood.length, told.filter((changed) => changed.length > 0)]).toEqual([5, ofFlood]);
  }
});

test("ends after its key is revoked, at the next change", async () => {
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

test("limits the streams per session or key, and frees a place when one ends", async () => {
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

test("ends at once when the service stops", async () => {
  await using own = await startRunningService();
  await using stream = await follow("development", own.keys["development"], own);
  // The test clock does not advance, so a stop that waits for readers never completes.
  await own.restart();
  await stream.ended;
  await using again = await follow("development", own.keys["development"], own);
  expect(again.status).toBe(200);
});
