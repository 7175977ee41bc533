/** Tests imports of events that a provider lists but never delivered: new, known and rejected lines, callers, and no duplicates. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { bindScheme } from "../../src/rules/verify/registry.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { type Answer, APP, type RunningService, startRunningService } from "../kit/running-service.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD_SECRET = "Tk1bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const NOTE = { type: "write_record", collection: "notes", data: { text: "{{mapped.text}}" } };
const GRANT = { type: "grant_access", entitlement: "access:vip" };
const RECIPE = { scheme: "signature", header: "x-signature", signatureKey: "v1", timestampKey: "t", signedPayload: "{timestamp}.{body}" };
const BODY_ONLY = { scheme: "signature", header: "x-signature", signedPayload: "{body}" };
const TOKEN = { scheme: "signature", signatureField: "sign", tokenField: "token", timestampField: "at", signedPayload: "{timestamp}{token}" };
const PARAMS = { scheme: "signature", header: "x-signature", signedPayload: "{url}{params}", encoding: "base64" };

type Verify = { scheme: string } & Record<string, string>;
interface Made {
  verify?: Verify;
  map?: Record<string, string>;
  when?: Record<string, string>;
  actions?: object[];
  trustUnsignedEvents?: boolean;
}

let house: RunningService;
beforeEach(async () => {
  house = await startRunningService();
  await house.api("POST", "/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } });
  await house.api("PUT", "/access", { items: [{ slug: "vip" }] });
});
afterEach(() => house[Symbol.asyncDispose]());

async function make(name: string, { verify = RECIPE, actions = [NOTE], map, ...more }: Made = {}): Promise<Answer> {
  const definition = { name, trigger: { kind: "receiver", verify, map: map ?? { event_id: "id", text: "text" }, ...more }, actions };
  const made = await house.api("POST", "/relays", { definition, ...(verify.scheme === "processor" ? {} : { secret: SECRET }) });
  expect([made.status, made.body.message]).toEqual([201, undefined]);
  return made;
}

/** Signs a delivery as its sender does, `agoMs` before now. */
function sign(name: string, verify: Verify, body: string, { agoMs = 0, contentType = "application/json", secret = SECRET } = {}) {
  const receiverUrl = `https://relay.example.test/hooks/${APP}/${name}`;
  const draft = { body: Buffer.from(body), contentType, receiverUrl, nowMs: house.clock.now() - agoMs };
  const signed = bindScheme(verify)?.sign(secret, draft);
  if (signed === undefined) throw new Error("no such scheme");
  return { headers: signed.headers, body: Buffer.from(signed.body).toString() };
}

const line = (delivery: object): string => JSON.stringify(delivery);

async function send(name: string, text: string | Uint8Array, query: Record<string, string> = {}, key = house.keys.development) {
  const url = `${house.service.url}/api/apps/${APP}/development/relays/${name}/import-missed?${new URLSearchParams(query)}`;
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(url, { method: "POST", headers, body: text as BodyInit });
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers by their fields
  return { status: response.status, body: (await response.json()) as any };
}

/** Imports the text and returns an outcome per line, such as `1 new` or `2 refused invalid_json`. */
async function told(name: string, text: string | Uint8Array, query: Record<string, string> = {}): Promise<string[]> {
  const { status, body } = await send(name, text, query);
  expect([status, body.message]).toEqual([200, undefined]);
  return body.lines.map(({ line, outcome, code }: Record<string, unknown>) => [line, outcome, code].filter((one) => one !== null).join(" "));
}

const event = (id: number | string, more: object = {}) => JSON.stringify({ id: `evt_${id}`, text: `note ${id}`, ...more });
const rows = () =>
  house.rows<{ state: string; reason: string | null; unsigned: number; cameBy: string | null }>(
    "SELECT state, reason, unsigned, source AS cameBy FROM event ORDER BY seq",
  );
const notes = async (): Promise<string[]> =>
  (await house.api("GET", "/collections/notes/records")).body.items.map(({ data }: { data: { text: string } }) => data.text).sort();

