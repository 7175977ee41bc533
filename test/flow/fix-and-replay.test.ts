/** Tests replays after a relay was fixed: finished actions are not repeated, edits are reported, and a corrected map applies to stored events. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { readPriorWork } from "../../src/engine/event/prior-work.ts";
import type { OutgoingMail } from "../../src/platform/mail/mailer.ts";
import { roundsOf } from "../kit/chosen-store.ts";
import { runCommand } from "../kit/cli-io.ts";
import { EditModel, type ModelAction } from "../kit/edit-model.ts";
import { alertsOf, editRelay, replay, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { sampleOf } from "../kit/prometheus-text.ts";
import { type ActionLike, HOOK_SECRET, makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "ada@example.com";
const MAP = { event_id: "id", person_email: "email" };
const CALL: ActionLike = { type: "call_url", url: "https://example.com/notice" };
/** Fails permanently until its collection exists. */
const NOWHERE: ActionLike = { ...WRITE, collection: "nowhere" };

const give = (amount: number): ActionLike => ({ type: "grant_credits", amount });
const mail = (subject: string): ActionLike => ({ type: "email_person", subject, text: "Hello" });
const mark = (amount: string): ActionLike => ({ ...WRITE, data: { order: "{{mapped.event_id}}", amount } });

let running: RunningService;
let caller: FakeCaller;
let mailed: string[];
let letters: OutgoingMail[];

