/** The specification's "Event row" and the traces of a run: warnings, truncation, templates, the run's audit row and its line on stdout. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/base/json.ts";
import type { EventTrigger } from "../../src/engine/event/event.ts";
import { insertEvent, makePayload, makeReceiverPayload } from "../../src/engine/event/insert.ts";
import { CALL, editRelay, GRANT, replay, sendEvent, showEvent, WRITE } from "../kit/event-flow.ts";
import { relayOf } from "../kit/event-sql.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const PERSON_MAP = { event_id: "id", person_email: "email" };
const MISSING = { ...WRITE, data: { order: "{{mapped.event_id}} {{event.no.where}}" } };

let running: RunningService;
let caller: FakeCaller;

beforeEach(async () => {
  caller = new FakeCaller();
  running = await startRunningService({ ports: { caller } });
  await makeOrders(running);
});

afterEach(() => running[Symbol.asyncDispose]());

async function sendAndDrain(id: string, more: object = {}): Promise<string> {
  const event = await sendEvent(running, id, more);
  await running.drain();
  return event;
}

/** Stores an event of a kind that no sender makes here. */
async function putEvent(name: string, trigger: EventTrigger, payload: JsonObject): Promise<string> {
  const [relay] = await running.rows<{ id: string; environmentId: number }>(
    "SELECT id, environment_id AS environmentId FROM relay WHERE name = ?1",
    name,
  );
  if (relay === undefined) throw new Error(`There is no relay ${name}.`);
  const { id } = await running.service.store.write("app", async (tx) =>
    insertEvent(tx, {
      ...(await relayOf(tx, relay.environmentId, relay.id, name)),
      trigger,
      payload: makePayload(payload),
      unsigned: false,
      dedupe: null,
      nowMs: running.clock.now(),
    }),
  );
  running.service.runner.wake(relay.id);
  await running.drain();
  return id;
}

describe("warnings", () => {
  const warning = "{{event.no.where}} resolves to nothing in this event and was left empty.";

  test("a path that resolves to nothing renders empty and adds a warning to the event", async () => {
    await saveRelay(running, receiverDefinition({ actions: [MISSING] }));
    const view = await showEvent(running, await sendAndDrain("a"));
    expect(view).toMatchObject({ state: "done", warnings: [warning] });
    expect(await running.rows("SELECT json_extract(data, '$.order') AS found FROM record")).toEqual([{ found: "a " }]);
    const { items } = (await running.api("GET", "/events")).body;
    expect(items[0].warnings).toBe(1);
  });

  test("a path that is missing many times adds one warning", async () => {
    await saveRelay(running, receiverDefinition({ actions: [MISSING, MISSING] }));
    expect((await showEvent(running, await sendAndDrain("a"))).warnings).toEqual([warning]);
  });

  test("stay through retries and replays that skip the actions which caused them", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, receiverDefinition({ actions: [MISSING, CALL] }));
    const event = await sendAndDrain("a");
    caller.reply = () => OK;
    await running.clock.advance(60_000);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", warnings: [warning] });
    await replay(running, event);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", warnings: [warning] });
  });

  test("of a later attempt appear together with earlier ones, and outlive the relay", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, receiverDefinition({ actions: [MISSING, CALL] }));
    const event = await sendAndDrain("a");
    const other = { ...WRITE, data: { order: "{{event.else}}" } };
    await editRelay(running, receiverDefinition({ actions: [MISSING, other, CALL] }));
    await running.clock.advance(60_000);
    await running.drain();
    const both = [warning, warning.replace("no.where", "else")];
    expect((await showEvent(running, event)).warnings).toEqual(both);
    await running.api("DELETE", "/relays/orders");
    await running.clock.advance(300_000);
    expect(await showEvent(running, event)).toMatchObject({ reason: "relay_deleted", warnings: both });
  });

  test("are at most 50", async () => {
    const paths = Array.from({ length: 80 }, (_, n) => `{{event.p${n}}}`).join("");
    await saveRelay(running, receiverDefinition({ actions: [{ ...WRITE, data: { order: paths } }] }));
    expect((await showEvent(running, await sendAndDrain("a"))).warnings).toHaveLength(50);
  });
});

