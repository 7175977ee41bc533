/** Tests the notices of an action with `standardWebhooks`: the vendors' library verifies them, and so does the check of X-Service-Signature. */
import { afterAll, beforeAll, describe, expect, setSystemTime, test } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import type { VerifyOptions } from "../../client/verifier/types.d.ts";
import { EXAMPLE_SIGNING_SECRET } from "../../src/platform/secret/secret-text.ts";
import { findRelay, RELAY, signingSecretContext } from "../../src/rules/relay/relay.ts";
import { PROJECT_ROOT } from "../house/source-tree.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { type Sink, startSink } from "../kit/sink.ts";

/** A secret as releases before Standard Webhooks created it. */
const OLD_SECRET = "sgn_Yh3cWq0pZsT7nLxKd5vRb8mGjE2aFuNiQk7bXFQsq4O";
const MAP = { event_id: "id", event_type: "type" };
const FIELD = "actions.0.standardWebhooks";

type Verifier = typeof import("../../client/verifier/types.d.ts");
const { verify } = (await import(join(PROJECT_ROOT, "client/verifier/verify.js"))) as Verifier;

let running: RunningService;
let sink: Sink;

beforeAll(async () => {
  sink = startSink();
  running = await startRunningService({ environments: ["local"], config: { mode: "local" } });
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
});

const local = (method: string, path: string, body?: unknown) => running.api(method, path, body, "local");

type Notice = Awaited<ReturnType<Sink["waitFor"]>>[number];

function define(name: string, more: object = { standardWebhooks: true }): Record<string, unknown> {
  return receiverDefinition({ name, map: MAP, actions: [{ type: "call_url", url: `${sink.url}/${name}`, ...more }] });
}

async function save(name: string, more?: object, signingSecret?: string): Promise<string> {
  const saved = await local("POST", "/relays", { definition: define(name, more), secret: HOOK_SECRET, signingSecret });
  expect(saved.status).toBe(201);
  return saved.body.signingSecret;
}

const update = (name: string, version: number, more: object) => local("PUT", `/relays/${name}`, { definition: define(name, more), version });

/** Sends an event and returns the notice that follows it, with the event's id. */
async function sendEvent(name: string): Promise<{ id: string; notice: Notice }> {
  const before = sink.notices.filter(({ path }) => path === `/${name}`).length;
  const { eventId } = (await running.hook(name, signedCall({ id: `ord_${before}`, type: "paid", note: 'Grüße 👋 "quoted"' }))).body;
  await running.drain();
  return { id: eventId, notice: (await sink.waitFor(`/${name}`, before + 1)).at(-1) as Notice };
}

/** Verifies with the vendors' library at the service's time. Returns the message of its error; null: verified. */
function refusalOf({ headers, body }: Notice, secret: string): string | null {
  setSystemTime(running.clock.now());
  try {
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body.toString("utf8")));
    return null;
  } catch (error) {
    return (error as Error).message;
  } finally {
    setSystemTime();
  }
}

/** Verifies with the package for called servers at the service's time. Returns the id of the notice, or the code of the error. */
async function idOf(options: VerifyOptions): Promise<string> {
  setSystemTime(running.clock.now());
  try {
    return (await verify(options)).id;
  } catch (error) {
    return (error as { code: string }).code;
  } finally {
    setSystemTime();
  }
}

/** Checks X-Service-Signature by the specification. */
function isOwnSignature({ headers, body }: Notice, secret: string): boolean {
  const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers["x-service-signature"] ?? "") ?? [];
  return createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex") === hex;
}

