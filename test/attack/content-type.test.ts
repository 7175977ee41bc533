/**
 * No sender signs the Content-Type. A captured request under any Content-Type is the same event: its signed bytes are read the same way, and never
 * stored as a second event. The tests use the registry's examples of every scheme and every form of recipe.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import type { Scheme } from "../../src/rules/verify/contract.ts";
import { SCHEMES } from "../../src/rules/verify/registry.ts";
import { RELAY_NAME } from "../kit/event-sql.ts";
import { HOOK_SECRET, makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";
import { makeKeys } from "../kit/sender-call.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const FORM = "application/x-www-form-urlencoded";
const JSON_TYPE = "application/json";
const SECRET = `whsec_${Buffer.from("a secret of forty bytes, for every scheme").toString("base64")}`;
const TYPES = [
  FORM,
  `${FORM}; charset=utf-8`,
  FORM.toUpperCase(),
  ` ${FORM} ;boundary=x`,
  `${FORM}, ${JSON_TYPE}`,
  JSON_TYPE,
  "text/plain",
  "multipart/form-data; boundary=x",
  "",
];
const MAP = { event_id: "id", event_type: "type", email: "data.object.email" };

interface Sender {
  name: string;
  words: string;
  key: string;
  scheme: Scheme;
  fields: Record<string, unknown>;
  /** {params} signs a form's fields, so its sender sends only forms. */
  forms: boolean;
}

let running: RunningService;
const senders: Sender[] = SCHEMES.filter(({ name }) => name !== "receiver").flatMap((scheme) =>
  scheme.examples.map((example, at) => {
    const fields = example as Record<string, unknown>;
    return {
      name: `${scheme.name.replaceAll("_", "-")}-${at}`,
      words: JSON.stringify(fields),
      key: SECRET,
      scheme,
      fields,
      forms: String(fields["signedPayload"] ?? "").includes("{params}"),
    };
  }),
);
const ofJson = senders.filter(({ forms }) => !forms);