test("a warning of an action that was edited after it ran has a place after fifty others", async () => {
  const paths = Array.from({ length: 80 }, (_, n) => `{{event.p${n}}}`).join("");
  const many = { ...WRITE, data: { order: paths } };
  await saveRelay(running, receiverDefinition({ actions: [many, GRANT], map: PERSON_MAP }));
  const event = await sendAndDrain("a", { email: "ada@example.com" });
  await editRelay(running, receiverDefinition({ actions: [many, { ...GRANT, amount: 6 }], map: PERSON_MAP }));
  await replay(running, event);
  await running.drain();
  const { warnings } = await showEvent(running, event);
  expect(warnings).toHaveLength(51);
  expect(warnings.at(-1)).toContain("actions.1 (grant_credits) was edited after it had done its work");
});

describe("truncation", () => {
  test("a payload of exactly 32 KB is stored in full, and one byte more is cut", () => {
    const whole = 32 * 1024 - '{"event":"","mapped":{"event_id":"a"}}'.length;
    const make = (length: number) => makeReceiverPayload(`"${"x".repeat(length)}"`, { event_id: "a" });
    expect(make(whole)).toMatchObject({ truncated: false, preview: null });
    const cut = make(whole + 1);
    expect(cut).toMatchObject({ truncated: true, text: '{"event":null,"mapped":{"event_id":"a"}}' });
    expect(cut.preview).toHaveLength(4_096);
  });

  test("counts bytes of UTF-8, and never cuts a character in two", () => {
    const cut = makeReceiverPayload(`"a${"é".repeat(20_000)}"`, { note: `b${"é".repeat(20_000)}` });
    expect(cut.truncated).toBe(true);
    expect(cut.preview).toBe(`"a${"é".repeat(2_047)}`);
    expect(mappedOf(cut).note).toBe(`b${"é".repeat(16_383)}`);
  });

  const KB = 1024;
  const sizes: [rule: string, given: Record<string, number>, kept: Record<string, number>][] = [
    ["a mapped value of 32 KB is stored in full", { a: 32 * KB }, { a: 32 * KB }],
    ["one byte more is cut to 32 KB", { a: 32 * KB + 1, b: 10 }, { a: 32 * KB, b: 10 }],
    ["64 KB together are stored in full", { a: 32 * KB, b: 32 * KB }, { a: 32 * KB, b: 32 * KB }],
    ["over 64 KB together, the largest values are cut", { a: 40 * KB, b: 10 * KB, c: 40 * KB }, { a: 27 * KB, b: 10 * KB, c: 27 * KB }],
    ["small values are stored in full, however many large ones there are", { id: 20, a: 200 * KB, b: 200 * KB, c: 200 * KB }, { id: 20, a: 21_838, b: 21_839, c: 21_839 }],
  ]; // biome-ignore format: one row a line
  test.each(sizes)("%s", (_rule, given, kept) => {
    const mapped = Object.fromEntries(Object.entries(given).map(([name, size]) => [name, "x".repeat(size)]));
    const payload = makeReceiverPayload(`"${"x".repeat(40 * KB)}"`, mapped);
    const left = mappedOf(payload);
    expect(Object.fromEntries(Object.entries(left).map(([name, text]) => [name, text.length]))).toEqual(kept);
    const cut = Object.keys(given).filter((name) => given[name] !== kept[name]);
    expect(payload.warnings.map((warning) => /^mapped\.(\w+) was cut: it takes [\d,]+ bytes/.exec(warning)?.[1])).toEqual(cut);
  });

  const mappedOf = (payload: { text: string }) => (JSON.parse(payload.text) as { mapped: Record<string, string> }).mapped;

  test("the mapped fields survive for templates, and a path into the cut part adds a warning", async () => {
    await saveRelay(running, receiverDefinition({ actions: [{ ...WRITE, data: { order: "{{mapped.event_id}}{{event.id}}" } }] }));
    const view = await showEvent(running, await sendAndDrain("a", { filler: "x".repeat(40_000) }));
    expect(view).toMatchObject({ state: "done", truncated: true } as object);
    expect(view.warnings).toEqual([
      "{{event.id}} can no longer be read and was left empty: the event is larger than 32 KB, so only its mapped values are kept; name the path in the map.",
    ]);
    expect(await running.rows("SELECT json_extract(data, '$.order') AS found FROM record")).toEqual([{ found: "a" }]);
  });

  test("a name added to the map later is missing from a cut payload, and the warning says why", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE] }));
    const id = await sendAndDrain("a", { note: "late", filler: "x".repeat(40_000) });
    const map = { event_id: "id", note: "note" };
    await editRelay(running, receiverDefinition({ map, actions: [WRITE, { ...WRITE, data: { order: "{{mapped.note}}" } }] }));
    await replay(running, id);
    await running.drain();
    expect((await showEvent(running, id)).warnings).toContain(
      "{{mapped.note}} resolves to nothing in this event and was left empty: the event is larger than 32 KB, so only what the map named when it arrived is kept.",
    );
  });

  test("a mapped text of 12,000 characters is used in full, and a cut one adds a warning at once", async () => {
    const map = { event_id: "id", note: "note" };
    await saveRelay(running, receiverDefinition({ map, actions: [{ ...WRITE, data: { order: "{{mapped.note}}" } }] }));
    const filler = "y".repeat(30_000);
    await sendAndDrain("a", { note: "n".repeat(12_000), filler });
    expect(await running.rows("SELECT length(json_extract(data, '$.order')) AS chars FROM record")).toEqual([{ chars: 12_000 }]);
    const cut = await showEvent(running, await sendAndDrain("b", { note: "n".repeat(40_000) }));
    expect(cut.warnings).toEqual(["mapped.note was cut: it takes 40,000 bytes and its first 32,768 were kept (32 KB a value, 64 KB together)."]);
  });

  test("the notice of a truncated event says so next to the event, and no other notice does", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    await sendAndDrain("a");
    await sendAndDrain("b", { filler: "x".repeat(40_000) });
    const notices = caller.requests.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
    expect(notices.map((notice) => notice.truncated)).toEqual([undefined, true]);
    expect(notices[1]?.event).toEqual({
      event: null,
      mapped: { event_id: "b", event_type: "order.paid", amount: 4200 },
    });
  });

  test("a rendered reason over 200 characters is cut with a warning", async () => {
    const action = { type: "grant_credits", amount: 5, reason: "For {{event.why}}" };
    await saveRelay(running, receiverDefinition({ actions: [action], map: PERSON_MAP }));
    const whole = await showEvent(running, await sendAndDrain("a", { email: "ada@example.com", why: "w".repeat(196) }));
    expect(whole.warnings).toEqual([]);
    const cut = await showEvent(running, await sendAndDrain("b", { email: "ada@example.com", why: "w".repeat(197) }));
    expect(cut.warnings).toEqual(["reason was cut to 200 characters: with its {{paths}} filled in it is longer."]);
    expect(await running.rows("SELECT max(length(reason)) AS chars FROM credit")).toEqual([{ chars: 207 }]);
  });
});

