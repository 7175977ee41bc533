/**
 * A signed-up person who never stops writing. The service limits writes, stored bytes and the events that writes cause, by person, by address and by
 * app. The owner gets an alert, and the app's own requests still work.
 */
import { expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { Limiter } from "../../src/base/limiter.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { manage, type SignedIn, signIn } from "../kit/app-visitor.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

type Limits = Partial<typeof DEFAULT_LIMITS>;

async function openShop(limits: Limits): Promise<ApiServer & { ann: SignedIn; bo: SignedIn }> {
  const config = {
    mode: "local",
    limits: { ...DEFAULT_LIMITS, ...limits },
    trustedProxies: ["127.0.0.1"],
  } as const;
  const api = await startApi(config);
  const fields = { text: { type: "text" } };
  for (const name of ["notes", "watched"]) await manage(api, "POST", "/collections", { name, kind: "private", fields });
  const definition = {
    name: "watcher",
    trigger: { kind: "data_change", collection: "watched", on: ["created", "updated"] },
    actions: [{ type: "write_record", collection: "notes", data: { text: "seen" } }],
  };
  for (const name of ["watcher", "second"]) await manage(api, "POST", "/relays", { definition: { ...definition, name } });
  return Object.assign(api, {
    ann: await signIn(api, "ann@example.com"),
    bo: await signIn(api, "bo@example.com"),
  });
}

const NOTES = "/collections/notes/records";
const WATCHED = "/collections/watched/records";

interface Flood {
  name: string;
  limits: Limits;
  /** Number of Ann's writes that are accepted before the first that is not. */
  taken: number;
  path?: string;
  /** Address of Ann's writes, by their number. */
  from?: (turn: number) => string;
  sentence: string;
  target: RegExp;
  /** True if Bo, at another address, is refused too. */
  boRefused: boolean;
}

const FLOODS: Flood[] = [
  {
    name: "a person's writes within a minute, from however many addresses",
    limits: { clientWritesPerPersonPerMinute: 3 },
    taken: 3,
    from: (turn) => `203.0.113.${turn}`,
    sentence: "The limit of 3 writes of one person within a minute is reached: write again after resetAt.",
    target: /^person:per_/,
    boRefused: false,
  },
  {
    name: "writes from one address",
    limits: { clientWritesPerAddressPerMinute: 2 },
    taken: 2,
    sentence: "The limit of 2 writes from one network address within a minute is reached: write again after resetAt.",
    target: /^person:per_/,
    boRefused: false,
  },
  {
    name: "writes from one /64 of IPv6, however its addresses change",
    limits: { clientWritesPerAddressPerMinute: 2 },
    taken: 2,
    from: (turn) => `2001:db8:1:2::${turn}`,
    sentence: "The limit of 2 writes from one network address within a minute is reached: write again after resetAt.",
    target: /^person:per_/,
    boRefused: false,
  },
  {
    name: "the writes of all people of an app",
    limits: { clientWritesPerAppPerMinute: 4 },
    taken: 4,
    from: (turn) => `203.0.113.${turn}`,
    sentence: "The limit of 4 writes of all people of the app within a minute is reached: write again after resetAt.",
    target: /^client:writes$/,
    boRefused: true,
  },
  {
    name: "events that a person's writes make: two relays watch, so a write makes two",
    limits: { clientEventsPerPersonPerMinute: 4 },
    taken: 2,
    path: WATCHED,
    sentence: "The limit of 4 events that one person's writes make within a minute is reached: write again after resetAt.",
    target: /^person:per_/,
    boRefused: false,
  },
  {
    name: "events that the writes of all people make",
    limits: { clientEventsPerAppPerMinute: 6 },
    taken: 3,
    path: WATCHED,
    sentence: "The limit of 6 events that the writes of all people of the app make within a minute is reached: write again after resetAt.",
    target: /^client:writes$/,
    boRefused: true,
  },
];

for (const flood of FLOODS) {
  test(`${flood.name} are limited for the minute, and the owner gets one alert`, async () => {
    await using shop = await openShop(flood.limits);
    const { path = NOTES, from = () => "203.0.113.9" } = flood;
    const write = (who: SignedIn, source: string, text = "hi") => who.call("POST", path, { data: { text } }, { "x-forwarded-for": source });
    for (let turn = 1; turn <= flood.taken; turn++) expect((await write(shop.ann, from(turn))).status).toBe(201);
    for (const again of [1, 2]) {
      const refused = await write(shop.ann, from(flood.taken + again));
      expect(refused.status).toBe(429);
      expect(refused.json).toMatchObject({
        code: "writes_capped",
        message: flood.sentence,
        resetAt: new Date(shop.clock.now() + 60_000).toISOString(),
      });
      expect(refused.headers.get("retry-after")).toBe("60");
    }
    expect((await write(shop.bo, "198.51.100.7")).status).toBe(flood.boRefused ? 429 : 201);
    // The app's own requests still work.
    await manage(shop, "POST", path, { data: { text: "from the app" } });
    const { items } = await manage(shop, "GET", "/alerts");
    const told = items.filter(({ code }: { code: string }) => code === "writes_capped");
    expect(told).toEqual([expect.objectContaining({ target: expect.stringMatching(flood.target), count: 1 })]);
    expect(told[0].message).toContain(`RELAY_LIMIT_CLIENT_`);

    await shop.clock.advance(60_000);
    expect((await write(shop.ann, from(1))).status).toBe(201);
  });
}

test("changes and deletions count as writes, and so do refused writes", async () => {
  await using shop = await openShop({ clientWritesPerPersonPerMinute: 4 });
  const made = await shop.ann.call("POST", NOTES, { data: { text: "hi" } });
  const one = `${NOTES}/${made.json.record.id}`;
  expect((await shop.ann.call("PUT", one, { data: { text: "ho" } })).status).toBe(200);
  expect((await shop.ann.call("PUT", one, { data: { nothing: 1 } })).status).toBe(400);
  expect((await shop.ann.call("DELETE", one)).status).toBe(204);
  expect((await shop.ann.call("POST", NOTES, { data: { text: "hi" } })).status).toBe(429);
  expect((await shop.ann.call("GET", NOTES)).status).toBe(200);
});

const MB = 1024 * 1024;
const quarter = { text: "x".repeat(MB / 4 - 20) };

test("a person's records cannot exceed their limit, smaller and deleted ones free space, and other people are not affected", async () => {
  await using shop = await openShop({ storedPerPersonMb: 1 });
  const ids: string[] = [];
  for (let turn = 0; turn < 4; turn++) {
    ids.push((await shop.ann.call("POST", NOTES, { data: quarter })).json.record.id);
  }
  const refused = await shop.ann.call("POST", NOTES, { data: quarter });
  expect(refused.status).toBe(429);
  expect(refused.json.code).toBe("storage_capped");
  expect(refused.json.message).toContain("at most 1 MB");
  expect((await shop.ann.call("GET", NOTES)).json.items).not.toBeEmpty();
  expect((await shop.bo.call("POST", NOTES, { data: quarter })).status).toBe(201);
  // The app can still write for the person. After that, the person can only shrink or delete records.
  await manage(shop, "POST", NOTES, { data: quarter, owner: shop.ann.id });
  expect((await shop.ann.call("PUT", `${NOTES}/${ids[0]}`, { data: { text: "small" } })).status).toBe(200);
  expect((await shop.ann.call("PUT", `${NOTES}/${ids[0]}`, { data: quarter })).json.code).toBe("storage_capped");
  expect((await shop.ann.call("DELETE", `${NOTES}/${ids[1]}`)).status).toBe(204);
  expect((await shop.ann.call("PUT", `${NOTES}/${ids[0]}`, { data: quarter })).status).toBe(200);
});

test("an environment's records and files cannot exceed its limit for any writer, and the owner gets one alert", async () => {
  await using shop = await openShop({ storedPerEnvironmentMb: 1 });
  const upload = () =>
    shop.call(`${shop.E}/files?name=a.bin`, {
      method: "POST",
      key: shop.keys.dev,
      bytes: new Uint8Array(MB / 2),
    });
  const { file } = (await upload()).json;
  await manage(shop, "POST", NOTES, { data: quarter });
  expect((await shop.ann.call("POST", NOTES, { data: quarter })).status).toBe(201);
  const written = await shop.call(`${shop.E}${NOTES}`, { method: "POST", key: shop.keys.dev, body: { data: quarter } });
  for (const [refused, word] of [
    [await upload(), "at most 1 MB"],
    [await shop.ann.call("POST", NOTES, { data: quarter }), "This app has no space left"],
    [written, "at most 1 MB"],
  ] as const) {
    expect(refused.json.code).toBe("storage_capped");
    expect(refused.json.message).toContain(word);
  }
  expect((await shop.ann.call("POST", NOTES, { data: quarter })).json.code).toBe("storage_capped");
  expect((await manage(shop, "GET", "/alerts")).items).toEqual([
    expect.objectContaining({
      code: "writes_capped",
      target: "client:storage",
      count: 1,
      message: expect.stringContaining("RELAY_LIMIT_STORED_PER_ENVIRONMENT_MB"),
    }),
  ]);
  await shop.call(`${shop.E}/files/${file.id}`, { method: "DELETE", key: shop.keys.dev });
  await manage(shop, "POST", NOTES, { data: quarter });
});

test("stored bytes are counted exactly, through every kind of change", async () => {
  await using shop = await openShop({});
  const { record } = await manage(shop, "POST", NOTES, { data: { text: "ä".repeat(10) } });
  await manage(shop, "PUT", `${NOTES}/${record.id}`, { data: { text: "b" }, owner: shop.ann.id });
  await manage(shop, "PUT", `${NOTES}/${record.id}`, { data: { text: "cc" }, owner: shop.bo.id });
  await manage(shop, "POST", NOTES, { data: { text: "d" }, owner: shop.bo.id });
  const { record: gone } = await manage(shop, "POST", NOTES, { data: { text: "e" }, owner: shop.ann.id });
  await manage(shop, "DELETE", `${NOTES}/${gone.id}`);
  await manage(shop, "PUT", `${NOTES}/${record.id}`, { data: { text: "ccc" }, owner: null });
  const rows = await shop.store.read((tx) =>
    tx.all<{ owner: string; bytes: number }>("SELECT owner_id AS owner, bytes FROM stored_bytes WHERE bytes > 0 ORDER BY owner_id"),
  );
  expect(rows).toEqual([
    { owner: "", bytes: '{"text":"ccc"}{"text":"d"}'.length },
    { owner: shop.bo.id, bytes: '{"text":"d"}'.length },
  ]);
});

test("a full window survives a million other names, in bounded memory", () => {
  const clock = new VirtualClock(0);
  const cap = new Limiter(clock, 5, 60_000, { maxWindows: 1_000 });
  cap.count("flooder", 5);
  for (let name = 0; name < 1_000_000; name++) cap.count(`2001:db8::${name}`);
  expect(cap.fullUntil("flooder")).toBe(60_000);
});
