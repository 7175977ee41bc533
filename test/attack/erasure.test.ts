/**
 * An event that arrived before an erasure never brings the erased address back, and the address is found nowhere afterwards. See decisions, section
 * 5, "account erasure".
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uploadFile } from "../../src/shop/records/file.ts";
import { editRelay, replay, sendEvent, showEvent, until } from "../kit/event-flow.ts";
import { BROKEN, FakeCaller, OK } from "../kit/fake-caller.ts";
import { makeOrders, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const ADA = "Ada.Lovelace@example.com";
const MAP = { event_id: "id", event_type: "type", person_email: "email" };
const CREDITS = { type: "grant_credits", amount: 5, reason: "for {{person.email}}" };
const WRITE = {
  type: "write_record",
  collection: "orders",
  data: { order: "{{mapped.event_id}} of {{person.email}}" },
};
const CALL = { type: "call_url", url: "https://example.com/notice" };
const MAIL = { type: "email_person", subject: "To {{person.email}}", text: "Dear {{person.email}}" };
const MINUTE = 60_000;

let dataDir: string;
let running: RunningService;
let caller: FakeCaller;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "relay-erase-"));
  caller = new FakeCaller();
  const mailer = { send: async () => ({ kind: "sent" }) as const };
  running = await startRunningService({ config: { dataDir }, ports: { caller, mailer } });
  await running.service.store.write("app", (tx) =>
    tx.run("INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at) SELECT id, 'shop.example', 't', 1 FROM environment"),
  );
  await makeOrders(running);
});
afterEach(() => running[Symbol.asyncDispose]());

async function personId(email = ADA): Promise<string> {
  const { items } = (await running.api("GET", `/persons?email=${encodeURIComponent(email)}`)).body;
  return items[0]?.id;
}

async function erase(id: string): Promise<void> {
  expect((await running.api("DELETE", `/persons/${id}`)).status).toBe(204);
}

/** Runs the sweep to its end. It pauses by the clock. */
async function sweep(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) {
    await running.clock.advance(100);
    const [open] = await running.rows<{ count: number }>("SELECT count(*) AS count FROM erasure WHERE target IS NOT NULL");
    if (open?.count === 0) break;
  }
  await running.clock.advance(1_000);
}

const people = () => running.rows<{ email: string }>("SELECT email FROM person WHERE email IS NOT NULL ORDER BY email");

/** Returns the files of the database that contain the text, in upper or lower case. */
async function filesThatHold(text: string): Promise<string[]> {
  await running.service.store.vacuumStep({ everything: true });
  const files = readdirSync(dataDir).filter((name) => name.startsWith("relay.db"));
  const needle = text.toLowerCase();
  return files.filter((name) => readFileSync(join(dataDir, name)).toString("latin1").toLowerCase().includes(needle));
}

