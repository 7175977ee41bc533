/** Tests /metrics over HTTP: access to it, and values that follow the service's work. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ApiServer, type Call, startApi } from "../kit/api-server.ts";
import { parsePrometheus, sampleOf } from "../kit/prometheus-text.ts";

let api: ApiServer;

beforeAll(async () => {
  api = await startApi({ trustedProxies: ["127.0.0.1"] });
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
});

async function read(): Promise<string> {
  await api.clock.advance(1_000);
  return (await api.call("/metrics")).text;
}

describe("access", () => {
  const FORWARDED = { "x-forwarded-for": "203.0.113.7" };
  const rules: { rule: string; call: () => Call; status: number }[] = [
    { rule: "a local caller needs no key", call: () => ({}), status: 200 },
    {
      rule: "a remote caller without a key is rejected",
      call: () => ({ headers: FORWARDED }),
      status: 401,
    },
    {
      rule: "a remote caller with a secret key can read",
      call: () => ({ key: api.keys.dev, headers: FORWARDED }),
      status: 200,
    },
    {
      rule: "a key of any environment can read",
      call: () => ({ key: api.keys.other, headers: FORWARDED }),
      status: 200,
    },
    {
      rule: "an app key is rejected",
      call: () => ({ key: api.keys.app, headers: FORWARDED }),
      status: 403,
    },
    {
      rule: "a wrong key is rejected",
      call: () => ({ key: "sk_dev_wrong", headers: FORWARDED }),
      status: 401,
    },
    { rule: "an owner's session can read", call: () => ({ session: true, headers: FORWARDED }), status: 200 },
    {
      rule: "a local proxy that names no client counts as remote",
      call: () => ({ headers: { via: "1.1 proxy" } }),
      status: 401,
    },
    {
      rule: "a page whose host name was rebound to this machine is rejected",
      call: () => ({ headers: { host: "rebound.example.com" } }),
      status: 401,
    },
  ];
  for (const { rule, call, status } of rules) {
    test(rule, async () => {
      const reply = await api.call("/metrics", call());
      expect(reply.status).toBe(status);
      if (status === 200) expect(parsePrometheus(reply.text).has("relay_events")).toBe(true);
      else expect(reply.text).not.toContain("relay_");
    });
  }

  test("the response is plain text of the format's version, and is never cached", async () => {
    const { headers } = await api.call("/metrics");
    expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(headers.get("cache-control")).toBe("no-store");
  });
});

test("a webhook increments the counter of its outcome and the queue", async () => {
  const made = await api.call(`${api.E}/relays`, {
    method: "POST",
    key: api.keys.dev,
    body: {
      definition: {
        name: "orders",
        trigger: { kind: "receiver", verify: { scheme: "shared_token" }, map: { event_id: "id" } },
        actions: [{ type: "call_url", url: "https://example.com/notice" }],
      },
    },
  });
  expect(made.status).toBe(201);
  // Stops the runner, so that events stay queued.
  await api.service.runner.stop();
  const post = (token: string, id: string) =>
    api.call("/hooks/shop/orders", {
      method: "POST",
      headers: { "x-webhook-token": token },
      body: { id },
    });
  const names = ["accepted", "duplicate", "bad_signature", "unknown_receiver"];
  const counts = async (): Promise<number[]> => {
    const text = await read();
    const calls = names.map((outcome) => sampleOf(text, `relay_receiver_calls_total{outcome="${outcome}"}`));
    return [...calls, sampleOf(text, 'relay_events{state="queued"}'), sampleOf(text, "relay_events_stored_total")];
  };
  expect(await counts()).toEqual([0, 0, 0, 0, 0, 0]);
  await post(made.json.receiverSecret, "one");
  await post(made.json.receiverSecret, "two");
  await post(made.json.receiverSecret, "two");
  await post("wrong", "three");
  await api.call("/hooks/shop/nobody", { method: "POST", body: {} });
  expect(await counts()).toEqual([2, 1, 1, 1, 2, 2]);
  await api.clock.advance(90_000);
  expect(sampleOf(await read(), "relay_queue_age_seconds")).toBeGreaterThanOrEqual(90);
});

test("sizes equal those of the files", async () => {
  const text = await read();
  const sizeOf = (name: string): number => Bun.file(`${api.dataDir}/${name}`).size;
  expect(sampleOf(text, "relay_database_bytes")).toBe(sizeOf("relay.db"));
  expect(sampleOf(text, "relay_database_wal_bytes")).toBe(sizeOf("relay.db-wal"));
  expect(sampleOf(text, "relay_data_directory_free_bytes")).toBeGreaterThan(0);
});