describe("events that a provider lists", () => {
  test("enter as if received, run, and are known the second time", async () => {
    await make("orders");
    expect(await told("orders", `${event(1)}\n${event(2)}\n`)).toEqual(["1 new", "2 new"]);
    await house.drain();
    expect(await rows()).toEqual(Array.from({ length: 2 }, () => ({ state: "done", reason: null, unsigned: 1, cameBy: "import" })));
    expect(await notes()).toEqual(["note 1", "note 2"]);
    expect(await told("orders", `${event(1)}\n${event(2)}\n`)).toEqual(["1 known", "2 known"]);
    await house.drain();
    expect(await notes()).toEqual(["note 1", "note 2"]);
  });

  test("are known if they were received, and a late delivery is a duplicate of the import", async () => {
    await make("orders");
    const received = await house.hook("orders", sign("orders", RECIPE, event(1)));
    const { body } = await send("orders", `${event(1, { more: "other bytes" })}\n${event(2)}`);
    expect(body.lines.map(({ outcome, eventId }: Record<string, unknown>) => [outcome, eventId === received.body.eventId])).toEqual([
      ["known", true],
      ["new", false],
    ]);
    const late = await house.hook("orders", sign("orders", RECIPE, event(2)));
    expect(late.body).toEqual({ received: true, duplicate: true, eventId: body.lines[1].eventId });
  });

  test("count once if they occur twice in a file, in the preview and in the import", async () => {
    await make("orders");
    const file = `${event(1)}\n${event(1)}\n`;
    expect(await told("orders", file, { dryRun: "true" })).toEqual(["1 new", "2 known"]);
    expect(await told("orders", file)).toEqual(["1 new", "2 known"]);
  });

  test("are not stored by a preview", async () => {
    await make("orders");
    expect(await told("orders", event(1), { dryRun: "true" })).toEqual(["1 new"]);
    expect(await rows()).toEqual([]);
    expect(await house.rows("SELECT 1 FROM audit WHERE action = 'events.imported'")).toEqual([]);
    expect(await told("orders", event(1))).toEqual(["1 new"]);
  });

  test("pass the filter of when, and an ignored line gives the reason", async () => {
    await make("orders", { map: { event_id: "id", text: "text", event_type: "type" }, when: { event_type: "paid" } });
    const { body } = await send("orders", `${event(1, { type: "paid" })}\n${event(2, { type: "made" })}`);
    expect(body.lines.map(({ outcome, message }: Record<string, unknown>) => [outcome, message])).toEqual([
      ["new", null],
      ["ignored", 'when.event_type must be "paid" and the request has "made"'],
    ]);
    expect((await rows()).length).toBe(1);
  });

  test("wait while the relay is paused", async () => {
    await make("orders");
    await house.api("POST", "/relays/orders/pause", {});
    expect(await told("orders", event(1))).toEqual(["1 new"]);
    await house.drain();
    expect((await rows())[0]?.state).toBe("queued");
    await house.api("POST", "/relays/orders/resume", {});
    await house.drain();
    expect((await rows())[0]?.state).toBe("done");
  });

  test("do not count against the app's limit per minute", async () => {
    await make("orders");
    const many = Array.from({ length: 300 }, (_, at) => event(at)).join("\n");
    expect(new Set((await told("orders", many)).map((one) => one.split(" ")[1]))).toEqual(new Set(["new"]));
    expect((await house.hook("orders", sign("orders", RECIPE, event("live")))).status).toBe(200);
  });
});