beforeEach(async () => {
  caller = new FakeCaller();
  mailed = [];
  letters = [];
  const mailer = {
    async send(letter: OutgoingMail) {
      letters.push(letter);
      if (letter.subject === "Hang") return await new Promise<never>(() => {});
      mailed.push(letter.subject);
      return { kind: "sent" as const };
    },
  };
  const limits = {
    ...DEFAULT_LIMITS,
    eventEmailsPerPersonPerDay: 1_000,
    emailsPerHour: 10_000,
    relaysPerEnvironment: 1_000,
  };
  running = await startRunningService({ ports: { caller, mailer }, config: { limits } });
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

const verifyDomain = () =>
  running.service.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment"),
  );
const define = (...actions: ActionLike[]) => receiverDefinition({ actions, map: MAP });

async function send(id: string, more: object = {}): Promise<string> {
  const event = await sendEvent(running, id, { email: ADA, ...more });
  await running.drain();
  return event;
}

async function runAgain(event: string, body?: object) {
  const answer = await running.api("POST", `/events/${event}/replay`, body);
  expect([answer.status, answer.body.code]).toEqual([202, undefined]);
  await running.drain();
  return told(event);
}

async function retry(event: string, afterMs = 60_000) {
  running.clock.jump(afterMs);
  await running.clock.advance(5_000);
  await running.drain();
  return told(event);
}

async function told(event: string): Promise<string[]> {
  const { runs } = await showEvent(running, event);
  return (runs.at(-1)?.results ?? []).map(({ outcome, code }) => (code === undefined ? outcome : code));
}

const plan = (event: string) => running.api("GET", `/events/${event}/replay`);
const credits = async () => (await running.rows<{ amount: number }>("SELECT amount FROM credit")).map((row) => row.amount);
const marks = async () => (await running.rows<{ mark: string }>("SELECT json_extract(data, '$.amount') AS mark FROM record")).map((row) => row.mark);

describe("actions edited before a replay or retry", () => {
  test("grant credits that were inserted before the granted ones: 705, not 5", async () => {
    await saveRelay(running, define(give(5), NOWHERE));
    const event = await send("a");
    expect((await showEvent(running, event)).state).toBe("dead");
    await editRelay(running, define(give(700), give(5), mark("x")));
    expect(await runAgain(event)).toEqual(["done", "skipped", "done"]);
    expect([(await credits()).sort(), await marks()]).toEqual([[5, 700], ["x"]]);
    expect((await showEvent(running, event)).warnings).toEqual([]);
  });

  test("duplicate no record at a retry when another was inserted before it", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, define(mark("x"), CALL));
    const event = await send("a");
    await editRelay(running, define(mark("y"), mark("x"), CALL));
    caller.reply = () => OK;
    expect(await retry(event)).toEqual(["done", "skipped", "done"]);
    expect((await marks()).sort()).toEqual(["x", "y"]);
  });

  test("send the new mail to a customer who got the old one only if the replay chooses it, and neither twice", async () => {
    await verifyDomain();
    await saveRelay(running, define(mail("Old"), NOWHERE));
    const event = await send("a");
    await editRelay(running, define(mail("New"), mark("x")));
    expect(await runAgain(event)).toEqual(["edited_after", "done"]);
    const warning =
      'actions.0 (email_person) was edited after it had done its work, so it is skipped: subject was "Old" and is "New". To run it as well, replay the event and choose it.';
    expect((await showEvent(running, event)).warnings).toEqual([warning]);
    expect(await runAgain(event)).toEqual(["edited_after", "skipped"]);
    expect(mailed).toEqual(["Old"]);
    expect((await plan(event)).body.plan.actions[0]).toMatchObject({ will: "edited", mayChoose: true });
    expect(await runAgain(event, { run: [0] })).toEqual(["done", "skipped"]);
    expect(await runAgain(event)).toEqual(["skipped", "skipped"]);
    expect(mailed).toEqual(["Old", "New"]);
  });

  test("send a failed and then fixed mail with its new text, although another mail was sent before it", async () => {
    await verifyDomain();
    await saveRelay(running, define(mail("One"), NOWHERE, mail("Two")));
    const event = await send("a");
    await editRelay(running, define(mail("One"), mail("Second")));
    expect(await runAgain(event)).toEqual(["skipped", "done"]);
    expect(mailed).toEqual(["One", "Second"]);
  });

  const stopped: [rule: string, left: boolean, results: string[], got: string[]][] = [
    ["was not sent is sent only with its new text", false, ["done", "done"], ["New"]],
    ["may have been sent counts as sent, and its new text waits for a choice", true, ["edited_after", "done"], []],
  ];
  test.each(stopped)("an edited mail that a crash interrupted and that %s", async (_rule, left, results, got) => {
    await verifyDomain();
    await saveRelay(running, define(mail("Hang"), mark("x")));
    const event = await sendEvent(running, "a", { email: ADA });
    await until("the mail is out", () => letters.length === 1);
    await running.api("POST", "/relays/orders/pause");
    if (left) await running.service.store.write("app", (tx) => tx.run("UPDATE email SET left_at = 1"));
    let over = false;
    const restarted = running.restart().finally(() => {
      over = true;
    });
    while (!over) await running.clock.advance(1_000);
    await restarted;
    await editRelay(running, define(mail("New"), mark("x")));
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect([await told(event), mailed, await marks()]).toEqual([results, got, ["x"]]);
    const emails = await running.rows<{ subject: string; state: string }>("SELECT subject, state FROM email");
    expect(emails).toEqual([left ? { subject: "Hang", state: "unknown" } : { subject: "New", state: "sent" }]);
    await runAgain(event);
    expect(mailed).toEqual(got);
  });

  test("for another person say so, and the first person keeps the finished actions", async () => {
    await saveRelay(running, define(give(5)));
    const event = await send("a", { buyer: "bob@example.com" });
    const map = { event_id: "id", person_email: "buyer" };
    await editRelay(running, receiverDefinition({ actions: [give(5), give(6)], map }));
    expect(await runAgain(event)).toEqual(["other_person", "done"]);
    const view = await showEvent(running, event);
    expect(view.person?.email).toBe("bob@example.com");
    expect(view.warnings).toEqual([
      `The event was about ${ADA} at the attempt before and is about bob@example.com now: the work for ${ADA} is not changed. To do it for bob@example.com, replay the event and choose it.`,
    ]);
  });

  test("stay chosen for the retries of a replay, but not for the next replay", async () => {
    await saveRelay(running, define(give(5)));
    const event = await send("a");
    caller.reply = () => BROKEN;
    await editRelay(running, define(CALL, give(6)));
    expect(await runAgain(event, { run: [1] })).toEqual(["http_error"]);
    for (let attempt = 2; attempt <= 6; attempt++) await retry(event, 17 * 3_600_000);
    caller.reply = () => OK;
    expect(await retry(event, 17 * 3_600_000)).toEqual(["done", "done"]);
    expect((await credits()).sort()).toEqual([5, 6]);
    await editRelay(running, define(CALL, give(7)));
    caller.reply = () => BROKEN;
    expect(await runAgain(event, { run: [1] })).toEqual(["http_error"]);
    for (let attempt = 2; attempt <= 7; attempt++) await retry(event, 17 * 3_600_000);
    expect((await showEvent(running, event)).state).toBe("dead");
    caller.reply = () => OK;
    expect(await runAgain(event)).toEqual(["done", "edited_after"]);
    expect((await credits()).sort()).toEqual([5, 6]);
  });

  describe("after an earlier version ran them", () => {
    /** Rewrites the event to the state that version 0.1.0 stored, one second in the past. */
    const age = async (): Promise<void> => {
      await running.service.store.write("app", async (tx) => {
        const { works } = await readPriorWork(tx, 1);
        const seen = new Map<string, number>();
        for (const { key, type, target, after } of works.values()) {
          const place = (seen.get(type + target) ?? 0) + 1;
          seen.set(type + target, place);
          const old = `${type}\n${target}\n${place}`;
          await tx.run("DELETE FROM effect WHERE key = ?1", key);
          await tx.run("INSERT INTO effect (event_seq, key, state, result) VALUES (1, ?1, 'done', ?2)", old, JSON.stringify(after ?? null));
        }
        await tx.run("UPDATE run SET actions = NULL, work = NULL");
        await tx.run("DELETE FROM action_list");
      });
      running.clock.jump(1_000);
    };

    test("and the audit holds their list: inserted actions run, and finished ones are skipped", async () => {
      await saveRelay(running, define(give(5), mark("x"), NOWHERE));
      const event = await send("a");
      await age();
      await editRelay(running, define(give(700), give(5), mark("y"), mark("x")));
      expect(await runAgain(event)).toEqual(["done", "skipped", "done", "skipped"]);
      expect([(await credits()).sort(), (await marks()).sort()]).toEqual([
        [5, 700],
        ["x", "y"],
      ]);
      expect(await runAgain(event)).toEqual(["skipped", "skipped", "skipped", "skipped"]);
      expect((await showEvent(running, event)).warnings).toEqual([]);
    });

    test("and an edited text is shown in both forms and offered", async () => {
      await saveRelay(running, define(give(5), give(5), NOWHERE));
      const event = await send("a");
      await age();
      await editRelay(running, define(give(5), give(6)));
      expect((await plan(event)).body.plan.actions).toMatchObject([
        { will: "skip", mayChoose: false },
        { will: "edited", mayChoose: true, was: { amount: 5 } },
      ]);
      expect(await runAgain(event)).toEqual(["skipped", "edited_after"]);
      expect((await showEvent(running, event)).warnings).toEqual([expect.stringContaining("amount was 5 and is 6")]);
      expect(await runAgain(event, { run: [1] })).toEqual(["skipped", "done"]);
      expect((await credits()).sort()).toEqual([5, 5, 6]);
    });

    test("and the audit lost their list: the work is matched by position, reported and offered", async () => {
      await saveRelay(running, define(give(5), mark("x"), NOWHERE));
      const event = await send("a");
      await age();
      await running.service.store.write("app", (tx) => tx.run("DELETE FROM audit"));
      await editRelay(running, define(give(5), mark("x"), give(7)));
      expect((await plan(event)).body.plan.actions).toMatchObject([
        { will: "skip", mayChoose: true, doneAt: null },
        { will: "skip", mayChoose: true },
        { will: "run", mayChoose: false },
      ]);
      expect(await runAgain(event)).toEqual(["skipped", "skipped", "done"]);
      expect([(await credits()).sort(), await marks()]).toEqual([[5, 7], ["x"]]);
      expect((await showEvent(running, event)).warnings).toEqual([
        expect.stringContaining("actions.0 (grant_credits) is skipped, because an earlier version"),
        expect.stringContaining("actions.1 (write_record) is skipped, because an earlier version"),
      ]);
    });
  });
});

