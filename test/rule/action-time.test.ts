/** Reports of a run about its actions: how long each took, when it called out, and the exchange with the called URL. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { CallOutcome } from "../../src/platform/outbound/caller.ts";
import { CALL, replay, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { seqOf } from "../kit/event-sql.ts";
import { FakeCaller } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const AGAIN = { type: "call_url", url: "https://example.org/again" };
const REQUEST = {
  method: "POST",
  url: "https://example.com/notice",
  headers: { "X-Service-Signature": "t=1,v1=(not kept)" },
} as const;
const SAID: CallOutcome = {
  kind: "answered",
  ok: true,
  status: 202,
  headers: { server: "lab ann@example.com" },
  body: "fine",
  request: REQUEST,
};

let running: RunningService;
let caller: FakeCaller;
beforeEach(async () => {
  caller = new FakeCaller(SAID);
  running = await startRunningService({ ports: { caller } });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

const stored = async (event: string) =>
  (await running.rows<{ results: string }>("SELECT results FROM run WHERE event_seq = ?1 ORDER BY number", seqOf(event)))
    .map(({ results }) => results)
    .join();

describe("time", () => {
  test("of a call runs from its start to its response, and excludes database actions", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    caller.reply = () => "hang";
    const event = await sendEvent(running, "a");
    await until("the call hangs", () => caller.hanging() === 1);
    const beganAt = new Date(running.clock.now()).toISOString();
    await running.clock.advance(1_234);
    caller.letGo(1, SAID);
    await running.drain();
    expect((await showEvent(running, event)).runs[0]?.results).toMatchObject([
      { type: "write_record", beganAt: null, tookMs: 0 },
      { type: "call_url", beganAt, tookMs: 1_234 },
    ]);
  });

  test("of a call that threw is reported too", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => "throw";
    const event = await sendEvent(running, "a");
    await running.drain();
    await until("it ran", async () => (await showEvent(running, event)).runs.length === 1);
    expect((await showEvent(running, event)).runs[0]?.results).toMatchObject([
      { code: "internal", beganAt: new Date(running.clock.now()).toISOString(), tookMs: 0 },
    ]);
  });

  test("of a relay without calls is not measured, and nothing is stored", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE] }));
    const event = await sendEvent(running, "a");
    await running.drain();
    expect((await showEvent(running, event)).runs[0]?.results).toMatchObject([{ beganAt: null, tookMs: null }]);
    expect(await stored(event)).not.toContain("tookMs");
  });

  test("is unknown for runs that an earlier version stored", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    const event = await sendEvent(running, "a");
    await running.drain();
    const results = '[{"type":"write_record","outcome":"done"},{"type":"call_url","outcome":"done","answer":{"status":200,"body":"old"}}]';
    await running.service.store.write("app", (tx) => tx.run("UPDATE run SET results = ?2 WHERE event_seq = ?1", seqOf(event), results));
    expect((await showEvent(running, event)).runs[0]?.results).toEqual([
      { type: "write_record", outcome: "done", beganAt: null, tookMs: null },
      { type: "call_url", outcome: "done", answer: { status: 200, body: "old" }, beganAt: null, tookMs: null },
    ]);
    expect((await replay(running, event)).status).toBe(202);
    await running.drain();
    expect((await showEvent(running, event)).runs[1]?.results).toMatchObject([{ outcome: "skipped" }, { outcome: "done", tookMs: 0 }]);
  });
});

describe("the exchange with a called URL", () => {
  test("is shown, and the notice to another URL keeps its documented shape", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL, AGAIN] }));
    const event = await sendEvent(running, "a");
    await running.drain();
    expect((await showEvent(running, event)).runs[0]?.results[0]).toMatchObject({
      request: REQUEST,
      answer: { status: 202, headers: { server: "lab ann@example.com" }, body: "fine" },
    });
    expect(JSON.parse(caller.requests[1]?.body ?? "").results).toEqual([
      { type: "call_url", outcome: "done", answer: { status: 202, body: "fine" } },
    ]);
  });

  test("is stored for a call that got no response", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => ({ kind: "unreachable", code: "timeout", message: "late", request: REQUEST });
    const event = await sendEvent(running, "a");
    await until("it failed", async () => (await showEvent(running, event)).runs[0]?.outcome === "failed");
    const [result] = (await showEvent(running, event)).runs[0]?.results ?? [];
    expect(result).toMatchObject({ code: "timeout", request: REQUEST });
    expect(result).not.toHaveProperty("answer");
  });

  test("is deleted when the payload is expunged", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendEvent(running, "a");
    await running.drain();
    expect(await stored(event)).toContain("lab ann@example.com");
    expect((await running.api("POST", `/events/${event}/expunge`)).status).toBe(200);
    expect(await stored(event)).toBe('[{"type":"call_url","outcome":"done"}]');
  });
});
