/** /metrics over real HTTP: who may read it, and that it moves with what the service does. */
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

describe("who may read", () => {
  const FORWARDED = { "x-forwarded-for": "203.0.113.7" };
  const rules: { rule: string; call: () => Call; status: number }[] = [
    { rule: "this machine's own caller needs no key", call: () => ({}), status: 200 },
    {
      rule: "a caller from elsewhere without a key is refused",
      call: () => ({ headers: FORWARDED }),
      status: 401,
    },
    {
      rule: "a caller from elsewhere with a secret key reads",
      call: () => ({ key: api.keys.dev, headers: FORWARDED }),
      status: 200,
    },
    {
      rule: "the key may be of any environment",
      call: () => ({ key: api.keys.other, headers: FORWARDED }),
      status: 200,
    },
    {
      rule: "an app key reads nothing",
      call: () => ({ key: api.keys.app, headers: FORWARDED }),
      status: 403,
    },
    {
      rule: "a wrong key is refused",
      call: () => ({ key: "sk_dev_wrong", headers: FORWARDED }),
      status: 401,
    },
    { rule: "an owner's session reads", call: () => ({ session: true, headers: FORWARDED }), status: 200 },
    {
      rule: "a proxy on this machine that names nobody counts as elsewhere",
      call: () => ({ headers: { via: "1.1 proxy" } }),
      status: 401,
    },
    {
      rule: "a page whose name was pointed at this machine is refused",
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

  test("the answer is plain text of the format's version, never cached", async () => {
    const { headers } = await api.call("/metrics");
    expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(headers.get("cache-control")).toBe("no-store");
  });
});

test("a webhook moves the counters of its outcome and the queue", async () => {
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
  // So that what arrives stays queued.
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

test("sizes are those of the files", async () => {
  const text = await read();
  const sizeOf = (name: string): number => Bun.file(`${api.dataDir}/${name}`).size;
  expect(sampleOf(text, "relay_database_bytes")).toBe(sizeOf("relay.db"));
  expect(sampleOf(text, "relay_database_wal_bytes")).toBe(sizeOf("relay.db-wal"));
  expect(sampleOf(text, "relay_data_directory_free_bytes")).toBeGreaterThan(0);
});