describe("the preview of a replay", () => {
  test("says of each action whether it runs, is skipped and since when, is sent again, or was edited after it ran", async () => {
    await saveRelay(running, define(give(5), mark("x"), CALL));
    const event = await send("a");
    await editRelay(running, define(give(6), mark("x"), CALL, give(9)));
    const answer = await plan(event);
    const { relay } = (await running.api("GET", "/relays/orders")).body;
    expect(answer.status).toBe(200);
    expect(answer.body.plan.relay).toEqual({ id: relay.id, name: "orders", version: 2 });
    const doneAt = "2026-01-15T12:00:00.000Z";
    expect(answer.body.plan.actions).toEqual([
      {
        index: 0,
        type: "grant_credits",
        will: "edited",
        mayChoose: true,
        doneAt,
        message: `Is skipped unless you choose it: it was edited after it had done its work at ${doneAt} (amount was 5 and is 6). Its earlier work stays, and choosing it does the new work in addition.`,
        action: give(6),
        was: give(5),
      },
      {
        index: 1,
        type: "write_record",
        will: "skip",
        mayChoose: false,
        doneAt,
        message: `Is skipped: its work was done at ${doneAt}.`,
        action: mark("x"),
      },
      {
        index: 2,
        type: "call_url",
        will: "again",
        mayChoose: false,
        doneAt: null,
        message: "Is sent again, with the same id.",
        action: CALL,
      },
      {
        index: 3,
        type: "grant_credits",
        will: "run",
        mayChoose: false,
        doneAt: null,
        message: "Runs.",
        action: give(9),
      },
    ]);
    expect(await runAgain(event, { run: [0], version: 2 })).toEqual(["done", "skipped", "done", "done"]);
    expect((await credits()).sort()).toEqual([5, 6, 9]);
    const [audit] = await running.rows<{ after: string }>("SELECT after FROM audit WHERE action = 'event.replayed'");
    expect(JSON.parse(audit?.after ?? "")).toEqual({ state: "queued", run: [0], version: 2 });
  });

  test("of a deleted relay names no relay and runs nothing", async () => {
    await saveRelay(running, define(give(5)));
    const event = await send("a");
    await running.api("DELETE", "/relays/orders");
    expect((await plan(event)).body.plan).toEqual({
      relay: null,
      stop: "There is no relay orders now, so the replay would end without running anything.",
      actions: [],
    });
    const trigger = { kind: "schedule", every: "1h" };
    const definition = { name: "orders", trigger, actions: [{ ...NOWHERE, data: { order: "x" } }] };
    expect((await running.api("POST", "/relays", { definition })).status).toBe(201);
    expect((await plan(event)).body.plan).toMatchObject({
      relay: { version: 1 },
      stop: expect.stringContaining("trigger is schedule now and this event came by receiver"),
      actions: [],
    });
    expect(await runAgain(event)).toEqual([]);
    expect(await showEvent(running, event)).toMatchObject({ state: "failed", reason: "trigger_changed" });
    const refused = await running.api("POST", `/events/${event}/replay`, { run: [0] });
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_input"]);
  });

  const refusals: [rule: string, body: object, status: number, code: string, words: string][] = [
    ["an index that is not offered", { run: [1] }, 400, "invalid_input", "run names 1, and only an action that was edited after it had done its work, or that did it for another person, can be chosen: choose among 0."],
    ["an index out of the list", { run: [9] }, 400, "invalid_input", "run names 9"],
    ["an invalid index", { run: [-1] }, 400, "invalid_input", "run"],
    ["a preview of another version", { run: [0], version: 1 }, 409, "version_conflict", "version 2"],
    ["an unknown field", { rnu: [0] }, 400, "invalid_input", "rnu"],
  ]; // biome-ignore format: one row a line
  test.each(refusals)("a replay is rejected for %s, and nothing changes", async (_rule, body, status, code, words) => {
    await saveRelay(running, define(give(5), mark("x")));
    const event = await send("a");
    await editRelay(running, define(give(6), mark("x")));
    const refused = await running.api("POST", `/events/${event}/replay`, body);
    expect([refused.status, refused.body.code]).toEqual([status, code]);
    expect(refused.body.message).toContain(words);
    expect(await showEvent(running, event)).toMatchObject({ state: "done", replays: 0 });
  });

  test("is rejected with a sentence if the relay has an action that this version does not know", async () => {
    await saveRelay(running, define(give(5)));
    const event = await send("a");
    const later = JSON.stringify({ ...define(), actions: [{ type: "of_a_later_version" }] });
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET definition = ?1", later));
    const refused = await plan(event);
    expect([refused.status, refused.body.code]).toEqual([409, "not_replayable"]);
    expect(refused.body.message).toContain("does not know");
  });

  test("is rejected like the replay: 404, and 409 while the event waits", async () => {
    await saveRelay(running, define(give(5), CALL));
    expect((await plan("evt_nothing")).status).toBe(404);
    caller.reply = () => BROKEN;
    const refused = await plan(await send("a"));
    expect([refused.status, refused.body.code]).toEqual([409, "not_replayable"]);
  });
});