describe("the unsigned-event rule", () => {
  const LINES: [why: string, verify: Verify, delivery: (name: string) => string, expected: string][] = [
    ["a bare body", RECIPE, () => event(1), "1 refused unsigned_event"],
    ["a delivery with a valid signature from ten days ago", RECIPE, (name) => line(sign(name, RECIPE, event(1), { agoMs: 10 * DAY_MS })), "1 new"],
    [
      "a delivery signed with another secret",
      RECIPE,
      (name) => line(sign(name, RECIPE, event(1), { secret: OLD_SECRET })),
      "1 refused unsigned_event",
    ],
    ["a delivery with another body", RECIPE, (name) => line({ ...sign(name, RECIPE, event(1)), body: event(2) }), "1 refused unsigned_event"],
    ["a delivery signed in the future", RECIPE, (name) => line(sign(name, RECIPE, event(1), { agoMs: -DAY_MS })), "1 refused unsigned_event"],
    ["a delivery signed 30 days ago", RECIPE, (name) => line(sign(name, RECIPE, event(1), { agoMs: 30 * DAY_MS })), "1 refused event_too_old"],
    ["a delivery signed 29 days ago", RECIPE, (name) => line(sign(name, RECIPE, event(1), { agoMs: 29 * DAY_MS })), "1 new"],
    ["a delivery without its signature", RECIPE, () => line({ headers: {}, body: event(1) }), "1 refused unsigned_event"],
    [
      "a valid old Standard Webhooks delivery",
      { scheme: "hooks" },
      (name) => line(sign(name, { scheme: "hooks" }, event(1), { agoMs: DAY_MS })),
      "1 new",
    ],
    ["a signature without a time", BODY_ONLY, (name) => line(sign(name, BODY_ONLY, event(1))), "1 new"],
    [
      "a form with a signed URL",
      PARAMS,
      (name) => line(sign(name, PARAMS, "id=evt_1&text=a", { contentType: "application/x-www-form-urlencoded" })),
      "1 new",
    ],
    [
      "a form with a query added to the URL",
      PARAMS,
      (name) => line({ ...sign(name, PARAMS, "id=evt_1&text=a", { contentType: "application/x-www-form-urlencoded" }), search: "?x=1" }),
      "1 refused unsigned_event",
    ],
  ];
  for (const [why, verify, delivery, expected] of LINES)
    test(`for a relay with effects on people: ${why}: ${expected}`, async () => {
      await make("orders", { verify, actions: [NOTE, { type: "email_person", subject: "x", text: "y" }] });
      expect(await told("orders", delivery("orders"), { dryRun: "true" })).toEqual([expected]);
      expect(await told("orders", delivery("orders"))).toEqual([expected]);
      const entered = expected.endsWith("new");
      await house.drain();
      expect(await rows()).toEqual(entered ? [expect.objectContaining({ unsigned: 0, cameBy: "import" })] : []);
    });

  test("a sender that never signs events needs the opt-in for such effects, and with it a bare body is enough", async () => {
    await make("plain", { verify: { scheme: "shared_token" } });
    await make("trusting", {
      verify: { scheme: "shared_token" },
      map: { event_id: "id", person_email: "mail", text: "text" },
      trustUnsignedEvents: true,
      actions: [GRANT],
    });
    expect(await told("plain", event(1))).toEqual(["1 new"]);
    expect(await told("trusting", event(1, { mail: "ada@example.com" }))).toEqual(["1 new"]);
    await house.drain();
    expect((await rows()).map(({ state, unsigned }) => [state, unsigned])).toEqual([
      ["done", 1],
      ["done", 1],
    ]);
    expect((await house.rows("SELECT 1 FROM access_grant")).length).toBe(1);
  });

  test("a token recipe's event stays unsigned although its signature verifies, and each signature counts once", async () => {
    await make("mails", { verify: TOKEN });
    const at = String(Math.floor(house.clock.now() / 1000) - 86_400);
    const base = { token: "tok_1", at };
    const hmac = (text: string): string => new Bun.CryptoHasher("sha256", SECRET).update(text).digest("hex");
    const body = event(1, { ...base, sign: hmac(`${at}tok_1`) });
    expect(await told("mails", body)).toEqual(["1 new"]);
    expect((await rows())[0]?.unsigned).toBe(1);
    expect(await told("mails", body)).toEqual(["1 known"]);
    expect(await told("mails", event(2, { ...base, sign: hmac(`${at}tok_1`) }))).toEqual(["1 refused bad_signature"]);
  });

  test("a preview predicts the import of one-time signatures, also within one file", async () => {
    await make("mails", { verify: TOKEN });
    const at = String(Math.floor(house.clock.now() / 1000) - 86_400);
    const hmac = (text: string): string => new Bun.CryptoHasher("sha256", SECRET).update(text).digest("hex");
    const mail = (id: number, token: string) => event(id, { token, at, sign: hmac(`${at}${token}`) });
    // The third line is rejected, so its id is free for the fourth. The last line repeats the first event.
    const file = [mail(1, "a"), mail(2, "b"), mail(3, "a"), mail(3, "c"), mail(2, "d"), mail(1, "a")].join("\n");
    const expected = ["1 new", "2 new", "3 refused bad_signature", "4 new", "5 known", "6 known"];
    expect(await told("mails", file, { dryRun: "true" })).toEqual(expected);
    expect(await told("mails", file)).toEqual(expected);
  });

  test("an event that was stored unsigned never gets such effects later", async () => {
    const { body } = await make("orders");
    await house.api("POST", "/relays/orders/pause", {});
    expect(await told("orders", event(1))).toEqual(["1 new"]);
    const { definition, version } = body.relay;
    const acting = { ...definition, actions: [GRANT], trigger: { ...definition.trigger, map: { event_id: "id", person_id: "who" } } };
    const saved = await house.api("PUT", "/relays/orders", { definition: acting, version });
    expect(saved.status).toBe(200);
    await house.api("POST", "/relays/orders/resume", {});
    await house.drain();
    expect(await rows()).toEqual([{ state: "failed", reason: "unsigned_event", unsigned: 1, cameBy: "import" }]);
    const [{ id } = { id: "" }] = (await house.api("GET", "/events")).body.items;
    expect((await house.api("POST", `/events/${id}/replay`, {})).body.code).toBe("unsigned_event");
  });

  test("a relay that breaks the rule rejects every line, signed or not", async () => {
    const { body } = await make("orders", { verify: { scheme: "shared_token" } });
    const { definition } = body.relay;
    await house.service.store.write("dashboard", async (tx) => {
      await tx.run("UPDATE relay SET definition = ?1", JSON.stringify({ ...definition, actions: [GRANT] }));
      tx.notify("relay");
    });
    const refused = await send("orders", event(1));
    expect([refused.status, refused.body.code]).toEqual([409, "unsigned_event"]);
    expect(await rows()).toEqual([]);
  });
});