describe("an event that arrived before the erasure", () => {
  const rows: [what: string, make: () => Promise<string>][] = [
    [
      "and waits because its relay is paused",
      async () => {
        await running.api("POST", "/relays/orders/pause");
        return sendEvent(running, "waiting", { email: ADA.toUpperCase() });
      },
    ],
    [
      "and waits for its retry",
      async () => {
        caller.reply = () => BROKEN;
        await editRelay(running, receiverDefinition({ map: MAP, actions: [CREDITS, CALL] }) as never);
        const event = await sendEvent(running, "retry", { email: ADA });
        await running.drain();
        caller.reply = () => OK;
        return event;
      },
    ],
  ];
  for (const swept of [false, true]) {
    test.each(rows)(`%s fails with person_erased ${swept ? "after" : "before"} the sweep reached it`, async (_what, make) => {
      await saveRelay(running, receiverDefinition({ map: MAP, actions: [CREDITS] }));
      await sendEvent(running, "first", { email: ADA });
      await running.drain();
      const event = await make();
      await erase(await personId());
      if (swept) await sweep();
      await running.api("POST", "/relays/orders/resume");
      await running.clock.advance(2 * MINUTE);
      await running.drain();
      expect(await showEvent(running, event)).toMatchObject({ state: "failed", reason: "person_erased" });
      expect(await people()).toEqual([]);
      expect(caller.requests.length).toBeLessThanOrEqual(1);
    });
  }

  test("and is running ends after its current call, and nothing later writes or sends the address", async () => {
    caller.reply = () => "hang";
    await saveRelay(running, receiverDefinition({ map: MAP, actions: [CALL, WRITE, CALL] }));
    const event = await sendEvent(running, "under-way", { email: ADA });
    await until("it is called", () => caller.hanging() === 1);
    await erase(await personId());
    caller.reply = () => OK;
    caller.letGo();
    await running.drain();
    const shown = await showEvent(running, event);
    expect(shown).toMatchObject({ state: "failed", reason: "person_erased", attempts: 1 });
    expect(caller.requests).toHaveLength(1);
    expect(await running.rows("SELECT * FROM record")).toEqual([]);
    await sweep();
    expect(await filesThatHold(ADA)).toEqual([]);
  });

  test("fails with person_erased when it is replayed, and its replay is refused once it is expunged", async () => {
    await saveRelay(running, receiverDefinition({ map: MAP, actions: [CREDITS] }));
    const event = await sendEvent(running, "first", { email: ADA });
    await running.drain();
    await erase(await personId());
    expect((await replay(running, event)).status).toBe(202);
    await running.drain();
    expect(await showEvent(running, event)).toMatchObject({ state: "failed", reason: "person_erased" });
    await sweep();
    const refused = await replay(running, event);
    expect([refused.status, refused.body.code]).toEqual([409, "payload_expunged"]);
    const shown = await showEvent(running, event);
    expect(shown).toMatchObject({ payload: null, expunged: "person_erased" } as object);
    expect(await people()).toEqual([]);
  });

  test("and names the address still fails, while a new event creates a new person", async () => {
    await saveRelay(running, receiverDefinition({ map: MAP, actions: [CREDITS] }));
    await sendEvent(running, "first", { email: ADA });
    await running.drain();
    const gone = await personId();
    await running.api("POST", "/relays/orders/pause");
    const old = await sendEvent(running, "old", { email: ADA });
    await erase(gone);
    const fresh = await sendEvent(running, "fresh", { email: ADA });
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect(await showEvent(running, old)).toMatchObject({ state: "failed", reason: "person_erased" });
    const made = await showEvent(running, fresh);
    expect(made).toMatchObject({ state: "done" });
    expect(made.person?.id).not.toBe(gone);
    await sweep();
    expect(await showEvent(running, fresh)).toMatchObject({ state: "done", person: { email: ADA } });
    expect((await replay(running, fresh)).status).toBe(202);
  });

  test("and runs when a new person has the address does nothing for them", async () => {
    await saveRelay(running, receiverDefinition({ map: MAP, actions: [CREDITS] }));
    await saveRelay(running, receiverDefinition({ name: "later", map: MAP, actions: [CREDITS] }));
    await sendEvent(running, "first", { email: ADA });
    await running.drain();
    const gone = await personId();
    await running.api("POST", "/relays/orders/pause");
    const old = await sendEvent(running, "old", { email: ADA });
    await running.clock.advance(1_000);
    await erase(gone);
    const fresh = await sendEvent(running, "fresh", { email: ADA }, "later");
    await running.drain();
    const { person } = await showEvent(running, fresh);
    await running.api("POST", "/relays/orders/resume");
    await running.drain();
    expect(await showEvent(running, old)).toMatchObject({ state: "failed", reason: "person_erased", runs: [{ results: [{ type: "person" }] }] });
    expect((await running.api("GET", `/persons/${person?.id}/credits`)).body.balance).toBe(5);
  });

  test("keeps the address's hash only as long as the event exists", async () => {
    await saveRelay(running, receiverDefinition({ map: MAP, actions: [CREDITS] }));
    await sendEvent(running, "first", { email: ADA });
    await running.drain();
    await erase(await personId());
    await sweep();
    const hashes = () => running.rows("SELECT target FROM erasure");
    expect(await hashes()).toEqual([{ target: null }]);
    await sendEvent(running, "second", { email: "bob@example.com" });
    await running.drain();
    await running.service.store.write("app", (tx) => tx.run("DELETE FROM event WHERE seq = 1"));
    await running.clock.advance(61 * MINUTE);
    expect(await hashes()).toEqual([]);
  });

  test("and names the person by id or by token fails with person_erased too", async () => {
    const { person } = (await running.api("POST", "/persons", { email: ADA })).body;
    await running.api("PUT", `/persons/${person.id}/tokens/tok-ada`);
    const events: string[] = [];
    for (const [key, value] of [
      ["person_id", person.id],
      ["person_token", "tok-ada"],
    ]) {
      const name = key?.replace("_", "-") ?? "";
      await saveRelay(running, receiverDefinition({ name, map: { event_id: "id", [key ?? ""]: "who" }, actions: [CREDITS] }));
      await running.api("POST", `/relays/${name}/pause`);
      events.push(await sendEvent(running, name, { who: value }, name));
    }
    await erase(person.id);
    await sweep();
    for (const name of ["person-id", "person-token"]) await running.api("POST", `/relays/${name}/resume`);
    await running.drain();
    for (const event of events) expect(await showEvent(running, event)).toMatchObject({ state: "failed", reason: "person_erased" });
  });
});