describe("a corrected map", () => {
  const WRONG = { event_id: "id", amount: "no.such.path" };
  const RIGHT = { event_id: "id", amount: "amount" };
  const AMOUNT = { ...WRITE, data: { order: "{{mapped.event_id}}", amount: "{{mapped.amount}}" } };
  const mapped = (map: Record<string, string>, ...actions: ActionLike[]) => receiverDefinition({ map, actions });
  const view = async (event: string) => (await running.api("GET", `/events/${event}`)).body.event;

  test("applies to an event that waits for its retry, and is stored on it with the version", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, mapped(WRONG, CALL, AMOUNT));
    const event = await send("a", { amount: 4200 });
    expect(await view(event)).toMatchObject({
      mapVersion: 1,
      mappedAgain: false,
      payload: { mapped: { event_id: "a" } },
    });
    await editRelay(running, mapped(RIGHT, CALL, AMOUNT));
    caller.reply = () => OK;
    expect(await retry(event)).toEqual(["done", "done"]);
    expect(await marks()).toEqual(["4200"]);
    expect(await view(event)).toMatchObject({
      mapVersion: 2,
      mappedAgain: true,
      payload: { event: { id: "a", amount: 4200 }, mapped: { event_id: "a", amount: 4200 } },
    });
    expect(JSON.parse(caller.requests.at(-1)?.body ?? "").event.mapped).toEqual({
      event_id: "a",
      amount: 4200,
    });
  });

  test("applies to a replayed event and finds its person, while the stored body keeps every byte", async () => {
    const body = `{"id":"a","email":"${ADA}","big":123456789012345678901234,"point":1.50,"mapped":{"event_id":1}}`;
    await saveRelay(running, mapped({ event_id: "id", person_email: "mail" }, give(5)));
    const signature = createHmac("sha256", HOOK_SECRET).update(body).digest("hex");
    const headers = { "content-type": "application/json", "x-signature": signature };
    const { eventId } = (await running.hook("orders", { headers, body })).body;
    await running.drain();
    expect(await showEvent(running, eventId)).toMatchObject({ state: "failed", reason: "person_not_found" });
    await editRelay(running, mapped({ event_id: "id", person_email: "email" }, give(5)));
    expect(await runAgain(eventId)).toEqual(["done"]);
    expect(await showEvent(running, eventId)).toMatchObject({ person: { email: ADA } });
    const [row] = await running.rows<{ payload: string }>("SELECT payload FROM event");
    expect(row?.payload).toBe(`{"event":${body},"mapped":{"event_id":"a","person_email":"${ADA}"}}`);
  });

  test("changes neither the dedupe key nor the result of `when`", async () => {
    await saveRelay(
      running,
      receiverDefinition({
        map: { event_id: "id", kind: "type" },
        when: { kind: "order.paid" },
        actions: [mark("x")],
      }),
    );
    const event = await send("a");
    await editRelay(
      running,
      receiverDefinition({
        map: { event_id: "other", kind: "no.kind" },
        when: { kind: "order.paid" },
        actions: [mark("x"), mark("y")],
      }),
    );
    expect(await runAgain(event)).toEqual(["skipped", "done"]);
    expect(await view(event)).toMatchObject({ payload: { mapped: {} }, mappedAgain: true });
    await editRelay(
      running,
      receiverDefinition({
        map: { event_id: "id", kind: "type" },
        when: { kind: "order.paid" },
        actions: [mark("x")],
      }),
    );
    const again = await running.hook("orders", signedCall({ id: "a", type: "order.paid", amount: 1 }));
    expect(again.body).toMatchObject({ duplicate: true, eventId: event });
  });

  test("skips an event with a truncated body", async () => {
    await saveRelay(running, mapped(WRONG, AMOUNT));
    const event = await send("a", { amount: 4200, filler: "x".repeat(40_000) });
    await editRelay(running, mapped(RIGHT, AMOUNT, mark("y")));
    await runAgain(event);
    expect(await view(event)).toMatchObject({
      mappedAgain: false,
      payload: { event: null, mapped: { event_id: "a" } },
    });
  });

  test("reads a stored form by its fields, a literal dotted name before a path", async () => {
    await saveRelay(running, mapped(WRONG, AMOUNT));
    const body = "id=a&amount=12&deep.name=literal";
    const signature = createHmac("sha256", HOOK_SECRET).update(body).digest("hex");
    const headers = { "content-type": "application/x-www-form-urlencoded", "x-signature": signature };
    const { eventId } = (await running.hook("orders", { headers, body })).body;
    await running.drain();
    await editRelay(running, mapped({ ...RIGHT, deep: "deep.name" }, AMOUNT));
    await runAgain(eventId);
    expect((await view(eventId)).payload.mapped).toEqual({ event_id: "a", amount: "12", deep: "literal" });
  });

  test("with many names for a small body stores 32 KB in total and reports what it cut", async () => {
    await saveRelay(running, mapped({ event_id: "id" }, mark("x")));
    const event = await send("a", { note: "n".repeat(30_000) });
    const names = Object.fromEntries(["a", "b", "c"].map((name) => [name, "note"]));
    await editRelay(running, mapped({ event_id: "id", ...names }, mark("x")));
    await runAgain(event);
    const { payload, warnings } = await view(event);
    expect(Object.values(payload.mapped).map((value) => String(value).length)).toEqual([1, 21_845, 21_845, 21_845]);
    expect(warnings).toHaveLength(3);
  });

  test("skips an event whose body was too large to store, which keeps its old map version", async () => {
    await saveRelay(running, mapped(WRONG, AMOUNT));
    const event = await send("a", { amount: 7, pad: "p".repeat(40_000) });
    await editRelay(running, mapped(RIGHT, AMOUNT));
    await runAgain(event);
    expect(await view(event)).toMatchObject({ truncated: true, mapVersion: 1, mappedAgain: false });
  });

  test("of a relay recreated under the same name applies to the earlier events", async () => {
    await saveRelay(running, mapped(WRONG, AMOUNT));
    const event = await send("a", { amount: 7 });
    await running.api("DELETE", "/relays/orders");
    await saveRelay(running, mapped(RIGHT, AMOUNT, mark("y")));
    expect(await runAgain(event)).toEqual(["skipped", "done"]);
    expect(await view(event)).toMatchObject({
      mapVersion: 1,
      mappedAgain: true,
      payload: { mapped: { amount: 7 } },
    });
  });
});