describe("the identity of an event", () => {
  test("is required for a bare body without an id, and a signed body is known for 30 days", async () => {
    await make("orders", { verify: BODY_ONLY, map: { text: "text" } });
    const delivery = sign("orders", BODY_ONLY, event(1));
    expect(await told("orders", event(1))).toEqual(["1 refused event_id_missing"]);
    expect((await house.hook("orders", delivery)).status).toBe(200);
    house.clock.jump(12 * DAY_MS);
    expect(await told("orders", line(delivery))).toEqual(["1 known"]);
    expect(await told("orders", line(sign("orders", BODY_ONLY, event(2))))).toEqual(["1 new"]);
    house.clock.jump(3 * DAY_MS);
    expect(await told("orders", line(sign("orders", BODY_ONLY, event(2))))).toEqual(["1 known"]);
  });

  test("is the id in the sender's header if the header verifies, like for a received event", async () => {
    const verify = { scheme: "hooks" };
    await make("orders", { verify, map: { text: "text" } });
    const delivery = sign("orders", verify, event(1));
    expect((await house.hook("orders", delivery)).status).toBe(200);
    expect(await told("orders", `${line(delivery)}\n${line(sign("orders", verify, event(1)))}\n${event(1)}`)).toEqual([
      "1 known",
      "2 new",
      "3 refused event_id_missing",
    ]);
    const forged = { ...delivery, headers: { ...delivery.headers, "hooks-id": "msg_other" } };
    expect(await told("orders", line(forged))).toEqual(["1 refused event_id_missing"]);
  });

  test("does not restore an erased person", async () => {
    await make("orders", { map: { event_id: "id", person_email: "mail", text: "text" } });
    const verified = (id: number) => line(sign("orders", RECIPE, event(id, { mail: "Ada@example.com" }), { agoMs: DAY_MS }));
    expect(await told("orders", verified(1))).toEqual(["1 new"]);
    await house.drain();
    const [{ id } = { id: "" }] = (await house.api("GET", "/persons")).body.items;
    expect((await house.api("DELETE", `/persons/${id}`)).status).toBe(204);
    expect(await told("orders", verified(2))).toEqual(["1 refused person_erased"]);
  });
});

