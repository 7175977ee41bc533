/** Tests replays through the API: which events can be replayed, what a replay runs, and its errors. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { CALL, GRANT, replay, sendEvent, showEvent, until, WRITE } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const PERSON = { email: "ada@example.com" };
const PERSON_MAP = { event_id: "id", person_email: "email" };
const DEAD = { ...WRITE, collection: "nowhere" };

let running: RunningService;
let caller: FakeCaller;

beforeEach(async () => {
  caller = new FakeCaller();
  const mailer = { send: async () => ({ kind: "sent" }) as const };
  running = await startRunningService({
    ports: { caller, mailer },
    environments: ["development", "production"],
  });
  await makeOrders(running);
});

afterEach(() => running[Symbol.asyncDispose]());

async function sendAndDrain(id: string, more: object = {}): Promise<string> {
  const event = await sendEvent(running, id, more);
  await running.drain();
  return event;
}

describe("a final event is replayed", () => {
  test("done: 202 with the event queued and its attempts reset, then every action runs again", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL, CALL] }));
    const event = await sendAndDrain("a");
    caller.reply = () => "hang";
    const answer = await replay(running, event);
    expect(answer.status).toBe(202);
    expect(answer.body.event).toMatchObject({
      id: event,
      state: "queued",
      reason: null,
      attempts: 0,
      replays: 1,
      nextAttemptAt: null,
      finishedAt: null,
    });
    await until("a call is out", () => caller.hanging() === 1);
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ state: "done", attempts: 1, replays: 1 });
    expect(view.runs.map((run) => [run.attempt, run.outcome])).toEqual([
      [1, "ok"],
      [2, "ok"],
    ]);
    expect(caller.ids).toEqual([event, event, event, event]);
  });

  test("dead: it has seven attempts again", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    caller.reply = () => BROKEN;
    const event = await sendAndDrain("a");
    const exhaust = async () => {
      for (let attempt = 2; attempt <= 7; attempt++) {
        running.clock.jump(17 * 3_600_000);
        await running.clock.advance(5_000);
        await running.drain();
      }
    };
    await exhaust();
    expect(await showEvent(running, event)).toMatchObject({ state: "dead", attempts: 7 });
    await replay(running, event);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "queued", attempts: 1 });
    await exhaust();
    const view = await showEvent(running, event);
    expect(view).toMatchObject({ state: "dead", attempts: 7, replays: 1 });
    expect(view.runs.map((run) => run.attempt)).toEqual(Array.from({ length: 14 }, (_, n) => n + 1));
  });

  test("dead by its definition: the replay succeeds once the missing item exists", async () => {
    await saveRelay(running, receiverDefinition({ actions: [DEAD] }));
    const event = await sendAndDrain("a");
    expect(await showEvent(running, event)).toMatchObject({ state: "dead" });
    const fields = { order: { type: "text" } };
    await running.api("POST", "/collections", { name: "nowhere", kind: "shared", fields });
    await replay(running, event);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", attempts: 1, reason: null });
  });

  test("failed with person_not_found: the replay succeeds once the person exists", async () => {
    const map = { event_id: "id", person_token: "token" };
    await saveRelay(running, receiverDefinition({ actions: [GRANT], map }));
    const event = await sendAndDrain("a", { token: "store-1" });
    expect(await showEvent(running, event)).toMatchObject({ state: "failed", reason: "person_not_found" });
    const { person } = (await running.api("POST", "/persons", PERSON)).body;
    await running.api("PUT", `/persons/${person.id}/tokens/store-1`, {});
    expect((await replay(running, event)).status).toBe(202);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", person: { id: person.id } });
  });

  test("failed with relay_deleted: it fails again until a relay of that name exists, which then runs it", async () => {
    await saveRelay(running, receiverDefinition({}));
    await running.api("POST", "/relays/orders/pause");
    const event = await sendEvent(running, "a");
    await running.api("DELETE", "/relays/orders");
    await until("it failed", async () => (await showEvent(running, event)).state === "failed");
    expect((await replay(running, event)).status).toBe(202);
    await until("it failed again", async () => (await showEvent(running, event)).runs.length === 2);
    expect(await showEvent(running, event)).toMatchObject({ state: "failed", reason: "relay_deleted" });
    await saveRelay(running, receiverDefinition({}));
    await replay(running, event);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done" });
    expect(await running.rows("SELECT id FROM record")).toHaveLength(1);
  });

  test("writes one audit row that names the caller", async () => {
    await saveRelay(running, receiverDefinition({}));
    const event = await sendAndDrain("a");
    await replay(running, event);
    const rows = await running.rows<{ actor: string; target: string; before: string; after: string }>(
      "SELECT actor, target, before, after FROM audit WHERE action = 'event.replayed'",
    );
    expect(rows).toEqual([
      {
        actor: expect.stringMatching(/^key:/) as unknown as string,
        target: `event:${event}`,
        before: '{"state":"done"}',
        after: '{"state":"queued"}',
      },
    ]);
  });

  test("of a paused relay waits for the resume", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendAndDrain("a");
    await running.api("POST", "/relays/orders/pause");
    await replay(running, event);
    await running.clock.advance(10_000);
    expect(await showEvent(running, event)).toMatchObject({ state: "queued", attempts: 0 });
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect(caller.ids).toEqual([event, event]);
  });
});

describe("on a replay", () => {
  const ACTIONS = [
    WRITE,
    { type: "grant_access", entitlement: "access:pro" },
    { type: "revoke_access", entitlement: "access:old" },
    GRANT,
    { type: "email_person", subject: "Hello", text: "Thank you." },
    CALL,
  ];

  test("write_record, grant_access, revoke_access, grant_credits and email_person record skipped, and call_url sends again", async () => {
    await running.service.store.write("app", async (tx) => {
      await tx.run(
        "INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment WHERE name = 'development'",
      );
      for (const slug of ["pro", "old"])
        await tx.run(
          "INSERT INTO access_slug (environment_id, slug, title, created_at) SELECT id, ?1, ?1, 0 FROM environment WHERE name = 'development' ON CONFLICT DO NOTHING",
          slug,
        );
    });
    await saveRelay(running, receiverDefinition({ actions: ACTIONS, map: PERSON_MAP }));
    const event = await sendAndDrain("a", PERSON);
    expect(await showEvent(running, event)).toMatchObject({ state: "done" });
    const counts = () =>
      running.rows(
        "SELECT (SELECT count(*) FROM record) AS records, (SELECT count(*) FROM access_grant) AS grants, (SELECT sum(amount) FROM credit) AS credits, (SELECT count(*) FROM email) AS emails",
      );
    expect(await counts()).toEqual([{ records: 1, grants: 1, credits: 5, emails: 1 }]);
    await replay(running, event);
    await running.drain();
    const view = await showEvent(running, event);
    expect(view.runs[1]?.results.map(({ type, outcome }) => [type, outcome])).toEqual([
      ["write_record", "skipped"],
      ["grant_access", "skipped"],
      ["revoke_access", "skipped"],
      ["grant_credits", "skipped"],
      ["email_person", "skipped"],
      ["call_url", "done"],
    ]);
    expect(await counts()).toEqual([{ records: 1, grants: 1, credits: 5, emails: 1 }]);
    expect(caller.ids).toEqual([event, event]);
  });
});

describe("a replay is rejected", () => {
  test("with 409 not_replayable while the event is queued, waits for its retry, or runs, and nothing changes", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    await running.api("POST", "/relays/orders/pause");
    const event = await sendEvent(running, "a");
    const refuse = async (state: string) => {
      const before = await running.rows("SELECT * FROM event");
      const answer = await replay(running, event);
      expect([answer.status, answer.body.code]).toEqual([409, "not_replayable"]);
      expect(answer.body.message).toContain(state);
      expect(answer.body.message).toContain("relay events retry");
      expect(await running.rows("SELECT * FROM event")).toEqual(before);
    };
    await refuse("queued");
    caller.reply = () => "hang";
    await running.api("POST", "/relays/orders/resume");
    await until("the call is out", () => caller.hanging() === 1);
    await refuse("running");
    caller.letGo(1, BROKEN);
    await running.drain();
    await refuse("queued");
  });

  test("with 409 not_replayable for the second of two concurrent replays", async () => {
    await saveRelay(running, receiverDefinition({ actions: [CALL] }));
    const event = await sendAndDrain("a");
    caller.reply = () => "hang";
    const answers = await Promise.all([replay(running, event), replay(running, event)]);
    expect(answers.map((answer) => answer.status).sort()).toEqual([202, 409]);
    await until("a call is out", () => caller.hanging() === 1);
    caller.letGo();
    await running.drain();
    expect(caller.requests).toHaveLength(2);
  });

  test("with 404 for an unknown event, and for one of another environment", async () => {
    await saveRelay(running, receiverDefinition({}));
    const event = await sendAndDrain("a");
    expect((await replay(running, "evt_nothing")).status).toBe(404);
    const foreign = await running.api("POST", `/events/${event}/replay`, undefined, "production");
    expect([foreign.status, foreign.body.code]).toEqual([404, "not_found"]);
    expect(await showEvent(running, event)).toMatchObject({ state: "done", replays: 0 });
  });

  test("with 409 unsigned_event while the relay acts without the opt-in, until it has one", async () => {
    const verify = { scheme: "shared_token" };
    const map = { event_id: "id", person_id: "who" };
    const { person } = (await running.api("POST", "/persons", PERSON)).body;
    await saveRelay(running, receiverDefinition({ verify, map, actions: [CALL] }));
    const { body } = await running.hook("orders", {
      headers: { "content-type": "application/json", "x-webhook-token": HOOK_SECRET },
      body: JSON.stringify({ id: "a", who: person.id }),
    });
    await running.drain();
    const store = async (change: object) => {
      const definition = JSON.stringify(receiverDefinition({ map, actions: [GRANT], ...change }));
      await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET definition = ?1", definition));
      running.service.refresh();
    };
    await store({});
    const refused = await replay(running, body.eventId);
    expect([refused.status, refused.body.code]).toEqual([409, "unsigned_event"]);
    expect(await showEvent(running, body.eventId)).toMatchObject({ state: "done", replays: 0 });
    await store({ verify, trustUnsignedEvents: true });
    expect((await replay(running, body.eventId)).status).toBe(202);
    await running.drain();
    expect(await showEvent(running, body.eventId)).toMatchObject({ state: "done" });
    expect(await running.rows("SELECT amount FROM credit")).toEqual([{ amount: 5 }]);
  });
});
