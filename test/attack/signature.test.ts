/**
 * Attacks on signatures: one environment's secret in another, captured requests again, signatures removed or moved, a public key as a secret, a twin
 * of a one-time signature. Only what the sender signed makes an event, once and in its own environment.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHmac, createPublicKey, ECDH, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import { HOOK_SECRET, receiverDefinition, signedCall, TOKEN_RECIPE, tokenCall } from "../kit/relay-definition.ts";
import { APP, type RunningService, startRunningService } from "../kit/running-service.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const CALL = [{ type: "call_url", url: "https://example.test/" }];
const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const OTHER = "aZ8cYGRtr5PLBQiBJWrtINqlOiaDxSoT";
const SECONDS = String(START_MS / 1000);
const JSON_TYPE = { "content-type": "application/json" };

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService({ environments: ["development", "production"] });
});

afterEach(async () => {
  await running[Symbol.asyncDispose]();
});

/** Saves the relay `orders`. Returns the status and the code of the response. */
async function save(environment: EnvironmentName, secret: string | null, verify?: Record<string, unknown>): Promise<string> {
  const definition = receiverDefinition({
    actions: CALL,
    map: { event_id: "id" },
    ...(verify === undefined ? {} : { verify }),
  });
  const more = secret === null ? {} : { secret };
  const { status, body } = await running.api("POST", "/relays", { definition, ...more }, environment);
  return status === 201 ? "201" : `${status} ${body.code}`;
}

async function send(headers: Record<string, string>, body: string): Promise<string> {
  const answer = await running.hook("orders", { headers: { ...JSON_TYPE, ...headers }, body });
  return answer.status === 200 ? (answer.body.duplicate === true ? "duplicate" : "taken") : `${answer.status} ${answer.body.code}`;
}

/** Returns the number of events in each environment. */
async function countEvents(): Promise<Record<string, number>> {
  const rows = await running.rows<{ name: string; count: number }>(
    "SELECT environment.name AS name, count(event.seq) AS count FROM environment LEFT JOIN event ON event.environment_id = environment.id WHERE app_id = ?1 GROUP BY environment.name",
    APP,
  );
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

const hmac = (key: string | Buffer, text: string, encoding: "hex" | "base64" = "hex"): string =>
  createHmac("sha256", key).update(text).digest(encoding);

describe("a secret belongs to one environment", () => {
  test("a request signed with production's secret reaches production, and never development", async () => {
    expect(await save("development", SECRET)).toBe("201");
    expect(await save("production", OTHER)).toBe("201");
    const body = '{"id":"1"}';
    expect(await send({ "x-signature": hmac(OTHER, body) }, body)).toBe("taken");
    expect(await countEvents()).toEqual({ development: 0, production: 1 });
  });

  test("the same secret is refused in the other environment, whichever way it is set", async () => {
    expect(await save("development", SECRET)).toBe("201");
    expect(await save("production", SECRET)).toBe("400 invalid_input");
    expect(await save("production", `\n ${SECRET} \t`)).toBe("400 invalid_input");
    expect(await save("production", SECRET, { scheme: "shared_token" })).toBe("400 invalid_input");
    expect(await save("production", OTHER)).toBe("201");
    const put = await running.api("PUT", "/relays/orders/secret", { value: SECRET }, "production");
    expect(put.body.code).toBe("invalid_input");
    const body = '{"id":"1"}';
    expect(await send({ "x-signature": hmac(SECRET, body) }, body)).toBe("taken");
    expect(await countEvents()).toEqual({ development: 1, production: 0 });
  });

  test("the same Standard Webhooks key with and without its padding is refused too", async () => {
    const key = randomBytes(25).toString("base64");
    expect(key).toEndWith("=");
    expect(await save("development", `whsec_${key}`, { scheme: "hooks" })).toBe("201");
    expect(await save("production", `whsec_${key.replace(/=+$/, "")}`, { scheme: "hooks" })).toBe("400 invalid_input");
  });

  test("the same public key in another encoding is refused too", async () => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const spki = publicKey.export({ format: "der", type: "spki" });
    const point = spki.subarray(-65);
    const compressed = ECDH.convertKey(point, "prime256v1", undefined, "hex", "compressed") as string;
    const verify = {
      scheme: "signature",
      algorithm: "ecdsa-p256-sha256",
      header: "x-signature",
      signedPayload: "{body}",
      encoding: "base64",
    };
    expect(await save("development", spki.toString("base64"), verify)).toBe("201");
    for (const written of [spki.toString("hex"), point.toString("hex"), compressed, publicKey.export({ format: "pem", type: "spki" }) as string])
      expect(await save("production", written, verify)).toBe("400 invalid_input");
  });

  test("the processor's secret is refused too, whichever of relay and secret comes last", async () => {
    const processor = { scheme: "processor" };
    const set = async (environment: EnvironmentName): Promise<string> => {
      const { version } = (await running.api("GET", "/settings", undefined, environment)).body.settings;
      const put = await running.api("PUT", "/settings", { version, processorSecret: SECRET }, environment);
      return `${put.status} ${put.body.code}`;
    };
    expect(await set("development")).toBe("200 undefined");
    expect(await save("development", null, processor)).toBe("201");
    expect(await save("production", SECRET)).toBe("400 invalid_input");
    expect(await save("production", null, processor)).toBe("201");
    expect(await set("production")).toBe("400 invalid_input");
  });
});