describe("lines", () => {
  const big = (bytes: number): string => event(1, { pad: "x".repeat(bytes) });
  const deep = `{"id":"evt_1","a":${"[".repeat(600)}${"]".repeat(600)}}`;
  const LINES: [why: string, text: string | Uint8Array, expected: string[]][] = [
    ["a byte order mark, CRLF and empty lines", `\ufeff${event(1)}\r\n\r\n  \r\n${event(2)}\r\n`, ["1 new", "4 new"]],
    [
      "garbage is reported by its number",
      `${event(1)}\nnot json\n42\n"text"\nnull\n{"id":\n[]\n${event(2)}`,
      [
        "1 new",
        "2 refused invalid_json",
        "3 refused invalid_json",
        "4 refused invalid_json",
        "5 refused invalid_json",
        "6 refused invalid_json",
        "7 refused event_id_missing",
        "8 new",
      ],
    ],
    [
      "bytes that are not UTF-8",
      Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}\n'), Buffer.from(event(2))]),
      ["1 refused invalid_json", "2 new"],
    ],
    ["the largest body", big(256 * 1024 - Buffer.byteLength(big(0))), ["1 new"]],
    ["a body one byte over the limit", big(256 * 1024 - Buffer.byteLength(big(0)) + 1), ["1 refused body_too_large"]],
    ["the largest body, in a delivery", line({ headers: {}, body: big(256 * 1024 - Buffer.byteLength(big(0))) }), ["1 new"]],
    [
      "a body one byte over the limit, in a delivery",
      line({ headers: {}, body: big(256 * 1024 - Buffer.byteLength(big(0)) + 1) }),
      ["1 refused body_too_large"],
    ],
    ["a body nested too deeply", deep, ["1 refused invalid_json"]],
    ["a delivery with an invalid header name", line({ headers: { "bad header": "x" }, body: event(1) }), ["1 refused invalid_input"]],
    ["a delivery whose header is a number", line({ headers: { a: 1 }, body: event(1) }), ["1 refused invalid_input"]],
    ["a header with a list of texts", line({ headers: { a: ["1", "2"] }, body: event(1) }), ["1 new"]],
    ["an event with fields headers, body and another stays an event", JSON.stringify({ id: "evt_1", headers: {}, body: "x" }), ["1 new"]],
    ["an id of digits", '{"id":12345678901234567890}\n{"id":12345678901234567891}', ["1 new", "2 new"]],
    ["an empty file", "", []],
    ["names of Object's own properties", '{"id":"evt_1","__proto__":{"id":"evt_9"},"constructor":1}', ["1 new"]],
  ];
  for (const [why, text, expected] of LINES)
    test(why, async () => {
      await make("orders");
      expect(await told("orders", text)).toEqual(expected);
      const stored = expected.filter((one) => one.endsWith("new")).length;
      expect((await rows()).length).toBe(stored);
    });

  test("are numbered from the batch's offset, and at most a thousand are allowed", async () => {
    await make("orders");
    expect(await told("orders", `${event(1)}\nx`, { line: "501" })).toEqual(["501 new", "502 refused invalid_json"]);
    const refused = await send("orders", `${Array.from({ length: 1_001 }, (_, at) => event(`n${at}`)).join("\n")}\n`);
    expect([refused.status, refused.body.code]).toEqual([413, "body_too_large"]);
  });
});

