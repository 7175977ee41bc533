/**
 * The disk is full while the service runs. The service refuses what it cannot store, stores nothing partially, and recovers without help when there
 * is space.
 */
import { expect } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { testOfFile } from "../kit/chosen-store.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

/** Lets the database grow by this many pages; null removes the limit. */
async function leaveRoom(running: RunningService, pages: number | null): Promise<void> {
  await running.service.store.write("app", async (tx) => {
    const { page_count: now } = (await tx.get<{ page_count: number }>("PRAGMA page_count")) ?? {
      page_count: 0,
    };
    await tx.get(`PRAGMA max_page_count = ${pages === null ? 1_073_741_823 : now + pages}`);
  });
}

const limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1_000_000 };

testOfFile("receivers answer 503 not_recorded on a full disk, other requests work, and nothing is stored partially", async () => {
  await using running = await startRunningService({ config: { limits } });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  const send = (id: string) => running.hook("orders", signedCall({ id, amount: 1, pad: "x".repeat(20_000) }));
  const taken = new Set<string>();
  const refused = new Set<string>();
  await leaveRoom(running, 60);
  for (let n = 0; n < 60; n++) {
    const answer = await send(`event-${n}`);
    if (answer.status === 200) taken.add(`event-${n}`);
    else {
      expect({ status: answer.status, code: answer.body.code }).toEqual({
        status: 503,
        code: "not_recorded",
      });
      refused.add(`event-${n}`);
    }
  }
  expect(taken.size).toBeGreaterThan(0);
  expect(refused.size).toBeGreaterThan(0);

  const person = await running.api("POST", "/persons", { email: "bo@example.com" });
  expect([201, 503]).toContain(person.status);
  expect((await running.api("GET", "/events")).status).toBe(200);
  expect((await fetch(`${running.service.url}/healthz`)).status).toBe(200);
  expect((await send("event-0")).body).toMatchObject({ duplicate: true });
  const unsigned = await running.hook("orders", { headers: { "x-signature": "0".repeat(64) }, body: "{}" });
  expect(unsigned.status).toBe(401);

  await leaveRoom(running, null);
  for (const id of refused) expect((await send(id)).body.duplicate).toBeUndefined();
  for (const id of taken) expect((await send(id)).body.duplicate).toBe(true);
  for (let minute = 0; minute < 10; minute++) {
    await running.clock.advance(60_000);
    await running.drain();
  }
  const states = await running.rows("SELECT state, count(*) AS count FROM event GROUP BY state");
  expect(states).toEqual([{ state: "done", count: 60 }]);
  const kept = await running.rows<{ id: string }>("SELECT json_extract(data, '$.order') AS id FROM record");
  expect(kept.map(({ id }) => id).sort()).toEqual([...taken, ...refused].sort());
  expect(await running.rows("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  expect((await fetch(`${running.service.url}/readyz`)).status).toBe(200);
});

testOfFile("a request that could not be stored does not use up its one-time signature", async () => {
  await using running = await startRunningService({ config: { limits } });
  const verify = {
    scheme: "signature",
    header: "x-signature",
    signedPayload: "{url}{params}",
    encoding: "hex",
  };
  const actions = [{ type: "call_url", url: "https://example.test/" }];
  const secret = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
  await saveRelay(running, receiverDefinition({ verify, actions }), secret);
  const pad = "x".repeat(30_000);
  const text = `https://relay.example.test/hooks/app_test/ordersid1pad${pad}`;
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    "x-signature": new Bun.CryptoHasher("sha256", secret).update(text).digest("hex"),
  };
  const send = () => running.hook("orders", { headers, body: `id=1&pad=${pad}` });
  await leaveRoom(running, 0);
  expect((await send()).status).toBe(503);
  await leaveRoom(running, null);
  expect((await send()).body).toMatchObject({ received: true });
  expect((await send()).body).toMatchObject({ duplicate: true });
  expect(await running.rows("SELECT seq FROM event")).toHaveLength(1);
});