describe("a captured request", () => {
  test("counts once by its event id, whatever is added around it", async () => {
    await save("development", SECRET);
    const { headers, body } = signedCall({ id: "1" }, SECRET);
    expect(await send(headers, body)).toBe("taken");
    expect(await send(headers, body)).toBe("duplicate");
    const again = await running.hook("orders", {
      headers: { ...headers, "x-more": "1" },
      body,
      search: "?again=1",
    });
    expect(again.body.duplicate).toBe(true);
    expect(await send(headers, `${body} `)).toBe("401 bad_signature");
    await running.clock.leap(86_400_000);
    expect(await send(headers, body)).toBe("duplicate");
    expect(await countEvents()).toEqual({ development: 1, production: 0 });
  });

  test("with a one-time signature and one body after another makes its address wait, as other bad requests do", async () => {
    await save("development", HOOK_SECRET, TOKEN_RECIPE);
    const good = tokenCall("tok", {}, Number(SECONDS));
    expect(await send(good.headers, good.body)).toBe("taken");
    for (let n = 0; n < 60; n++) {
      const { headers, body } = tokenCall("tok", { n }, Number(SECONDS));
      expect(await send(headers, body)).toBe("401 bad_signature");
    }
    expect(await send(good.headers, tokenCall("tok", { n: 60 }, Number(SECONDS)).body)).toBe("429 source_capped");
    expect(await countEvents()).toEqual({ development: 1, production: 0 });
  });

  test("of a Standard Webhooks sender is refused under another id, at another time, and outside its window", async () => {
    const key = randomBytes(24);
    await save("development", `whsec_${key.toString("base64")}`, { scheme: "hooks" });
    const body = '{"a":1}';
    const signature = `v1,${hmac(key, `msg_1.${SECONDS}.${body}`, "base64")}`;
    const headers = { "hooks-id": "msg_1", "hooks-timestamp": SECONDS, "hooks-signature": signature };
    expect(await send(headers, body)).toBe("taken");
    for (const change of [
      { "hooks-id": "msg_2" },
      { "hooks-timestamp": String(Number(SECONDS) + 1) },
      { "hooks-timestamp": `0${SECONDS}` },
      { "hooks-timestamp": `${SECONDS}000` },
      { "hooks-signature": signature.replace("v1,", "v2,") },
      { "hooks-signature": signature.replace("v1,", "") },
      { "hooks-signature": "" },
      { "hooks-signature": "v1," },
    ])
      expect(await send({ ...headers, ...change }, body)).toBe("401 bad_signature");
    expect(await send(headers, body)).toBe("duplicate");
    await running.clock.advance(301_000);
    expect(await send(headers, body)).toBe("401 bad_signature");
  });

  test("cannot mix two families of headers", async () => {
    const key = randomBytes(24);
    await save("development", `whsec_${key.toString("base64")}`, { scheme: "hooks" });
    const body = '{"a":1}';
    const signature = `v1,${hmac(key, `msg_1.${SECONDS}.${body}`, "base64")}`;
    const mixed = { "hooks-id": "msg_1", "webhook-timestamp": SECONDS, "svix-signature": signature };
    expect(await send(mixed, body)).toBe("401 bad_signature");
    expect(await countEvents()).toEqual({ development: 0, production: 0 });
  });
});