describe("the audit row of a run", () => {
  const auditRows = (event: string) =>
    running.rows<{ actor: string; action: string; target: string; before: string; after: string }>(
      "SELECT actor, action, target, before, after FROM audit WHERE event_id = ?1 ORDER BY seq",
      event,
    );

  test("exists once, is written by the relay, and holds each action's before and after", async () => {
    await saveRelay(running, receiverDefinition({ actions: [GRANT, WRITE, CALL], map: PERSON_MAP }));
    const event = await sendAndDrain("a", { email: "ada@example.com" });
    const [row, ...others] = await auditRows(event);
    expect(others).toEqual([]);
    expect(row).toMatchObject({ actor: "relay:orders", action: "run", target: "relay:orders" });
    expect(JSON.parse(row?.before ?? "")).toEqual([{ balance: 0 }, null, null]);
    expect(JSON.parse(row?.after ?? "")).toMatchObject([
      { type: "grant_credits", outcome: "done", after: { balance: 5, amount: 5 } },
      { type: "write_record", outcome: "done", after: { collection: "orders" } },
      { type: "call_url", outcome: "done", after: null },
    ]);
  });

  test("is written for each attempt, also for failed ones", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendAndDrain("a");
    await running.clock.advance(60_000);
    await running.drain();
    const rows = await auditRows(event);
    expect(rows.map((row) => JSON.parse(row.after)[0].outcome)).toEqual(["failed", "failed"]);
  });

  test("is written for an event that ended without running any action", async () => {
    await saveRelay(running, receiverDefinition({ map: PERSON_MAP }));
    expect(await auditRows(await sendAndDrain("a", { email: "nobody" }))).toHaveLength(1);
    await running.api("POST", "/relays/orders/pause");
    const orphan = await sendEvent(running, "b", { email: "nobody" });
    await running.api("DELETE", "/relays/orders");
    await running.clock.advance(5_000);
    expect(await showEvent(running, orphan)).toMatchObject({ reason: "relay_deleted" });
    expect(await auditRows(orphan)).toHaveLength(1);
  });

  test("attributes what a relay creates to the relay by name", async () => {
    await saveRelay(running, receiverDefinition({ actions: [GRANT, WRITE], map: PERSON_MAP }));
    const event = await sendAndDrain("a", { email: "ada@example.com" });
    expect(await running.rows("SELECT relay_name AS relay, event_id AS event FROM credit")).toEqual([{ relay: "orders", event }]);
    expect(await running.rows("SELECT created_by AS maker FROM person")).toEqual([{ maker: "relay:orders" }]);
    const { items } = (await running.api("GET", "/collections/orders/records")).body;
    expect(items[0].by).toBe("relay:orders");
  });
});