describe("a notice with Standard Webhooks headers", () => {
  test("verifies with the vendors' library and with X-Service-Signature under one secret", async () => {
    const secret = await save("both");
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const { id, notice } = await sendEvent("both");
    expect(notice.headers["webhook-id"]).toBe(id);
    expect(notice.headers["webhook-timestamp"]).toBe(/^t=(\d+)/.exec(notice.headers["x-service-signature"] ?? "")?.[1] as string);
    expect([refusalOf(notice, secret), isOwnSignature(notice, secret)]).toEqual([null, true]);
    expect([refusalOf(notice, EXAMPLE_SIGNING_SECRET), isOwnSignature(notice, EXAMPLE_SIGNING_SECRET)]).toEqual([
      "No matching signature found",
      false,
    ]);
    expect(refusalOf({ ...notice, body: Buffer.concat([notice.body, Buffer.from(" ")]) }, secret)).toBe("No matching signature found");
    expect([await idOf({ ...notice, secret }), await idOf({ ...notice, secret: EXAMPLE_SIGNING_SECRET })]).toEqual([id, "signature_mismatch"]);
  });

  test("has the same id at a replay, with the time and the signature of the replay", async () => {
    const secret = await save("again");
    const { id, notice } = await sendEvent("again");
    await running.clock.advance(3_600_000);
    await local("POST", `/events/${id}/replay`, {});
    await running.drain();
    const replayed = (await sink.waitFor("/again", 2))[1] as Notice;
    expect([replayed.headers["webhook-id"], replayed.body]).toEqual([id, notice.body]);
    expect(Number(replayed.headers["webhook-timestamp"]) - Number(notice.headers["webhook-timestamp"])).toBe(3_600);
    expect([refusalOf(replayed, secret), refusalOf(notice, secret)]).toEqual([null, "Message timestamp too old"]);
  });

  test("is stored with the run without the values of its signatures", async () => {
    await save("stored");
    const { id, notice } = await sendEvent("stored");
    const { body } = await local("GET", `/events/${id}`);
    const [, hex = ""] = (notice.headers["x-service-signature"] ?? "").split("v1=");
    const [, base64 = ""] = (notice.headers["webhook-signature"] ?? "").split(",");
    const text = JSON.stringify(body);
    expect(text).toContain('"webhook-signature":"v1,(not kept)"');
    expect(text).toContain(`"webhook-id":"${id}"`);
    for (const value of [hex, base64]) expect(text).not.toContain(value);
  });

  test("is signed with the new secret after a rotation, and a receiver can accept both", async () => {
    const before = await save("rotated");
    const { signingSecret: after } = (await local("PUT", "/relays/rotated/signing-secret")).body;
    expect(after).toMatch(/^whsec_/);
    const { id, notice } = await sendEvent("rotated");
    expect([await idOf({ ...notice, secret: before }), await idOf({ ...notice, secret: [before, after] })]).toEqual(["signature_mismatch", id]);
    expect([refusalOf(notice, before), refusalOf(notice, after), isOwnSignature(notice, after)]).toEqual(["No matching signature found", null, true]);
  });

  test.each([
    ["absent", {}],
    ["false", { standardWebhooks: false }],
  ])("is not sent if the field is %s", async (name, more) => {
    const secret = await save(`plain-${name}`, more);
    const { notice } = await sendEvent(`plain-${name}`);
    expect(Object.keys(notice.headers).filter((header) => header.startsWith("webhook-"))).toEqual([]);
    expect(isOwnSignature(notice, secret)).toBe(true);
  });

  test("is the one that an explanation shows", async () => {
    await save("shown", undefined, EXAMPLE_SIGNING_SECRET);
    const { id, notice } = await sendEvent("shown");
    const { explanation } = (await local("POST", "/relays/shown/explain", { event: id })).body;
    const { sends } = explanation.steps.find(({ step }: { step: string }) => step === "action").detail;
    const { host: _host, connection: _connection, ...headers } = notice.headers;
    expect(Object.fromEntries(Object.entries(sends.headers).map(([header, value]) => [header.toLowerCase(), value]))).toEqual(headers);
    expect(refusalOf({ ...notice, headers: sends.headers, body: Buffer.from(sends.body) }, sends.exampleSecret)).toBeNull();
  });
});

describe("a relay with a signing secret of another form", () => {
  test("cannot ask for the headers until its signing secret is rotated", async () => {
    await save("older", {}, OLD_SECRET);
    const { notice } = await sendEvent("older");
    expect(isOwnSignature(notice, OLD_SECRET)).toBe(true);
    const message = `\`${FIELD}\` needs a signing secret that begins with whsec_, and the secret of older has another form: create a new one with relay relays rotate-secret older --signing, give it to your server, then save again.`;
    const problems = [{ field: FIELD, message }];
    expect((await local("POST", "/relays/validate", { definition: define("older") })).body.problems).toEqual(problems);
    expect(await update("older", 1, { standardWebhooks: true })).toMatchObject({
      status: 400,
      body: { code: "invalid_definition", problems },
    });
    // Other changes of the relay stay possible, and its secret stays as it is.
    expect((await update("older", 1, { standardWebhooks: false })).status).toBe(200);
    const { signingSecret } = (await local("PUT", "/relays/older/signing-secret")).body;
    expect((await update("older", 2, { standardWebhooks: true })).status).toBe(200);
    expect(refusalOf((await sendEvent("older")).notice, signingSecret)).toBeNull();
  });

  test.each([
    ["another prefix", OLD_SECRET],
    ["no padding", "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY".slice(0, -1)],
    ["base64 for URLs", "whsec_-_BDREVGR0hJSktMTU5PUFFSU1RVVldY"],
  ])("is not created with a given secret with %s", async (_form, signingSecret) => {
    const refused = await local("POST", "/relays", { definition: define("given"), signingSecret });
    const message = `\`${FIELD}\` needs a signing secret that begins with whsec_, and the secret of given has another form: give a secret of the form whsec_ and padded base64, or give none: Relay then creates it.`;
    expect(refused).toMatchObject({ status: 400, body: { problems: [{ field: FIELD, message }] } });
  });

  test("sends nothing if its row has such a secret, and says what to do", async () => {
    await save("planted");
    const [{ environmentId = 0 } = {}] = await running.rows<{ environmentId: number }>(
      `SELECT environment_id AS "environmentId" FROM relay WHERE name = 'planted'`,
    );
    await running.service.store.write("app", async (tx) => {
      const row = await findRelay(tx, environmentId, "planted");
      if (row === null) throw new Error("There is no relay.");
      const signingSecret = running.service.sealer.seal(OLD_SECRET, signingSecretContext(row.id));
      await RELAY.update(tx, { ...row, signingSecret });
    });
    const { eventId } = (await running.hook("planted", signedCall({ id: "ord_9", type: "paid" }))).body;
    await running.drain();
    const { body } = await local("GET", `/events/${eventId}`);
    expect(JSON.stringify(body)).toContain("create another with relay relays rotate-secret <name> --signing, then replay");
    expect(sink.notices.filter(({ path }) => path === "/planted")).toEqual([]);
  });
});
