/**
 * Erasure of a person: the searched values, the work in steps, and manual expunging of one event. See the decisions, section 5, "account erasure".
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type EraseCursor, eraseRows } from "../../src/shop/people/person-erase.ts";
import { PiiMatcher } from "../../src/shop/people/pii-match.ts";
import { runCommand } from "../kit/cli-io.ts";
import { erase } from "../kit/erasing.ts";
import { replay, sendEvent, showEvent, until } from "../kit/event-flow.ts";
import { seqOf } from "../kit/event-sql.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { openTown } from "../kit/people.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

describe("an erased address in a text", () => {
  const ada = new PiiMatcher({ personId: "per_ada", email: "Ada@Example.com", tokens: ["tok"], by: "key:x" });
  const rows: [what: string, text: string, redacted: string][] = [
    ["without surrounding text", "ada@example.com", "erased"],
    ["in a different case, in a sentence", "Dear ADA@example.COM, hello", "Dear erased, hello"],
    ["in brackets", "Ada <ada@example.com>", "Ada <erased>"],
    ["at the end of a sentence", "Write to ada@example.com.", "Write to erased."],
    ["percent-encoded, after an encoded character", "?e%3Dada%40example.com&x=1", "?e%3Derased&x=1"],
    ["after a name that ends in a JSON escape", '{"a":"line\\nada@example.com"}', '{"a":"line\\nerased"}'],
    ["after JSON escapes", '{"a":"\\u0061da\\u0040example.com"}', '{"a":"erased"}'],
    ["as a name in JSON", '{"ada@example.com":[1,12345678901234567890]}', '{"erased":[1,12345678901234567890]}'],
    ["after the escapes of JSON in JSON", '{"a":"{\\"b\\":\\"ada\\\\u0040example.com\\"}"}', '{"a":"{\\"b\\":\\"erased\\"}"}'],
    ["before text that cannot continue a domain", "ada@example.com-2026-11 ada@example.com.7", "erased-2026-11 erased.7"],
    [
      "never as part of a longer address",
      "bada@example.com ada@example.com.au x.ada@example.com ada@example.com-x.co.uk ada@example.com.xn--p1ai",
      "bada@example.com ada@example.com.au x.ada@example.com ada@example.com-x.co.uk ada@example.com.xn--p1ai",
    ],
    ["never in a text without it", "nobody", "nobody"],
  ];
  test.each(rows)("%s", (_what, text, redacted) => {
    expect(ada.holdsAddress(text) ? ada.redactStored(text) : text).toBe(redacted);
  });

  test("is replaced in the person's own text even where it could be part of a longer address", () => {
    const own = { own: true };
    expect(ada.redactStored("order-ada@example.com.v2", own)).toBe("order-erased.v2");
    expect(ada.redactStored("ref:x_Ada@Example.com", { ...own, unique: true })).toBe("ref:x_erased-per_ada");
  });

  test("is found with all of its characters percent-encoded", () => {
    const plus = new PiiMatcher({ personId: "p", email: "ada+x@example.com", tokens: [], by: "key:x" });
    expect(plus.redactStored("?e=Ada%2Bx%40example.com&x=ada%2bx@example.com")).toBe("?e=erased&x=erased");
  });

  test("can contain every character that an address allows", () => {
    for (const sign of "!#$%&'*+/=?^_`{|}~.-") {
      const email = `a${sign}b@my-shop.example`;
      const one = new PiiMatcher({ personId: "p", email, tokens: [], by: "key:x" });
      expect(one.redactStored(`to ${email.toUpperCase()}, to ${encodeURIComponent(email)}`)).toBe("to erased, to erased");
    }
  });

  test("is found with its domain in letters and in punycode, whichever form was stored", () => {
    for (const email of ["zoe@bücher.example", "zoe@xn--bcher-kva.example"]) {
      const zoe = new PiiMatcher({ personId: "p", email, tokens: [], by: "key:x" });
      expect(zoe.redactStored("zoe@bücher.example, zoe@xn--bcher-kva.example, zoe@bucher.example")).toBe("erased, erased, zoe@bucher.example");
      expect(zoe.isAddress("ZOE@BÜCHER.example")).toBe(true);
    }
  });

  test("is found in either Unicode composition", () => {
    const zoe = new PiiMatcher({ personId: "p", email: "zo\u00eb@example.com", tokens: [], by: "key:x" });
    expect(zoe.redactStored("to ZOE\u0308@example.com")).toBe("to erased");
  });
});

describe("a person's rows", () => {
  test("are deleted in steps of bounded size, however many there are", async () => {
    const { store, environmentId, clock, newPerson, newCollection } = await openTown();
    await newCollection("diary", "private", { text: "text" });
    const person = await newPerson();
    await store.write("app", (tx) =>
      tx.run(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO record (id, environment_id, collection, data, owner_id, recipient_id, written_by, created_at, updated_at)
         SELECT 'rec_' || i, ?1, 'diary', '{"text":"x"}', CASE WHEN i % 2 = 1 THEN ?2 END, ?2, 'key:x', 0, 0 FROM n`,
        environmentId,
        person.id,
      ),
    );
    const erasure = { environmentId, personId: person.id, by: "key:x", nowMs: clock.now() };
    const sizes: number[] = [];
    let cursor: EraseCursor | null = { recordSeq: 0 };
    while (cursor !== null) {
      const from: EraseCursor = cursor;
      const step = await store.write("erasure", (tx) => eraseRows(tx, erasure, from));
      sizes.push(step?.touched.records ?? 0);
      cursor = step?.cursor ?? null;
    }
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(5_000);
    expect(Math.max(...sizes)).toBe(200);
  });

  test("do not include what another person wrote to them", async () => {
    const { store, environmentId, clock, newPerson, newCollection } = await openTown();
    await newCollection("chat", "direct", { text: "text" });
    const [gone, other] = [await newPerson(), await newPerson()];
    const write = (id: string, owner: string | null, recipient: string | null) =>
      store.write("app", (tx) =>
        tx.run(
          `INSERT INTO record (id, environment_id, collection, data, owner_id, recipient_id, written_by, created_at, updated_at)
           VALUES (?1, ?2, 'chat', '{"text":"x"}', ?3, ?4, 'key:x', 0, 0)`,
          id,
          environmentId,
          owner,
          recipient,
        ),
      );
    await write("rec_to_other", gone.id, other.id);
    await write("rec_from_other", other.id, gone.id);
    await write("rec_from_app", null, gone.id);
    await write("rec_of_other", other.id, null);
    expect(await erase(store, { environmentId, personId: gone.id, by: "key:x", nowMs: clock.now() })).toEqual({ records: 2 });
    expect(await store.read((tx) => tx.all("SELECT id FROM record ORDER BY id"))).toEqual([{ id: "rec_from_other" }, { id: "rec_of_other" }]);
  });

  test("that are large are deleted in steps limited by bytes", async () => {
    const { store, environmentId, clock, newPerson } = await openTown();
    const person = await newPerson();
    await store.write("app", (tx) =>
      tx.run(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)
         INSERT INTO record (id, environment_id, collection, data, owner_id, written_by, created_at, updated_at)
         SELECT 'big_' || i, ?1, 'diary', ?3, ?2, 'key:x', 0, 0 FROM n`,
        environmentId,
        person.id,
        JSON.stringify("x".repeat(100_000)),
      ),
    );
    const erasure = { environmentId, personId: person.id, by: "key:x", nowMs: clock.now() };
    const step = await store.write("erasure", (tx) => eraseRows(tx, erasure, { recordSeq: 0 }));
    expect(step?.touched).toEqual({ records: 2 });
    expect(await erase(store, erasure)).toEqual({ records: 8 });
  });
});

describe("expunging an event manually", () => {
  let running: RunningService;
  const caller = new FakeCaller();
  const CALL = { type: "call_url", url: "https://example.com/notice" };
  beforeAll(async () => {
    running = await startRunningService({ ports: { caller } });
    await makeOrders(running);
    const write = { type: "write_record", collection: "orders", data: { order: "{{mapped.event_id}}" } };
    await saveRelay(running, receiverDefinition({ actions: [write, CALL] }));
  });
  afterAll(() => running[Symbol.asyncDispose]());
  const expunge = (id: string) => running.api("POST", `/events/${id}/expunge`);

  test("removes the payload and the quoted results, keeps the outcome, and is audited", async () => {
    caller.reply = () => ({ kind: "answered", ok: true, status: 200, body: "heard of secret-4711" });
    const event = await sendEvent(running, "a", { note: "secret-4711" });
    await running.drain();
    const { status, body } = await expunge(event);
    expect(status).toBe(200);
    expect(body.event).toMatchObject({ state: "done", payload: null, expunged: "payload_expunged" });
    expect(body.event.runs[0].results).toEqual([
      { type: "write_record", outcome: "done", beganAt: null, tookMs: null },
      { type: "call_url", outcome: "done", beganAt: null, tookMs: null },
    ]);
    const stored = await running.rows("SELECT * FROM event, run WHERE run.event_seq = event.seq");
    expect(JSON.stringify(stored)).not.toContain("secret-4711");
    const { items } = (await running.api("GET", `/audit?target=event:${event}`)).body;
    expect(items).toMatchObject([{ action: "event.expunged", before: { state: "done" }, after: { payload: null } }]);
  });

  test("twice is audited once", async () => {
    const event = await sendEvent(running, "twice");
    await running.drain();
    expect([(await expunge(event)).status, (await expunge(event)).status]).toEqual([200, 200]);
    expect((await running.api("GET", `/audit?target=event:${event}`)).body.items).toHaveLength(1);
  });

  test("with many attempts works in steps, and the same request continues after an interruption", async () => {
    caller.reply = () => OK;
    const event = await sendEvent(running, "many");
    await running.drain();
    const fill = () =>
      running.service.store.write("app", (tx) =>
        tx.run(
          `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
           INSERT INTO run (event_seq, number, started_at, results)
           SELECT ?1, i, 0,
             '[{"type":"call_url","outcome":"done","answer":{"status":200,"body":"secret-2342"}}]' FROM n WHERE TRUE
           ON CONFLICT (event_seq, number) DO UPDATE SET results = excluded.results`,
          seqOf(event),
        ),
      );
    const quoted = async (): Promise<number> => (await running.rows("SELECT 1 FROM run WHERE results LIKE '%secret-2342%'")).length;
    const left: Promise<number>[] = [];
    const unlisten = running.service.store.listen((touched) => {
      if (touched.has("erasure")) left.push(quoted());
    });
    await fill();
    expect([await quoted(), (await expunge(event)).status, await quoted()]).toEqual([60, 200, 0]);
    await fill();
    expect([await quoted(), (await expunge(event)).status, await quoted()]).toEqual([60, 200, 0]);
    unlisten();
    // The response comes only after the space is freed, because nothing may be quoted afterwards.
    expect(await Promise.all(left)).toEqual([0, 0]);
  });

  test("makes a replay fail with payload_expunged", async () => {
    const event = await sendEvent(running, "b");
    await running.drain();
    await expunge(event);
    const refused = await replay(running, event);
    expect([refused.status, refused.body.code]).toEqual([409, "payload_expunged"]);
  });

  test("ends an event that waits for its retry as failed, without a retry", async () => {
    caller.reply = () => BROKEN;
    const event = await sendEvent(running, "c");
    await running.drain();
    caller.reply = () => OK;
    const sent = caller.requests.length;
    expect((await expunge(event)).body.event).toMatchObject({ state: "failed", reason: "payload_expunged" });
    await running.clock.advance(120_000);
    await running.drain();
    expect(caller.requests.length).toBe(sent);
    expect(await showEvent(running, event)).toMatchObject({ state: "failed", attempts: 1 });
  });

  test("is refused while the event runs, and succeeds afterwards", async () => {
    caller.reply = () => "hang";
    const event = await sendEvent(running, "d");
    await until("it is called", () => caller.hanging() === 1);
    const refused = await expunge(event);
    expect([refused.status, refused.body.code]).toEqual([409, "not_expungeable"]);
    caller.letGo();
    await running.drain();
    expect((await expunge(event)).status).toBe(200);
  });

  test("works by command next to the running service, and relay events show reports it", async () => {
    caller.reply = () => OK;
    const event = await sendEvent(running, "by-command", { note: "secret-0815" });
    await running.drain();
    const command = (...line: string[]) => runCommand([...line, "--data-dir", running.dataDir], { cwd: running.dataDir, env: running.commandEnv });
    const { code, told } = await command("events", "expunge", event);
    expect([code, told.includes(`${event} is expunged`)]).toEqual([0, true]);
    const { said } = await command("events", "show", event);
    expect(said).toContain("(expunged manually)");
    expect(said).not.toContain("secret-0815");
    const { items } = (await running.api("GET", `/audit?target=event:${event}`)).body;
    expect(items).toMatchObject([{ action: "event.expunged", actor: "command line" }]);
  });

  test("is refused with not_found for an unknown event", async () => {
    expect((await expunge("evt_0199b7a1f3c07d3e8a5b6c7d8e9f0a1b")).body.code).toBe("not_found");
  });

  test("cannot be imitated by a sender's payload", async () => {
    caller.reply = () => OK;
    const event = await sendEvent(running, "e", { expunged: "person_erased" });
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "done", expunged: null } as object);
  });
});