describe("sender_domain_required stops only its own action", () => {
  test("the actions after it run, the event is retried for the mail, and then only the mail is sent", async () => {
    await saveRelay(running, define(give(5), mail("Thanks"), mark("x"), CALL));
    const event = await send("a");
    expect(await told(event)).toEqual(["done", "sender_domain_required", "done", "done"]);
    expect(await showEvent(running, event)).toMatchObject({
      state: "queued",
      reason: "sender_domain_required",
      attempts: 1,
    });
    expect([await credits(), await marks(), mailed]).toEqual([[5], ["x"], []]);
    await verifyDomain();
    expect(await retry(event)).toEqual(["skipped", "done", "skipped", "done"]);
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 2 });
    expect([await credits(), await marks(), mailed]).toEqual([[5], ["x"], ["Thanks"]]);
  });

  test("a later failure stops the event under its own code, and the result still lists the mail", async () => {
    await saveRelay(running, define(mail("Thanks"), NOWHERE, mark("x")));
    const event = await send("a");
    expect(await showEvent(running, event)).toMatchObject({ state: "dead", reason: "collection_missing" });
    expect(await told(event)).toEqual(["sender_domain_required", "collection_missing"]);
    const alerts = await alertsOf(running);
    expect(alerts).toMatchObject([{ code: "relay_failed" }]);
    expect(alerts[0]?.message).toContain("`collection` names nowhere");
    expect(alerts[0]?.message).not.toContain("relay domain set");
  });

  test("alerts the owner if a later attempt is the first that fails with it", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, define(CALL, mail("Thanks")));
    const event = await send("a");
    caller.reply = () => OK;
    expect(await retry(event)).toEqual(["done", "sender_domain_required"]);
    expect(await alertsOf(running)).toMatchObject([{ code: "sender_domain_required", count: 1 }]);
  });

  test("alerts the owner again for a replay that fails with it", async () => {
    await saveRelay(running, define(mail("Thanks"), NOWHERE));
    const event = await send("a");
    await editRelay(running, define(mail("Thanks")));
    expect(await runAgain(event)).toEqual(["sender_domain_required"]);
    expect((await alertsOf(running)).map(({ code }) => code)).toEqual(["relay_failed", "sender_domain_required"]);
  });

  test("alerts the owner at the first failure, once per relay for any number of events and attempts", async () => {
    await saveRelay(running, define(mail("Thanks")));
    const first = await send("a");
    await send("b");
    await retry(first);
    await retry(first, 300_000);
    const alerts = await alertsOf(running);
    expect(alerts).toMatchObject([{ code: "sender_domain_required", target: "relay:orders", count: 2 }]);
    expect(alerts[0]?.message).toContain("set one with relay domain set, then run relay domain verify");
  });

  test("counts an event once if it also fails for another reason", async () => {
    caller.reply = () => BROKEN;
    await saveRelay(running, define(mail("Thanks"), CALL));
    const event = await send("a");
    expect(await retry(event)).toEqual(["sender_domain_required", "http_error"]);
    expect(await alertsOf(running)).toMatchObject([{ code: "sender_domain_required", count: 1 }]);
  });

  test("sends no alert if the alert is off", async () => {
    const { settings } = (await running.api("GET", "/settings")).body;
    const off = { version: settings.version, alerts: { sender_domain_required: false } };
    expect((await running.api("PUT", "/settings", off)).status).toBe(200);
    await saveRelay(running, define(mail("Thanks")));
    await send("a");
    expect(await alertsOf(running)).toEqual([]);
  });
});