describe("after an erasure, the address is found nowhere", () => {
  async function liveALife(): Promise<{ id: string; of: string; about: string }> {
    const body = JSON.stringify({ heard: `thank you, ${ADA}` });
    const headers = { "x-heard-from": ADA };
    const request = { method: "POST", url: `https://example.com/?of=${ADA}`, headers } as const;
    caller.reply = () => ({ kind: "answered", ok: true, status: 200, headers, body, request });
    await running.api("POST", "/collections", {
      name: "notes",
      kind: "private",
      fields: { text: { type: "text" } },
    });
    await saveRelay(running, receiverDefinition({ map: MAP, actions: [CREDITS, WRITE, CALL] }));
    await saveRelay(running, receiverDefinition({ name: "mailing", map: MAP, actions: [MAIL] }));
    const gift = { ...MAP, friend: "friend" };
    await saveRelay(
      running,
      receiverDefinition({
        name: "gifts",
        map: gift,
        actions: [{ ...CREDITS, reason: "from {{mapped.friend}}" }, WRITE, { ...MAIL, text: "A gift from {{mapped.friend}}" }],
      }),
    );
    await saveRelay(
      running,
      receiverDefinition({
        name: "sales",
        map: { ...MAP, ref: "ref" },
        actions: [
          { type: "fulfil_product", product: "book", ref: "{{mapped.ref}}" },
          { ...CREDITS, ref: "{{mapped.ref}}" },
        ],
      }),
    );
    await running.api("PUT", "/products/book", { soldThrough: { kind: "relay", relay: "sales" } });
    await saveRelay(running, receiverDefinition({ name: "picky", map: { ...MAP, to: "email" }, when: { to: "nobody" } }));
    const of = await sendEvent(running, "mine", { email: ADA });
    await sendEvent(running, "long", { email: ADA, filler: `${ADA} `.repeat(3_000) });
    await sendEvent(running, "mailed", { email: ADA }, "mailing");
    await sendEvent(running, "sold", { email: ADA, ref: `order-${ADA}-2026.v2` }, "sales");
    const about = await sendEvent(
      running,
      "bob",
      { email: "bob@example.com", friend: ADA, link: `https://x.example/?e=${encodeURIComponent(ADA)}` },
      "gifts",
    );
    const escaped = JSON.stringify({ id: "escaped", email: "eve@example.com", friend: "ADDRESS" });
    await running.hook("gifts", signedCall(escaped.replace("ADDRESS", ADA.replace("@", "\\u0040"))));
    await running.hook("picky", signedCall({ id: "ignored", email: ADA }));
    await running.drain();
    const id = await personId();
    const friend = (await running.api("POST", "/persons", { email: "carol@example.com" })).body.person.id;
    await running.api("PATCH", `/persons/${friend}`, { attributes: { invitedBy: ADA } });
    await running.api("POST", "/collections/notes/records", { data: { text: `I am ${ADA}` }, owner: id });
    await running.api("PATCH", `/persons/${id}`, { attributes: { also: ADA } });
    await running.clock.advance(10_000);
    return { id, of, about };
  }

  test.each([
    ["two hours behind", -2 * 60 * MINUTE],
    ["forty days behind", -40 * 24 * 60 * MINUTE],
  ])("even if the clock of the erasure is %s what was stored before", async (_, byMs) => {
    const { id } = await liveALife();
    running.clock.jump(byMs);
    await erase(id);
    await sweep();
    expect(await filesThatHold(ADA)).toEqual([]);
  });

  test("even in the person's own rows that were dated by a clock ahead, with events since it was set back", async () => {
    running.clock.jump(40 * 24 * 60 * MINUTE);
    await saveRelay(running, receiverDefinition({ name: "sales", map: { ...MAP, ref: "ref" }, actions: [{ ...CREDITS, ref: "{{mapped.ref}}" }] }));
    await sendEvent(running, "sold", { email: ADA, ref: `order-${ADA}-2026.v2` }, "sales");
    await running.drain();
    running.clock.jump(-40 * 24 * 60 * MINUTE);
    await sendEvent(running, "since", { email: "bob@example.com", ref: "2" }, "sales");
    await running.drain();
    await erase(await personId());
    await sweep();
    expect(await filesThatHold(ADA)).toEqual([]);
  });

  test("in the database and its log, whatever contained it", async () => {
    const { id, of, about } = await liveALife();
    expect(await filesThatHold(ADA)).not.toEqual([]);
    const held = await running.rows("SELECT DISTINCT state FROM event");
    expect(held).toEqual([{ state: "done" }]);
    expect(await running.rows("SELECT state FROM email")).toHaveLength(3);
    await erase(id);
    await sweep();
    expect(await filesThatHold(ADA)).toEqual([]);
    expect(await showEvent(running, of)).toMatchObject({ payload: null } as object);
    const others = await showEvent(running, about);
    expect(others).toMatchObject({
      state: "done",
      payload: { mapped: { friend: "erased" }, event: { link: "https://x.example/?e=erased" } },
    } as object);
  });

  test("whatever signs it has, while another person's address is erased too", async () => {
    const hyphened = "ada-l@my-shop.example";
    await liveALife();
    await saveRelay(running, receiverDefinition({ name: "hers", map: { ...MAP, note: "note" }, actions: [WRITE] }));
    for (const [id, note] of [
      ["one", `I am ${hyphened}`],
      ["two", `not ${hyphened}`],
    ])
      await sendEvent(running, id ?? "", { email: id === "one" ? hyphened : "bob@example.com", note }, "hers");
    await running.drain();
    await erase((await running.api("POST", "/persons", { email: hyphened })).body.person.id);
    await erase(await personId());
    await sweep();
    expect(await filesThatHold(hyphened)).toEqual([]);
    expect(await filesThatHold(ADA)).toEqual([]);
  });

  test("even if the service stopped in the middle, because the next start continues", async () => {
    const { id } = await liveALife();
    await erase(id);
    await running.restart();
    await running.clock.advance(2_000);
    await sweep();
    expect(await filesThatHold(ADA)).toEqual([]);
  });
});