describe("each run prints its line", () => {
  test("RELAY · <name> · <trigger> · <n> actions · ok", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    await sendAndDrain("a");
    expect(running.lines).toEqual(["RELAY · orders · receiver · 2 actions · ok"]);
  });

  test("prints 1 action for a single action", async () => {
    await saveRelay(running, receiverDefinition({ actions: [WRITE] }));
    await sendAndDrain("a");
    expect(running.lines).toEqual(["RELAY · orders · receiver · 1 action · ok"]);
  });

  test("failed for each failed attempt, and ok for the successful one", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, receiverDefinition({ actions: [WRITE, CALL] }));
    await sendAndDrain("a");
    caller.reply = () => OK;
    await running.clock.advance(60_000);
    await running.drain();
    expect(running.lines).toEqual(["RELAY · orders · receiver · 2 actions · failed", "RELAY · orders · receiver · 2 actions · ok"]);
  });

  test("failed for an event whose person was not found", async () => {
    await saveRelay(running, receiverDefinition({ map: PERSON_MAP }));
    await sendAndDrain("a");
    expect(running.lines).toEqual(["RELAY · orders · receiver · 1 action · failed"]);
  });

  test("with the trigger's own name for a schedule and a record change", async () => {
    const schedule = { kind: "schedule", every: "1d", at: "09:00" };
    const change = { kind: "data_change", collection: "orders", on: ["created"] };
    const action = { ...WRITE, data: { order: "x" } };
    for (const [name, trigger] of [
      ["daily", schedule],
      ["changed", change],
    ]) {
      const saved = await running.api("POST", "/relays", {
        definition: { name, trigger, actions: [action] },
      });
      expect(saved.status).toBe(201);
    }
    await putEvent("daily", "schedule", { tick: { periodStart: "2026-01-15T09:00:00.000Z" } });
    await putEvent("changed", "data_change", { record: { id: "rec_1", data: {} }, previous: null });
    expect(running.lines).toEqual(["RELAY · daily · schedule · 1 action · ok", "RELAY · changed · data_change · 1 action · ok"]);
  });

  test("an event without a person runs when no action needs one", async () => {
    const definition = receiverDefinition({ actions: [WRITE] });
    await saveRelay(running, definition);
    expect(await showEvent(running, await sendAndDrain("a"))).toMatchObject({ state: "done", person: null });
  });
});
