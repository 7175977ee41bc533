/**
 * Tests app-store purchases with the two templates as offered. The account token that the app stored finds the person. The sender signs nothing, so
 * actions need the opt-in, which has a warning, a log line and a confirmation for each widening.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type EventView, editRelay, replay, showEvent } from "../kit/event-flow.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { lookAt } from "../kit/shop.ts";

const TOKEN = "Bearer 9dRkq2LxVw7TfB4sZp0uYc3hNj6GaEmI";
const ACCOUNT = "7d1c2f0e-5f0b-4a35-9d3c-1b1f4f6f2a10";
let running: RunningService;
let ada: string;

beforeAll(async () => {
  running = await startRunningService();
  ada = (await running.api("POST", "/persons", { email: "ada@example.com" })).body.person.id;
});
afterAll(() => running[Symbol.asyncDispose]());

interface Template {
  name: string;
  definition: Record<string, unknown> & { name: string; trigger: Record<string, unknown> };
  catalog: { products: Record<string, object> };
}

async function offered(): Promise<Template[]> {
  const response = await fetch(`${running.service.url}/api/relay-templates`);
  // The store signs nothing, so its templates opt in.
  return ((await response.json()) as { items: Template[] }).items.filter(({ definition }) => definition.trigger.trustUnsignedEvents === true);
}

async function tell(relay: string, type: string, id: string, more: object = {}): Promise<EventView> {
  const event = { id, type, app_user_id: ACCOUNT, transaction_id: "700002054157982", ...more };
  const { status, body } = await running.hook(relay, {
    headers: { "content-type": "application/json", authorization: TOKEN },
    body: JSON.stringify({ api_version: "1.0", event }),
  });
  expect([status, body.received]).toEqual([200, true]);
  await running.drain();
  return showEvent(running, body.eventId);
}

const people = async () => (await running.rows<{ count: number }>("SELECT count(*) AS count FROM person"))[0];

describe("the templates, saved as offered", () => {
  test("are rejected without the opt-in, with the reason", async () => {
    for (const { definition } of await offered()) {
      const { trustUnsignedEvents: _, ...trigger } = definition.trigger;
      const refused = await running.api("POST", "/relays", { definition: { ...definition, trigger } });
      expect([refused.status, refused.body.code]).toEqual([400, "invalid_definition"]);
      expect(refused.body.problems).toMatchObject([{ field: "actions.0.type" }]);
    }
  });

  test("are saved with it and a one-line warning, and the product can name the relay", async () => {
    for (const { definition } of await offered()) {
      const saved = await running.api("POST", "/relays", { definition, secret: TOKEN });
      expect(saved.status).toBe(201);
      const warned = saved.body.warnings.filter((one: { code: string }) => one.code === "unsigned_events");
      expect(warned).toHaveLength(1);
    }
    const [purchase] = await offered();
    for (const [name, product] of Object.entries(purchase?.catalog.products ?? {})) {
      expect((await running.api("PUT", `/products/${name}`, product)).status).toBe(200);
    }
  });
});

describe("a store purchase", () => {
  let bought: EventView;

  test("with an unknown token creates no person: 200, recorded, person_not_found with the key and never its value", async () => {
    const before = await people();
    const lost = await tell("store-purchase", "INITIAL_PURCHASE", "st_0", { transaction_id: "1" });
    expect([lost.state, lost.reason, lost.person]).toEqual(["failed", "person_not_found", null]);
    const [result] = lost.runs[0]?.results ?? [];
    expect(result).toMatchObject({ type: "person", outcome: "failed", code: "person_not_found" });
    expect(result.message).toContain("person_token");
    expect(result.message).not.toContain(ACCOUNT);
    expect(await people()).toEqual(before);
  });

  test("finds the person by the token that the app stored, and fulfills the product", async () => {
    expect((await running.api("PUT", `/persons/${ada}/tokens/${ACCOUNT}`)).status).toBe(200);
    bought = await tell("store-purchase", "INITIAL_PURCHASE", "st_1");
    expect([bought.state, bought.person?.id]).toEqual(["done", ada]);
    expect(await lookAt(running, ada)).toEqual({ grants: ["premium from purchase"], credits: 0, plan: null });
    const { items } = (await running.api("GET", "/purchases")).body;
    expect(items).toMatchObject([{ ref: "700002054157982", item: "premium", relay: "store-purchase" }]);
  });

  test("has a token that is audited only by its fingerprint", async () => {
    const { items } = (await running.api("GET", "/audit?action=person.token_filed")).body;
    expect(items).toHaveLength(1);
    expect(items[0].target).toBe(`person:${ada}`);
    expect(JSON.stringify(items)).not.toContain(ACCOUNT);
  });

  test("with a wrong secret is a bad signature, and other event types are ignored without a row", async () => {
    const call = {
      headers: { "content-type": "application/json", authorization: "Bearer nothing" },
      body: "{}",
    };
    expect((await running.hook("store-purchase", call)).body.code).toBe("bad_signature");
    const other = await running.hook("store-purchase", {
      headers: { "content-type": "application/json", authorization: TOKEN },
      body: JSON.stringify({ event: { id: "st_2", type: "TEST" } }),
    });
    expect(other.body).toEqual({ received: true, ignored: "when" });
  });

  test("renews with its own transaction, by the same relay", async () => {
    const renewed = await tell("store-purchase", "RENEWAL", "st_r1", { transaction_id: "700002054157990" });
    expect(renewed.runs[0]?.results).toMatchObject([{ type: "fulfil_product", outcome: "done" }]);
    const { items } = (await running.api("GET", "/purchases")).body;
    expect(items.map((item: { ref: string }) => item.ref)).toEqual(["700002054157990", "700002054157982"]);
  });

  test.each(["CANCELLATION", "UNCANCELLATION", "PRODUCT_CHANGE", "BILLING_ISSUE"])(
    "%s is ignored by both templates, so a paid purchase lasts until it expires",
    async (type) => {
      for (const relay of ["store-purchase", "store-expiry"]) {
        const { body } = await running.hook(relay, {
          headers: { "content-type": "application/json", authorization: TOKEN },
          body: JSON.stringify({
            event: { id: `st_${type}`, type, app_user_id: ACCOUNT, transaction_id: "1" },
          }),
        });
        expect(body).toEqual({ received: true, ignored: "when" });
      }
      expect((await running.api("GET", `/persons/${ada}/access/premium`)).body.granted).toBe(true);
    },
  );

  test("ends when it expires: every active grant, and a check by the app shows it at once", async () => {
    const expired = await tell("store-expiry", "EXPIRATION", "st_3");
    expect(expired.runs[0]?.results).toMatchObject([{ type: "revoke_access", outcome: "done" }]);
    const checked = await running.api("GET", `/persons/${ada}/access/premium`);
    expect(checked.body).toEqual({ granted: false, suspended: false, until: null, grants: [] });
    const { items } = (await running.api("GET", `/persons/${ada}/grants`)).body;
    const ended = { live: false, revokedBy: "relay:store-expiry", relay: "store-purchase" };
    expect(items).toMatchObject([ended, ended]);
  });

  test("with another transaction grants it again, and a replay of the first does not", async () => {
    await replay(running, bought.id);
    await running.drain();
    expect((await lookAt(running, ada)).grants).toEqual([]);
    await tell("store-purchase", "INITIAL_PURCHASE", "st_4", { transaction_id: "700002054157983" });
    expect((await lookAt(running, ada)).grants).toEqual(["premium from purchase"]);
  });
});

describe("an unsigned sender at run time", () => {
  test("the opt-in is in the audit, and cannot be removed while the relay acts", async () => {
    const { relay } = (await running.api("GET", "/relays/store-purchase")).body;
    const { trustUnsignedEvents: _, ...trigger } = relay.definition.trigger;
    const definition = { ...relay.definition, trigger };
    const refused = await running.api("PUT", "/relays/store-purchase", {
      definition,
      version: relay.version,
    });
    expect([refused.status, refused.body.code]).toEqual([400, "invalid_definition"]);
    const { items } = (await running.api("GET", "/audit?target=relay:store-purchase")).body;
    expect(items).toMatchObject([{ before: null, after: { definition: { trigger: { trustUnsignedEvents: true } } } }]);
  });

  test("an event that waited while the relay only wrote never acts after an edit: it ends failed, and 409 on replay", async () => {
    await running.api("PUT", "/access/club", {});
    const [purchase] = await offered();
    const base = { ...purchase?.definition, name: "quiet" };
    const { trustUnsignedEvents: _, ...trigger } = purchase?.definition.trigger ?? {};
    await running.api("POST", "/collections", { name: "log", kind: "shared", fields: { id: "text" } });
    const write = { type: "write_record", collection: "log", data: { id: "{{mapped.event_id}}" } };
    const writing = { ...base, trigger, actions: [write] };
    expect((await running.api("POST", "/relays", { definition: writing, secret: TOKEN })).status).toBe(201);
    await running.api("POST", "/relays/quiet/pause");
    const waiting = await tell("quiet", "INITIAL_PURCHASE", "st_10");
    expect(waiting.state).toBe("queued");
    const signing = { verify: { scheme: "hooks" }, map: trigger.map, when: trigger.when, kind: "receiver" };
    const grant = { type: "grant_access", entitlement: "access:club" };
    await editRelay(running, { name: "quiet", trigger: signing, actions: [grant] });
    await running.api("POST", "/relays/quiet/resume");
    await running.drain();
    const ended = await showEvent(running, waiting.id);
    expect([ended.state, ended.reason]).toEqual(["failed", "unsigned_event"]);
    expect((await replay(running, waiting.id)).body.code).toBe("unsigned_event");
    expect((await lookAt(running, ada)).grants).not.toContain("access:club from relay");
  });

  test("with the opt-in, person_email creates people as invitations, with the same cap", async () => {
    const definition = {
      name: "by-mail",
      trigger: {
        kind: "receiver",
        verify: { scheme: "shared_token" },
        map: { event_id: "id", person_email: "email" },
        trustUnsignedEvents: true,
      },
      actions: [{ type: "grant_access", entitlement: "access:club" }],
    };
    const saved = await running.api("POST", "/relays", { definition, secret: TOKEN });
    expect(JSON.stringify(saved.body.warnings)).toContain("create people by address");
    const { body } = await running.hook("by-mail", {
      headers: { "content-type": "application/json", "x-webhook-token": TOKEN },
      body: JSON.stringify({ id: "m_1", email: "Bob@Example.com" }),
    });
    await running.drain();
    const event = await showEvent(running, body.eventId);
    const person = (await running.api("GET", `/persons/${event.person?.id}`)).body.person;
    expect(person).toMatchObject({
      email: "Bob@Example.com",
      status: "invited",
      createdBy: "relay:by-mail",
    });
    const { items } = (await running.api("GET", "/audit?action=person.invited&actor=relay:by-mail")).body;
    expect(items).toMatchObject([{ target: `person:${person.id}`, after: { status: "invited" } }]);
  });
});