describe("a request without its signature is refused", () => {
  test.each([
    ["the header gone", {}],
    ["the header empty", { "x-signature": "" }],
    ["a space", { "x-signature": " " }],
    ["zeros", { "x-signature": "0".repeat(64) }],
    ["the body's plain hash", { "x-signature": new Bun.CryptoHasher("sha256").update('{"id":"1"}').digest("hex") }],
    ["an HMAC under an empty key", { "x-signature": createHmac("sha256", "").update('{"id":"1"}').digest("hex") }],
    ["an HMAC of nothing", { "x-signature": hmac(SECRET, "") }],
    ["the right one cut short", { "x-signature": hmac(SECRET, '{"id":"1"}').slice(0, 32) }],
    ["the right one twice over", { "x-signature": hmac(SECRET, '{"id":"1"}').repeat(2) }],
    ["the right one in another encoding", { "x-signature": hmac(SECRET, '{"id":"1"}', "base64") }],
    ["the secret itself", { "x-signature": SECRET, authorization: `Bearer ${SECRET}`, "x-webhook-token": SECRET }],
  ])("%s", async (_name, headers) => {
    await save("development", SECRET);
    expect(await send(headers as Record<string, string>, '{"id":"1"}')).toBe("401 bad_signature");
    expect(await countEvents()).toEqual({ development: 0, production: 0 });
  });
});

describe("a public key is not a secret", () => {
  const verify = (algorithm: string) => ({
    scheme: "signature",
    algorithm,
    header: "x-signature",
    signedPayload: "{body}",
    encoding: "hex",
  });
  const body = '{"id":"1"}';

  function writings(publicKey: KeyObject): (string | Buffer)[] {
    const der = publicKey.export({ format: "der", type: "spki" });
    const pem = publicKey.export({ format: "pem", type: "spki" }) as string;
    return [der, der.toString("base64"), der.toString("hex"), pem, pem.trim(), der.subarray(-32), der.subarray(-65)];
  }

  test("an HMAC under any encoding of the key verifies nothing, before and after the recipe changes to HMAC", async () => {
    const { publicKey } = generateKeyPairSync("ed25519");
    const stored = publicKey.export({ format: "der", type: "spki" }).toString("base64");
    expect(await save("development", stored, verify("ed25519"))).toBe("201");
    const forge = async (): Promise<void> => {
      for (const key of writings(publicKey)) expect(await send({ "x-signature": hmac(key as string, body) }, body)).toBe("401 bad_signature");
    };
    await forge();
    const definition = receiverDefinition({ actions: CALL, verify: verify("hmac-sha256") });
    const changed = await running.api("PUT", "/relays/orders", { definition, version: 1 });
    expect(changed.status).toBe(200);
    await forge();
    expect((await running.api("PUT", "/relays/orders/secret", { value: stored })).body.code).toBe("invalid_input");
    await forge();
    expect(await countEvents()).toEqual({ development: 0, production: 0 });
  });

  test("an HMAC recipe that has a public key as its secret refuses every request", async () => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const stored = publicKey.export({ format: "der", type: "spki" }).toString("base64");
    expect(await save("development", stored, verify("ecdsa-p256-sha256"))).toBe("201");
    await running.service.store.write("app", (tx) => tx.run("UPDATE relay SET definition = replace(definition, 'ecdsa-p256-sha256', 'hmac-sha256')"));
    running.service.refresh();
    for (const key of writings(publicKey)) expect(await send({ "x-signature": hmac(key as string, body) }, body)).toBe("401 bad_signature");
    expect(createPublicKey(publicKey.export({ format: "pem", type: "spki" })).asymmetricKeyType).toBe("ec");
  });
});

test("the twin of an ECDSA signature does not count again if a signature counts once", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const verify = {
    scheme: "signature",
    algorithm: "ecdsa-p256-sha256",
    header: "x-signature",
    timestampField: "timestamp",
    tokenField: "token",
    signedPayload: "{timestamp}{token}",
    encoding: "base64",
  };
  expect(await save("development", publicKey.export({ format: "der", type: "spki" }).toString("base64"), verify)).toBe("201");
  const token = randomBytes(16).toString("hex");
  const plain = sign("sha256", Buffer.from(SECONDS + token), { key: privateKey, dsaEncoding: "ieee-p1363" });
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const s = BigInt(`0x${plain.subarray(32).toString("hex")}`);
  const twin = Buffer.concat([plain.subarray(0, 32), Buffer.from((order - s).toString(16).padStart(64, "0"), "hex")]);
  const body = (id: string): string => JSON.stringify({ id, timestamp: SECONDS, token });
  const written = plain.toString("base64");
  expect(await send({ "x-signature": written }, body("1"))).toBe("taken");
  expect(await send({ "x-signature": written }, body("1"))).toBe("duplicate");
  for (const other of [written, twin.toString("base64"), written.replace(/=+$/, "")])
    expect(await send({ "x-signature": other }, body("2"))).toBe("401 bad_signature");
  await running.api("DELETE", "/relays/orders");
  expect(await save("development", publicKey.export({ format: "der", type: "spki" }).toString("base64"), verify)).toBe("201");
  expect(await send({ "x-signature": twin.toString("base64") }, body("3"))).toBe("401 bad_signature");
  expect(await countEvents()).toEqual({ development: 1, production: 0 });
});