test("a replay is another run and adds no wait time since the event's arrival", async () => {
  const waits = async () => {
    // The metrics response is cached for a second.
    await running.clock.advance(1_000);
    return sampleOf(await (await fetch(`${running.service.url}/metrics`)).text(), "relay_run_wait_seconds_count");
  };
  await saveRelay(running, define(give(5)));
  const event = await send("a");
  expect(await waits()).toBe(1);
  await runAgain(event);
  expect(await waits()).toBe(1);
});

describe("on the command line", () => {
  const command = async (...line: string[]) => {
    const { dataDir, commandEnv } = running;
    return runCommand([...line, "--data-dir", dataDir], { cwd: dataDir, env: commandEnv });
  };

  test("shows the preview, and an action that it offers can be chosen", async () => {
    await saveRelay(running, define(give(5), mark("x")));
    const event = await send("a");
    await editRelay(running, define(give(6), mark("x")));
    const { code, said } = await command("events", "replay", event, "--plan");
    expect(code).toBe(0);
    expect(said).toBe(
      [
        "orders, version 2",
        "  actions.0  grant_credits  Is skipped unless you choose it: it was edited after it had done its work at 2026-01-15T12:00:00.000Z (amount was 5 and is 6). Its earlier work stays, and choosing it does the new work in addition. (--run 0)",
        "  actions.1  write_record  Is skipped: its work was done at 2026-01-15T12:00:00.000Z.",
      ].join("\n"),
    );
    expect(JSON.parse((await command("events", "replay", event, "--plan", "--json")).said).plan.actions).toHaveLength(2);
    expect((await command("events", "replay", event, "--run", "0")).code).toBe(0);
    running.service.runner.wake();
    await running.drain();
    expect((await credits()).sort()).toEqual([5, 6]);
  });

  test("rejects an action that is not offered with a sentence, and a value that is no index in the command itself", async () => {
    await saveRelay(running, define(give(5)));
    const event = await send("a");
    const refused = await command("events", "replay", event, "--run", "0");
    expect([refused.code, refused.told.includes("run names 0")]).toEqual([1, true]);
    const odd = await command("events", "replay", event, "--run", "first");
    expect([odd.code, odd.told.includes("from 0 to 9, as --plan shows it")]).toEqual([2, true]);
  });

  test("says with which version an event was mapped again", async () => {
    await saveRelay(running, receiverDefinition({ map: { event_id: "id" }, actions: [mark("x")] }));
    const event = await send("a");
    await editRelay(running, receiverDefinition({ map: { event_id: "id", kind: "type" }, actions: [mark("x")] }));
    await runAgain(event);
    expect((await command("events", "show", event)).said).toContain("mapped    again, with version 2 of the relay");
  });
});