describe("callers and records of an import", () => {
  test("an audit row per transaction names the file, the lines and the counts", async () => {
    await make("orders");
    const file = "ab".repeat(32);
    await told("orders", `${event(1)}\n${event(1)}\nnope`, { file });
    await told("orders", event(1), { file });
    const { items } = (await house.api("GET", "/audit?action=events.imported")).body;
    expect(items.map(({ target, after }: Record<string, unknown>) => [target, after])).toEqual([
      [
        "relay:orders",
        {
          file: `sha256:${file}`,
          batch: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
          lines: { from: 1, to: 3 },
          new: 1,
          unsigned: 1,
          known: 1,
          ignored: 0,
          refused: 1,
        },
      ],
    ]);
    expect(items[0].actor).toStartWith("key:");
  });

  test("an imported event shows its origin in the list and in its details", async () => {
    await make("orders");
    await told("orders", event(1));
    const [item] = (await house.api("GET", "/events")).body.items;
    expect(item.cameBy).toBe("import");
    expect((await house.api("GET", `/events/${item.id}`)).body.event).toMatchObject({ cameBy: "import", unsigned: true });
  });

  test("a preview of an older version of the relay cannot be imported", async () => {
    const { body } = await make("orders");
    const plan = await send("orders", event(1), { dryRun: "true" });
    expect(plan.body.version).toBe(body.relay.version);
    await house.api("PUT", "/relays/orders", { definition: { ...body.relay.definition, actions: [NOTE, NOTE] }, version: body.relay.version });
    const refused = await send("orders", event(1), { version: String(plan.body.version) });
    expect([refused.status, refused.body.code]).toEqual([409, "version_conflict"]);
    expect(await rows()).toEqual([]);
  });

  test("a schedule and an unknown relay are rejected", async () => {
    await house.api("POST", "/relays", { definition: { name: "hourly", trigger: { kind: "schedule", every: "1h" }, actions: [NOTE] } });
    expect((await send("hourly", event(1))).body.code).toBe("invalid_input");
    expect((await send("nobody", event(1))).body.code).toBe("not_found");
  });

  describe("callers", () => {
    let api: ApiServer;
    beforeEach(async () => {
      api = await startApi();
      const definition = { name: "orders", trigger: { kind: "receiver", verify: { scheme: "hooks" }, map: { event_id: "id" } }, actions: [NOTE] };
      expect((await api.call(`${api.E}/relays`, { method: "POST", session: true, body: { definition } })).status).toBe(201);
    });
    afterEach(() => api[Symbol.asyncDispose]());
    const CALLERS: [who: string, call: (api: ApiServer) => object, status: number][] = [
      ["the environment's secret key", ({ keys }) => ({ key: keys.dev }), 200],
      ["an owner's session", () => ({ session: true }), 200],
      ["an owner's session from another page's origin", () => ({ session: true, headers: { origin: "https://evil.example" } }), 403],
      ["a caller without a key", () => ({}), 401],
      ["an app key", ({ keys }) => ({ key: keys.app }), 403],
      ["another environment's key", ({ keys }) => ({ key: keys.live }), 403],
      ["another app's key", ({ keys }) => ({ key: keys.other }), 403],
    ];
    for (const [who, caller, status] of CALLERS)
      test(`${who}: ${status}`, async () => {
        const reply = await api.call(`${api.E}/relays/orders/import-missed`, { method: "POST", body: event(1), ...caller(api) });
        expect(reply.status).toBe(status);
        expect((await api.store.read((tx) => tx.all("SELECT 1 FROM event"))).length).toBe(status === 200 ? 1 : 0);
      });
  });

  test("concurrent imports and deliveries of the same events store each event once", async () => {
    await make("orders");
    const events = Array.from({ length: 60 }, (_, at) => event(at));
    const file = events.join("\n");
    const [one, two, ...received] = await Promise.all([
      send("orders", file),
      send("orders", file),
      ...events.map((body) => house.hook("orders", sign("orders", RECIPE, body))),
    ]);
    expect((await rows()).length).toBe(60);
    const made = [one, two].flatMap(({ body }) => body.lines).filter(({ outcome }: { outcome: string }) => outcome === "new").length;
    expect(made + received.filter(({ body }) => (body as Record<string, unknown>).duplicate !== true).length).toBe(60);
  });
});