beforeAll(async () => {
  const most = 1_000_000;
  const limits = { ...DEFAULT_LIMITS, relaysPerEnvironment: 50, verifiedEventsPerMinute: most };
  running = await startRunningService({
    config: { limits: { ...limits, eventlessCallsPerMinute: most, unverifiedCallsPerMinute: most } },
  });
  await makeOrders(running);
  const settings = await running.api("GET", "/settings");
  const { version } = settings.body.settings;
  await running.api("PUT", "/settings", { version, processorSecret: SECRET });
  const data = { order: "{{event.data.object.email}}", amount: "{{mapped.email}}" };
  const actions = [{ type: "write_record", collection: "orders", data }];
  for (const sender of senders) {
    const { name, fields, scheme } = sender;
    let secret: string | undefined = SECRET;
    if (scheme.name === "adyen") sender.key = secret = Buffer.from("an HMAC key of thirty-two bytes!").toString("hex");
    if (scheme.secretNeed(fields as never) === "processor") secret = undefined;
    if (scheme.secretNeed(fields as never) === "public_key") {
      const keys = makeKeys((fields["algorithm"] ?? "ed25519") as "ed25519");
      sender.key = keys.privateKey;
      secret = keys.stored;
    }
    const definition = receiverDefinition({ name, verify: fields, map: MAP, actions });
    const made = await running.api("POST", "/relays", {
      definition,
      ...(secret === undefined ? {} : { secret }),
    });
    expect(made.body.code).toBeUndefined();
  }
  await saveRelay(running, receiverDefinition({ map: MAP, actions }));
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

function sign({ scheme, fields, key, name }: Sender, body: string, contentType: string) {
  const receiverUrl = `https://relay.example.test/hooks/${APP}/${name}`;
  const draft = { body: Buffer.from(body), contentType, receiverUrl, nowMs: START_MS };
  return scheme.sign(fields as never, key, draft);
}

/** Sends a signed request under another content type. Returns `taken`, `duplicate`, or the status and the code. */
async function send(name: string, { headers, body }: { headers: Record<string, string>; body: Uint8Array | string }, type: string): Promise<string> {
  const others = Object.entries(headers).filter(([header]) => header !== "content-type");
  const answer = await running.hook(name, {
    headers: { ...Object.fromEntries(others), ...(type === "" ? {} : { "content-type": type }) },
    body,
  });
  if (answer.status !== 200) return `${answer.status} ${answer.body.code}`;
  return answer.body.duplicate === true ? "duplicate" : "taken";
}

async function mappedOf(name: string): Promise<unknown[]> {
  const rows = await running.rows<{ payload: string }>(`SELECT payload FROM event WHERE ${RELAY_NAME} = ?1 ORDER BY seq`, name);
  return rows.map(({ payload }) => JSON.parse(payload).mapped);
}

let next = 0;
const hostile = (id: string): string =>
  JSON.stringify({
    id,
    type: "customer.updated",
    data: {
      object: {
        email: "buyer@example.com",
        name: "x&type=paid&id=evt_other&data.object.email=thief@example.com&y=",
      },
    },
  });

describe("the signed bytes of a JSON request are one event under every content type", () => {
  for (const sender of ofJson) {
    test.each(TYPES)(`${sender.words} sent first as "%s"`, async (type) => {
      const { name } = sender;
      const before = (await mappedOf(name)).length;
      const id = `evt_${++next}`;
      const signed = sign(sender, hostile(id), JSON_TYPE);
      expect(await send(name, signed, type)).toBe("taken");
      for (const other of TYPES) expect(await send(name, signed, other)).toBe("duplicate");
      expect((await mappedOf(name)).slice(before)).toEqual([{ event_id: id, event_type: "customer.updated", email: "buyer@example.com" }]);
    });
  }
});

describe("a body that was signed as JSON and is not JSON is never read as a form", () => {
  const broken = [
    ['{"id":"1","name":"x&type=paid&data.object.email=thief@example.com"', "cut off"],
    [' \r\n\t[{"id":"1"},&type=paid', "after white space"],
    ['\ufeff{"id":"1" "type":"&type=paid"}', "after a byte order mark"],
    ['{"id":"1"}\n{"name":"&type=paid&id=2"}', "as two values"],
    [`${"[".repeat(501)}"&type=paid"${"]".repeat(501)}`, "too deep"],
  ] as const;
  for (const [body, words] of broken) {
    test.each(["orders", "processor-0", "hooks-0"])(`${words}, to %s`, async (name) => {
      const sender = senders.find((one) => one.name === name);
      const signed =
        sender === undefined
          ? { headers: { "x-signature": createHmac("sha256", HOOK_SECRET).update(body).digest("hex") }, body }
          : sign(sender, body, JSON_TYPE);
      for (const type of TYPES) expect(await send(name, signed, type)).toBe("400 invalid_json");
    });
  }
  test("in bytes that are not UTF-8", async () => {
    const body = Buffer.from('{"id":"\xff&type=paid"}', "latin1");
    const headers = { "x-signature": createHmac("sha256", HOOK_SECRET).update(body).digest("hex") };
    for (const type of TYPES) expect(await send("orders", { headers, body }, type)).toBe("400 invalid_json");
  });
});

describe("a recipe that signs a form's fields", () => {
  const phone = senders.find(({ forms }) => forms) as Sender;
  test.each(TYPES)('never accepts JSON bytes as "%s"', async (type) => {
    const body = hostile("evt_params");
    const url = `https://relay.example.test/hooks/${APP}/${phone.name}`;
    // Signs the bytes as if they were a form, and unchanged.
    const fields = [...new URLSearchParams(body)].sort().map(([name, value]) => name + value);
    for (const text of [url + fields.join(""), url + body, url]) {
      const mac = createHmac("sha1", SECRET).update(text).digest("base64");
      expect(await send(phone.name, { headers: { "x-phone-signature": mac }, body }, type)).toBe("401 bad_signature");
    }
  });
  test("accepts a form only as a form, once", async () => {
    const signed = sign(phone, "id=evt_form&type=paid&data.object.email=a@example.com", FORM);
    expect(await send(phone.name, signed, JSON_TYPE)).toBe("401 bad_signature");
    expect(await send(phone.name, signed, FORM)).toBe("taken");
    expect(await send(phone.name, signed, `${FORM};charset=utf-8`)).toBe("duplicate");
    expect(await send(phone.name, signed, JSON_TYPE)).toBe("401 bad_signature");
  });
});

test.each(["processor-0", "hooks-0"])("%s reads only JSON, so a signed form is no event", async (name) => {
  const sender = senders.find((one) => one.name === name) as Sender;
  const signed = sign(sender, "id=1&type=paid", JSON_TYPE);
  for (const type of TYPES) expect(await send(name, signed, type)).toBe("400 invalid_json");
});

describe("a timestamp that is signed right before the body", () => {
  const verify = { scheme: "signature", header: "x-signature", timestampHeader: "x-time", signedPayload: "{timestamp}{body}" };
  const call = (body: string, time: string, bodyAsSent = body, timeAsSent = time) => {
    const mac = createHmac("sha256", HOOK_SECRET).update(`${time}${body}`).digest("hex");
    return { headers: { "x-signature": mac, "x-time": timeAsSent }, body: bodyAsSent };
  };
  const seconds = () => String(Math.floor(running.clock.now() / 1_000));
  beforeAll(async () => {
    await saveRelay(running, receiverDefinition({ name: "meeting", verify, map: MAP }));
  });

  test.each([
    ["JSON", hostile("evt_ms"), JSON_TYPE],
    ["a form", "id=evt_ms_form&type=paid&data.object.email=a@example.com", FORM],
  ])("moves no digit into %s, which would be another event under the same signature", async (_words, body, own) => {
    const ms = `${seconds()}123`;
    expect(await send("meeting", call(body, ms), own)).toBe("taken");
    const before = (await mappedOf("meeting")).length;
    for (const type of TYPES) expect(await send("meeting", call(body, ms, `123${body}`, ms.slice(0, -3)), type)).toBe("401 bad_signature");
    expect((await mappedOf("meeting")).length).toBe(before);
  });

  test("allows only one of the two readings of a form that begins with digits", async () => {
    const body = "123id=evt_digits&type=paid";
    expect(await send("meeting", call(body, seconds(), body.slice(3), `${seconds()}123`), FORM)).toBe("taken");
    expect(await send("meeting", call(body, seconds()), FORM)).toBe("401 bad_signature");
  });

  test("in seconds is accepted, also before a form that begins with a digit", async () => {
    expect(await send("meeting", call(hostile("evt_s"), seconds()), JSON_TYPE)).toBe("taken");
    expect(await send("meeting", call("1=2&id=evt_s_form", seconds()), FORM)).toBe("taken");
  });
});

test("JSON under the form type that curl sends by default is read as JSON", async () => {
  const body = '{"id":"curl","type":"paid","data":{"object":{"email":"a@example.com"}}}';
  const headers = { "x-signature": createHmac("sha256", HOOK_SECRET).update(body).digest("hex") };
  expect(await send("orders", { headers, body }, FORM)).toBe("taken");
  expect((await mappedOf("orders")).at(-1)).toEqual({
    event_id: "curl",
    event_type: "paid",
    email: "a@example.com",
  });
});

describe("a literal dotted name matches a path only in forms", () => {
  const written = async (body: string, type: string): Promise<unknown> => {
    const headers = { "x-signature": createHmac("sha256", HOOK_SECRET).update(body).digest("hex") };
    expect(await send("orders", { headers, body }, type)).toBe("taken");
    await running.drain();
    const [row] = await running.rows<{ data: string }>("SELECT data FROM record ORDER BY seq DESC LIMIT 1");
    return JSON.parse(row?.data ?? "null");
  };
  test.each([
    ["a form", "id=f1&data.object.email=a@example.com", FORM, "a@example.com"],
    ["JSON of texts alone", '{"id":"j1","data.object.email":"thief@example.com"}', JSON_TYPE, ""],
    ["the same JSON as a form", '{"id":"j2","data.object.email":"thief@example.com"}', FORM, ""],
    [
      "JSON that has the path too",
      '{"id":"j3","data.object.email":"thief@example.com","data":{"object":{"email":"a@example.com"}}}',
      JSON_TYPE,
      "a@example.com",
    ],
  ])("%s", async (_words, body, type, email) => {
    expect(await written(body, type)).toEqual({ order: email, amount: email });
  });
});