test("two concurrent replays with a choice run it once", async () => {
  await saveRelay(running, define(give(5), CALL));
  const event = await send("a");
  await editRelay(running, define(give(6), CALL));
  caller.reply = () => "hang";
  const body = { run: [0], version: 2 };
  const answers = await Promise.all([1, 2].map(() => running.api("POST", `/events/${event}/replay`, body)));
  expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
  await until("the call is out", () => caller.hanging() === 1);
  caller.letGo();
  await running.drain();
  expect((await credits()).sort()).toEqual([5, 6]);
  expect((await replay(running, event)).status).toBe(202);
  await until("the call is out again", () => caller.hanging() === 1);
  caller.letGo();
  await running.drain();
  expect((await credits()).sort()).toEqual([5, 6]);
});

/** Names the actions of the random lists: credits, records, mails, and a call that can fail or hang. */
const WORDS = ["1", "2", "3", "x", "y", "m1", "m2", "c"];
const actionOf = (word: string): ActionLike =>
  word === "c" ? CALL : word.startsWith("m") ? mail(word) : /\d/.test(word) ? give(Number(word)) : mark(word);
const modelOf = (word: string): ModelAction => {
  const of = word === "c" ? "call" : word.startsWith("m") ? "mail" : /\d/.test(word) ? "credits" : "record";
  return { of, text: word, repeats: word === "c" };
};

type Turn =
  | { do: "list"; list: string[] }
  | { do: "insert" | "delete" | "exchange" | "change"; at: number; to: number; word: string }
  | { do: "again" | "crash"; works: boolean; choose: number };

const wordsOf = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 5 });
const turn: fc.Arbitrary<Turn> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ do: fc.constant("list" as const), list: wordsOf }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom("insert" as const, "delete" as const, "exchange" as const, "change" as const),
      at: fc.nat(5),
      to: fc.nat(5),
      word: fc.constantFrom(...WORDS),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom("again" as const, "again" as const, "crash" as const),
      works: fc.boolean(),
      choose: fc.nat(31),
    }),
  },
);

type Edit = Exclude<Turn, { do: "again" | "crash" }>;

function edited(before: readonly string[], by: Edit): string[] {
  const after = [...before];
  if (by.do === "list") return by.list;
  const place = by.at % after.length;
  if (by.do === "insert") after.splice(place, 0, by.word);
  else if (by.do === "delete" && after.length > 1) after.splice(place, 1);
  else if (by.do === "change") after[place] = by.word;
  else if (by.do === "exchange") after.push(...after.splice(place, 1));
  return after.slice(0, 8);
}

test("random edits between attempts, retries, replays and crashes match the model, and each skipped edit is reported", async () => {
  let cases = 0;
  await fc.assert(
    fc.asyncProperty(wordsOf, fc.array(turn, { minLength: 3, maxLength: 12 }), async (first, turns) => {
      cases += 1;
      await verifyOneLife(`life${cases}`, first, turns, cases % 2 === 0);
    }),
    { numRuns: Number(process.env.RELAY_EDIT_RUNS ?? roundsOf(15)), endOnFailure: true },
  );
});

/**
 * Runs one event of a separate relay from its arrival to its last attempt. With `upgraded`, an earlier version made the first attempt and some later
 * ones.
 */
