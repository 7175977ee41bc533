/** Alert channels: each alert at least once and in order, grouped, then resolved. A failing service delays no other channel and becomes a problem. */
import { beforeEach, describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { createLog } from "../../src/base/log.ts";
import { AlertChannels } from "../../src/engine/maintenance/alert-channels.ts";
import { type AlertCode, raiseAlert } from "../../src/platform/audit/alert.ts";
import { listOpenProblemsOfTarget, raiseProblem, resolveAlertsOf } from "../../src/platform/audit/problem.ts";
import { type Channel, changeChannel, createChannel, listChannels, removeChannel } from "../../src/platform/channel/channel.ts";
import { CHANNEL_KINDS } from "../../src/platform/channel/channel-kind.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { type FencedStore, StoreUnavailable } from "../../src/store/port.ts";
import { FakeCaller, type Reply } from "../kit/fake-caller.ts";
import { type FreshStore, openFreshStore } from "../kit/fresh-store.ts";

const SLACK = "https://hooks.slack.com/services/T0/B0/x";
const HOOK = "https://example.com/alerts";
const FIELDS: Readonly<Record<string, Record<string, string>>> = {
  slack: { url: SLACK },
  discord: { url: "https://discord.com/api/webhooks/1/x" },
  pagerduty: { routingKey: "0123456789abcdef0123456789abcdef" },
  webhook: { url: HOOK },
};
const sealer = new Sealer(new Uint8Array(32));
const DEPS = { sealer: () => sealer, local: false, ownHosts: [], allowPrivate: [] };

let fresh: FreshStore;
let environmentId: number;
let caller: FakeCaller;
let logged: string[];
let sending: AlertChannels;

beforeEach(async () => {
  fresh = await openFreshStore();
  environmentId = (await fresh.environment("development")).id;
  caller = new FakeCaller();
  logged = [];
  sending = makeSending();
  sending.start();
});

function makeSending(store: FencedStore = fresh.store, key = sealer): AlertChannels {
  return new AlertChannels({
    store,
    clock: fresh.clock,
    log: createLog({ clock: fresh.clock, format: "json", sink: (line) => logged.push(line) }),
    sealer: key,
    caller,
    local: false,
    baseUrl: () => "https://relay.example.com",
  });
}

const change = (id = environmentId) => ({ environmentId: id, by: "owner:ada@example.com", nowMs: fresh.clock.now() });
const add = (kind: string, codes: AlertCode[] | null = null, id = environmentId): Promise<Channel> =>
  fresh.store.write("app", async (tx) => (await createChannel(tx, change(id), { kind, codes, fields: FIELDS[kind] ?? {} } as never, DEPS)).channel);
const raise = (name = "orders", code: AlertCode = "relay_failed", id = environmentId): Promise<void> =>
  fresh.store.write("app", (tx) =>
    raiseAlert(tx, { environmentId: id, code, target: `relay:${name}`, message: `The value 4711 of ${name}.`, nowMs: fresh.clock.now() }),
  );
const resolve = (name = "orders", code: AlertCode = "relay_failed"): Promise<void> =>
  fresh.store.write("app", (tx) => resolveAlertsOf(tx, { environmentId, code, target: `relay:${name}`, nowMs: fresh.clock.now() }));
const pass = (minutes: number) => fresh.clock.advance(minutes * MINUTE_MS);
const first = async (): Promise<Channel> => (await fresh.store.read((tx) => listChannels(tx, environmentId)))[0] as Channel;
const answer = (status: number, headers: Record<string, string> = {}): Reply => ({ kind: "answered", ok: status < 300, status, body: "", headers });
const problems = async (id: string): Promise<string[]> =>
  (await fresh.store.read((tx) => listOpenProblemsOfTarget(tx, environmentId, `channel:${id}`))).map(({ message }) => message);

/** The alerts of each request to the webhook: state, name and count. */
const sent = (url = HOOK): string[][] =>
  caller.requests
    .filter((request) => request.url === url)
    .map(({ body }) =>
      (JSON.parse(body).alerts as { state: string; target: string; count: number }[]).map(
        ({ state, target, count }) => `${state} ${target.slice(6)} ${count}`,
      ),
    );

describe("a channel", () => {
  test("gets the alerts that gathered in a minute in one message, and later that they are resolved", async () => {
    await add("webhook");
    for (let index = 0; index < 5; index++) await raise();
    await raise("invoices", "relay_silent");
    await pass(3);
    expect(sent()).toEqual([["open orders 5", "open invoices 1"]]);
    await resolve();
    await pass(2);
    await resolve("invoices", "relay_silent");
    await pass(5);
    expect(sent()).toEqual([["open orders 5", "open invoices 1"], ["resolved orders 5"], ["resolved invoices 1"]]);
  });

  test("fails with one sentence if another master key sealed its secrets, and cannot be changed", async () => {
    const { id } = await add("webhook");
    await sending.stop();
    const other = new Sealer(new Uint8Array(32).fill(1));
    sending = makeSending(fresh.store, other);
    sending.start();
    await raise();
    await pass(3);
    const sentence = "Another master key sealed the secrets of this channel: remove the channel and add it again.";
    expect(await problems(id)).toEqual([expect.stringContaining(sentence)]);
    expect([caller.requests, logged]).toEqual([[], []]);
    const changed = fresh.store.write("app", (tx) => changeChannel(tx, change(), id, { fields: { url: HOOK } }, { ...DEPS, sealer: () => other }));
    await expect(changed).rejects.toThrow(sentence);
  });

  test("gets an alert that is over within the minute as open, then as resolved, in order", async () => {
    await add("pagerduty");
    await raise();
    await resolve();
    await pass(3);
    expect(caller.requests.map(({ body }) => JSON.parse(body).event_action)).toEqual(["trigger", "resolve"]);
    const keys = new Set(caller.requests.map(({ body }) => JSON.parse(body).dedup_key));
    expect(keys.size).toBe(1);
  });

  test("gets an alert again that occurs again after it was resolved", async () => {
    await add("webhook");
    await raise();
    await pass(2);
    await resolve();
    await pass(2);
    await raise();
    await pass(2);
    await resolve();
    await pass(2);
    expect(sent()).toEqual([["open orders 1"], ["resolved orders 1"], ["open orders 2"], ["resolved orders 2"]]);
  });

  test("gets one resolved message for all hours of a lasting cause", async () => {
    await add("webhook");
    for (let hour = 0; hour < 3; hour++) {
      await raise();
      await pass(61);
    }
    await resolve();
    await pass(5);
    expect(sent()).toEqual([["open orders 1"], ["open orders 1"], ["open orders 1"], ["resolved orders 1"]]);
  });

  test("gets no resolved message of a cause that began again meanwhile, and one when that is over", async () => {
    await add("webhook");
    await raise();
    await pass(61);
    await resolve();
    await raise();
    await pass(3);
    await resolve();
    await pass(3);
    expect(sent()).toEqual([["open orders 1"], ["open orders 1"], ["resolved orders 1"]]);
  });

  test("gets only the alerts that it chose, of its environment, that began after it was added", async () => {
    await raise("before");
    await pass(1);
    await add("webhook", ["relay_silent"]);
    await raise("orders", "relay_failed");
    await raise("orders", "relay_silent");
    await raise("orders", "relay_silent", (await fresh.environment("production")).id);
    await pass(3);
    expect(sent()).toEqual([["open orders 1"]]);
  });

  test("gets no message of a recovery, because the resolved message says it", async () => {
    await add("webhook");
    await raise("orders", "relay_recovered");
    await pass(3);
    expect(caller.requests).toEqual([]);
  });

  test("gets no text of the alert, which may quote a payload", async () => {
    for (const kind of ["slack", "discord", "pagerduty", "webhook"]) await add(kind);
    await raise();
    await pass(3);
    expect(caller.requests).toHaveLength(4);
    expect(JSON.stringify(caller.requests)).not.toContain("4711");
  });

  test("gets many alerts in several messages, each once", async () => {
    await add("slack");
    for (let index = 0; index < 40; index++) await raise(`relay-${index}`);
    await pass(10);
    const texts = caller.requests.map(({ body }) => JSON.parse(body).blocks[1].text.text as string);
    const names = texts.flatMap((text) => [...text.matchAll(/^(relay-\d+): /gm)].map(([, name]) => name));
    expect(names).toEqual(Array.from({ length: 40 }, (_, index) => `relay-${index}`));
    expect(texts.length).toBeGreaterThan(1);
  });

  test("is signed as notices are, under an id that a repetition keeps", async () => {
    const { id } = await add("webhook");
    caller.reply = () => answer(500);
    await raise();
    await pass(3);
    expect(new Set(caller.requests.map(({ webhookId }) => webhookId)).size).toBe(1);
    expect(caller.requests[0]).toMatchObject({ signingSecret: expect.stringMatching(/^whsec_/), webhookId: expect.stringMatching(/^msg_/) });
    expect(caller.requests[0]?.headers).toBeUndefined();
    expect(id).toMatch(/^chn_/);
  });
});

describe("a service that takes no message", () => {
  test("gets the same message again later, and the newer alerts after it", async () => {
    await add("webhook");
    caller.reply = () => answer(500);
    await raise();
    await pass(2);
    const tried = caller.requests.length;
    expect(tried).toBeGreaterThan(0);
    await raise("invoices");
    caller.reply = () => answer(200);
    await pass(10);
    expect(sent().at(-1)).toEqual(["open orders 1", "open invoices 1"]);
    const all = caller.requests.length;
    await pass(10);
    expect(caller.requests).toHaveLength(all);
  });

  test("is asked less often the longer it fails, at least every hour", async () => {
    await add("webhook");
    caller.reply = () => answer(500);
    await raise();
    await fresh.clock.advance(5 * HOUR_MS, { everyTimer: true });
    expect(caller.requests.length).toBeGreaterThanOrEqual(8);
    expect(caller.requests.length).toBeLessThanOrEqual(11);
  });

  test("gets no request as long as it asks to wait", async () => {
    await add("webhook");
    caller.reply = () => answer(429, { "retry-after": "600" });
    await raise();
    await pass(9);
    expect(caller.requests).toHaveLength(1);
    caller.reply = () => answer(200);
    await pass(5);
    expect(caller.requests).toHaveLength(2);
  });

  test.each([404, 410, 401, 302])("raises a problem at once with %d, which resolves when it takes a message", async (status) => {
    const { id } = await add("webhook");
    caller.reply = () => answer(status);
    await raise();
    await pass(3);
    expect(caller.requests).toHaveLength(1);
    expect(await problems(id)).toEqual([expect.stringContaining(`Alerts do not reach the channel Webhook (Webhook). Webhook answered ${status}`)]);
    caller.reply = () => answer(204);
    await pass(62);
    expect(await problems(id)).toEqual([]);
    expect(caller.requests).toHaveLength(2);
    expect(await first()).toMatchObject({ failingAt: null, failures: 0, retryAt: null, result: "Webhook answered 204." });
  });

  test.each([
    ["500", answer(500)],
    ["a timeout", { kind: "unreachable", code: "timeout", message: "example.com did not answer within 10 seconds." } as const],
  ])("raises a problem after a quarter of an hour with %s", async (_, reply) => {
    const { id } = await add("webhook");
    caller.reply = () => reply;
    await raise();
    await pass(10);
    expect(await problems(id)).toEqual([]);
    await pass(30);
    expect(await problems(id)).toHaveLength(1);
  });

  test("raises no alert about itself", async () => {
    await add("webhook");
    caller.reply = () => answer(404);
    await raise();
    await pass(3);
    expect(await fresh.count("alert")).toBe(1);
  });

  test("delays no other channel, not even while it does not answer", async () => {
    await add("slack");
    await add("webhook");
    caller.reply = (url) => (url === SLACK ? "hang" : answer(200));
    await raise();
    await pass(3);
    expect(sent()).toEqual([["open orders 1"]]);
    await raise("invoices");
    await pass(3);
    expect(sent()).toEqual([["open orders 1"], ["open invoices 1"]]);
    expect(caller.hanging()).toBe(1);
    caller.letGo();
    await pass(2);
    expect(caller.requests.filter(({ url }) => url === SLACK)).toHaveLength(2);
  });

  test("gets no alert older than a day once it works again", async () => {
    await add("webhook");
    caller.reply = () => answer(404);
    await raise();
    await fresh.clock.advance(DAY_MS + HOUR_MS);
    await raise("invoices");
    caller.reply = () => answer(200);
    await fresh.clock.advance(2 * HOUR_MS);
    expect(sent().at(-1)).toEqual(["open invoices 1"]);
  });

  test("gets its alerts within a minute after the channel was changed", async () => {
    const { id } = await add("webhook");
    caller.reply = () => answer(404);
    await raise();
    await pass(3);
    caller.reply = () => answer(200);
    await fresh.store.write("app", (tx) => changeChannel(tx, change(), id, { fields: { url: "https://example.com/new" } }, DEPS));
    await pass(1);
    expect(sent("https://example.com/new")).toEqual([["open orders 1"]]);
  });

  test("is asked again at once if its problem is gone with the channel", async () => {
    const { id } = await add("webhook");
    caller.reply = () => answer(404);
    await raise();
    await pass(3);
    await fresh.store.write("app", (tx) => removeChannel(tx, change(), id));
    expect(await problems(id)).toEqual([]);
    await pass(120);
    expect(caller.requests).toHaveLength(1);
    expect([await fresh.count("alert_channel"), await fresh.count("alert_delivery")]).toEqual([0, 0]);
  });
});

describe("a process that dies", () => {
  test("between the call and the write sends that message again, and no other", async () => {
    await add("webhook");
    await raise();
    const { write } = fresh.store;
    fresh.store.write = async () => {
      throw new StoreUnavailable("killed");
    };
    await pass(1);
    await sending.stop();
    fresh.store.write = write;
    sending = makeSending();
    sending.start();
    await raise("invoices");
    await pass(5);
    expect(sent()).toEqual([["open orders 1"], ["open orders 1", "open invoices 1"]]);
  });

  test("leaves its channels to another, which sends no alert of a sent message again", async () => {
    await add("webhook");
    await raise();
    await pass(2);
    await sending.stop();
    sending = makeSending();
    sending.start();
    await raise("invoices");
    await resolve();
    await pass(3);
    expect(sent()).toEqual([["open orders 1"], ["resolved orders 1", "open invoices 1"]]);
  });
});

test("a node that loses its lease during a call records nothing, and the next node sends that message again", async () => {
  await add("webhook");
  await sending.stop();
  let isLost = false;
  const former = makeSending(
    fresh.store.withFence(async () => {
      if (isLost) throw new StoreUnavailable("another node has the lease");
    }),
  );
  former.start();
  caller.reply = () => "hang";
  await raise();
  await pass(2);
  expect(caller.hanging()).toBe(1);
  isLost = true;
  caller.reply = () => answer(200);
  const stopped = former.stop();
  sending = makeSending();
  sending.start();
  caller.letGo();
  await pass(3);
  await stopped;
  await resolve();
  await pass(3);
  expect(sent()).toEqual([["open orders 1"], ["open orders 1"], ["resolved orders 1"]]);
  expect(logged).toEqual([]);
});

test("an alert that is resolved while its message is on the way gets its own resolved message", async () => {
  await add("webhook");
  caller.reply = () => "hang";
  await raise();
  await pass(2);
  await resolve();
  caller.reply = () => answer(200);
  caller.letGo();
  await pass(3);
  expect(sent()).toEqual([["open orders 1"], ["resolved orders 1"]]);
});

test("a channel of a kind that this version does not know stays, and gets nothing", async () => {
  await add("webhook");
  await fresh.store.write("app", (tx) => tx.run("UPDATE alert_channel SET kind = 'pager'"));
  await raise();
  await pass(3);
  expect([caller.requests.length, logged]).toEqual([0, []]);
  expect(Object.hasOwn(CHANNEL_KINDS, "pager")).toBe(false);
});

test("a cleared problem resolves its alerts, which the channel gets", async () => {
  await add("webhook");
  await fresh.store.write("app", (tx) =>
    raiseProblem(tx, { environmentId, code: "relay_silent", target: "relay:orders", message: "It is silent.", nowMs: fresh.clock.now() }),
  );
  await raise("orders", "relay_silent");
  await pass(2);
  await resolve("orders", "relay_silent");
  await pass(2);
  expect(sent()).toEqual([["open orders 1"], ["resolved orders 1"]]);
});