test("an erasure deletes the subjects of emails to the person, also from the audit, and keeps those of others", async () => {
  const mail = { ...MAIL, subject: "Order of {{event.name}}", text: "Dear {{event.name}}" };
  await saveRelay(running, receiverDefinition({ name: "mailing", map: MAP, actions: [mail] }));
  await sendEvent(running, "hers", { email: ADA, name: "Lovelace" }, "mailing");
  await sendEvent(running, "his", { email: "bob@example.com", name: "Babbage" }, "mailing");
  await running.drain();
  const told = async () => JSON.stringify(await running.rows("SELECT after FROM audit WHERE action = 'run' ORDER BY seq"));
  expect(await told()).toContain("Order of Lovelace");
  await erase(await personId());
  await sweep();
  expect(await filesThatHold("Order of Lovelace")).toEqual([]);
  expect(await told()).not.toContain("Order of Lovelace");
  expect(await told()).toContain("Order of Babbage");
  const left = await running.rows<{ after: string }>("SELECT after FROM audit WHERE action = 'run' ORDER BY seq");
  expect(JSON.parse(left[0]?.after ?? "")).toMatchObject([{ type: "email_person", outcome: "done", after: { to: "erased" } }]);
});

test("an erasure deletes what books say about the person in other words, and keeps amounts, refs and grants", async () => {
  const named = { ...MAP, who: "who", pay: "pay" };
  const reason = "for {{mapped.who}}";
  const actions = [
    { type: "grant_credits", amount: 5, reason },
    { type: "grant_access", entitlement: "access:news", reason },
  ];
  await running.api("PUT", "/access/news", { title: "News" });
  await running.api("PUT", "/plans/free", { default: true });
  await running.api("PUT", "/plans/pro", { soldThrough: { kind: "payment_link", url: "https://pay.example/x" } });
  await saveRelay(running, receiverDefinition({ name: "books", map: named, actions }));
  await sendEvent(running, "hers", { email: ADA, who: "Lovelace" }, "books");
  await sendEvent(running, "his", { email: "bob@example.com", who: "Babbage" }, "books");
  await running.drain();
  const [hers, his] = [await personId(), await personId("bob@example.com")];
  for (const [person = "", who = ""] of [
    [hers, "Lovelace"],
    [his, "Babbage"],
  ]) {
    const receipt = { ref: `pay-${who.length}`, person, plan: "pro", processorCustomerId: `cus_${who}`, data: { who } };
    expect((await running.api("POST", "/receipts", receipt)).status).toBe(201);
  }
  await erase(hers);
  await sweep();
  expect(await filesThatHold("Lovelace")).toEqual([]);
  expect(await filesThatHold("Babbage")).not.toEqual([]);
  const rows = (sql: string) => running.rows(`${sql} WHERE person_id = ?1`, hers);
  expect(await rows("SELECT amount, reason FROM credit")).toEqual([{ amount: 5, reason: "erased" }]);
  expect(await rows("SELECT DISTINCT coalesce(reason, '-') AS reason FROM access_grant")).toEqual([{ reason: "erased" }, { reason: "-" }]);
  expect(await rows("SELECT processor_customer_id AS id, plan FROM subscription")).toEqual([{ id: null, plan: "pro" }]);
  const [purchase] = await running.rows<{ data: string }>("SELECT data FROM purchase WHERE person_id = ?1", hers);
  expect(JSON.parse(purchase?.data ?? "")).toEqual({
    granted: { entitlement: "pro", grant: expect.any(String), credits: 0, subscription: expect.any(String) },
  });
});

test("an erasure deletes files that only the person's records use, and keeps those of other records", async () => {
  const fields = { scan: { type: "file" } };
  await running.api("POST", "/collections", { name: "scans", kind: "private", fields });
  const [environment] = await running.rows<{ id: number }>("SELECT id FROM environment");
  const environmentId = environment?.id ?? 0;
  const invite = async (email: string) => (await running.api("POST", "/persons", { email })).body.person.id;
  const [ada, bob] = [await invite(ADA), await invite("bob@example.com")];
  const upload = (name: string) =>
    running.service.store.write("app", async (tx) => {
      const file = { environmentId, name, mediaType: null, content: new Uint8Array(3), nowMs: 0 };
      return (await uploadFile(tx, file)).id;
    });
  const [hers, both] = [await upload("hers"), await upload("both")];
  for (const [owner, scan] of [
    [ada, hers],
    [ada, both],
    [bob, both],
  ]) {
    const saved = await running.api("POST", "/collections/scans/records", { data: { scan }, owner });
    expect(saved.status).toBe(201);
  }
  await erase(ada);
  await sweep();
  const left = await running.rows<{ id: string }>("SELECT id FROM file");
  expect(left).toEqual([{ id: both }]);
});