async function verifyOneLife(name: string, first: string[], turns: readonly Turn[], upgraded: boolean): Promise<void> {
  if (name === "life1") await verifyDomain();
  const model = new EditModel();
  const email = `${name}@example.com`;
  const definition = (words: readonly string[]) => receiverDefinition({ name, actions: words.map(actionOf), map: MAP });
  let list = first;
  await saveRelay(running, definition(list));
  caller.reply = () => OK;
  const event = await sendEvent(running, name, { email }, name);
  await running.drain();
  let seen = await check(0, [{ list, stopAt: list.length }]);
  for (const one of turns) {
    if (!("works" in one)) {
      list = edited(list, one);
      await editRelay(running, definition(list));
      continue;
    }
    const stopAt = list.includes("c") ? list.indexOf("c") : list.length;
    const { state, attempts } = await showEvent(running, event);
    const chosen = state === "queued" || !one.works || one.do === "crash" ? [] : await choose(one.choose);
    caller.reply = () => (one.do === "crash" ? "hang" : one.works ? OK : BROKEN);
    if (state === "queued") {
      running.clock.jump(17 * 3_600_000);
      await running.clock.advance(5_000);
    } else {
      const body = chosen.length === 0 ? {} : { run: chosen };
      expect((await running.api("POST", `/events/${event}/replay`, body)).status).toBe(202);
    }
    if (one.do === "crash" && stopAt < list.length) {
      await until("the call is out", () => caller.hanging() > 0);
      await crash(one.works);
      await running.drain();
      // An interrupted attempt after the first waits like a failed attempt.
      if (attempts < 6 && (await showEvent(running, event)).runs.length < seen + 2) {
        running.clock.jump(17 * 3_600_000);
        await running.clock.advance(5_000);
        await running.drain();
      }
      const after = { list, stopAt: one.works ? list.length : stopAt };
      // An interrupted seventh attempt is the last one.
      const isLast = state === "queued" && attempts === 6;
      seen = await check(seen, [{ list, stopAt, cutOff: true }, ...(isLast ? [] : [after])]);
    } else {
      await running.drain();
      const all = one.do === "crash" || one.works;
      seen = await check(seen, [{ list, stopAt: all ? list.length : stopAt, chosen }]);
    }
  }

  await running.api("DELETE", `/relays/${name}`);

  async function choose(bits: number): Promise<number[]> {
    const offered = (await plan(event)).body.plan.actions.filter((one: { mayChoose: boolean }) => one.mayChoose);
    const foreseen = model.foresee(list.map(modelOf));
    expect(offered.map((one: { index: number }) => one.index)).toEqual(foreseen.flatMap((fate, index) => (typeof fate === "object" ? [index] : [])));
    return offered.map((one: { index: number }) => one.index).filter((index: number) => (bits >> index) % 2 === 1);
  }

  interface Lived {
    list: string[];
    stopAt: number;
    chosen?: number[];
    cutOff?: boolean;
  }

  /** Applies the attempts since `from` to the model, and compares everything. */
  async function check(from: number, lived: readonly Lived[]): Promise<number> {
    const view = await showEvent(running, event);
    const runs = view.runs.slice(from);
    expect(runs).toHaveLength(lived.length);
    for (const [at, { list: words, stopAt, chosen = [], cutOff = false }] of lived.entries()) {
      const foreseen = model.foresee(words.map(modelOf));
      const expected = model.attempt(words.map(modelOf), stopAt, new Set(chosen));
      const results = runs[at]?.results ?? [];
      const said = results.filter(({ outcome }) => outcome !== "failed").map(({ outcome, code }) => (code === "edited_after" ? "edited" : outcome));
      expect([words, stopAt, said]).toEqual([words, stopAt, expected]);
      expect(runs[at]?.outcome).toBe(cutOff ? "interrupted" : stopAt < words.length ? "failed" : "ok");
      for (const [index, word] of expected.entries()) {
        if (word !== "edited" || typeof foreseen[index] !== "object") continue;
        expect(view.warnings.some((warning) => warning.startsWith(`actions.${index} `))).toBe(true);
      }
    }
    const texts = (of: string) =>
      model.works
        .filter((work) => work.of === of)
        .map(({ text }) => text)
        .sort();
    const amounts = await running.rows<{ amount: number }>("SELECT amount FROM credit WHERE event_id = ?1", event);
    expect(amounts.map(({ amount }) => String(amount)).sort()).toEqual(texts("credits"));
    const written = await running.rows<{ mark: string }>(
      "SELECT json_extract(data, '$.amount') AS mark FROM record WHERE json_extract(data, '$.order') = ?1",
      name,
    );
    expect(written.map((row) => row.mark).sort()).toEqual(texts("record"));
    const got = letters.filter(({ to }) => to === email).map(({ subject }) => subject);
    expect(got.sort()).toEqual(texts("mail"));
    if (upgraded && (from === 0 || from % 3 === 2)) await rememberAsBefore();
    return view.runs.length;
  }

  /** Adds a row for each finished action, as earlier versions stored it before runs held this data. */
  async function rememberAsBefore(): Promise<void> {
    await running.service.store.write("app", async (tx) => {
      const row = await tx.get<{ seq: number; runs: number }>("SELECT seq, runs FROM event ORDER BY seq DESC LIMIT 1");
      if (row === null) throw new Error("There is no event.");
      for (const { key, state, after } of (await readPriorWork(tx, row.seq)).works.values()) {
        if (state !== "done") continue;
        const result = after === undefined ? null : JSON.stringify(after);
        const sql = "INSERT INTO effect (event_seq, key, state, result, run) VALUES (?1, ?2, 'done', ?3, ?4) ON CONFLICT DO NOTHING";
        await tx.run(sql, row.seq, key, result, row.runs);
      }
    });
  }
}

/** Stops during the call, and restarts on the stored state. */
async function crash(works: boolean): Promise<void> {
  let over = false;
  const restarted = running.restart().finally(() => {
    over = true;
  });
  caller.reply = () => (works ? OK : BROKEN);
  while (!over) await running.clock.advance(1_000);
  await restarted;
  // The stopped process no longer reads this response.
  caller.letGo();
}
