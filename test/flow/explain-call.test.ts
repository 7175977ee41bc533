/** Tests that an explanation shows a call of call_url exactly as Relay sends it, signed with an example secret. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { EXAMPLE_SIGNING_SECRET } from "../../src/platform/secret/secret-text.ts";
import { HOOK_SECRET, receiverDefinition, signedCall, writeOrder } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { type Sink, startSink } from "../kit/sink.ts";

const OWN_SECRET = "sgn_Yh3cWq0pZsT7nLxKd5vRb8mGjE2aFuNiQk7bXFQsq4O";
const MAP = { event_id: "id", event_type: "type", amount: "amount", person_email: "email" };
const MAIL = { type: "email_person", subject: "Order", text: "Thanks" };
const EVENT = { id: "ord_1", type: "paid", amount: 42.5, email: "ada@example.com", note: 'Grüße 👋 "quoted"', large: 9_007_199_254_740_991 };

let running: RunningService;
let sink: Sink;

beforeAll(async () => {
  sink = startSink();
  running = await startRunningService({ environments: ["local"], config: { mode: "local" } });
  await local("POST", "/collections", { name: "orders", kind: "shared", fields: { order: { type: "text" }, amount: { type: "text" } } });
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
});

async function local(method: string, path: string, body?: unknown) {
  const answer = await running.api(method, path, body, "local");
  if (answer.status >= 400) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

const call = (path: string) => ({ type: "call_url", url: `${sink.url}${path}` });

async function save(name: string, actions: { type: string }[], signingSecret: string): Promise<void> {
  await local("POST", "/relays", { definition: receiverDefinition({ name, map: MAP, actions }), secret: HOOK_SECRET, signingSecret });
}

interface Sends {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
  exampleSecret: string;
}

async function explainCalls(path: string, asked: object): Promise<Sends[]> {
  const { explanation } = await local("POST", path, asked);
  const actions = explanation.steps.filter(({ step }: { step: string }) => step === "action");
  return actions
    .map(({ detail }: { detail: { sends: Sends | null } }) => detail.sends)
    .filter((sends: Sends | null) => sends !== null && "method" in sends);
}

/** Returns the newest notice at a path in the form of an explanation. The host and the connection belong to the socket. */
async function readNotice(path: string, count: number): Promise<Omit<Sends, "exampleSecret">> {
  const notice = (await sink.waitFor(path, count)).at(-1);
  if (notice === undefined) throw new Error("There is no notice.");
  const { host: _host, connection: _connection, ...headers } = notice.headers;
  return { method: notice.method, url: `${sink.url}${notice.path}`, headers, body: notice.body.toString("utf8") };
}

function shown({ headers, method, url, body }: Sends): Omit<Sends, "exampleSecret"> {
  return { method, url, headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])), body };
}

const hasId = (text: string, id: string) => text.replaceAll(id, "evt_…");
const idOf = ({ body }: Pick<Sends, "body">): string => JSON.parse(body).id;

describe("the call of an explanation", () => {
  test("of a stored event is the call of its replay, byte for byte", async () => {
    await save("replayed", [writeOrder, call("/first"), MAIL, call("/second")], EXAMPLE_SIGNING_SECRET);
    const { eventId } = (await running.hook("replayed", signedCall(EVENT))).body;
    await running.drain();
    for (const path of ["/first", "/second"]) await sink.waitFor(path, 1);
    const explained = await explainCalls("/relays/replayed/explain", { event: eventId });
    await local("POST", `/events/${eventId}/replay`, {});
    await running.drain();
    const [first] = explained;
    expect(shown(first as Sends)).toEqual(await readNotice("/first", 2));
    expect(explained).toHaveLength(2);
  });

  test("of a request is the call of that request, except for the event's id", async () => {
    await save("fresh", [call("/fresh")], EXAMPLE_SIGNING_SECRET);
    await local("POST", "/persons", { email: "bea@example.com" });
    const { headers, body } = signedCall({ ...EVENT, id: "ord_2", email: "bea@example.com" });
    const [explained] = await explainCalls("/relays/fresh/explain", { body, headers });
    await running.hook("fresh", { headers, body });
    await running.drain();
    const sent = await readNotice("/fresh", 1);
    const { "x-service-signature": signature, ...rest } = shown(explained as Sends).headers;
    const { "x-service-signature": sentSignature, ...sentRest } = sent.headers;
    expect(rest).toEqual(sentRest);
    expect(hasId((explained as Sends).body, idOf(explained as Sends))).toBe(hasId(sent.body, idOf(sent)));
    const time = (text = "") => text.split(",")[0];
    expect(time(signature)).toBe(time(sentSignature) as string);
  });

  test("is signed with the example secret that it names, and never with the relay's own", async () => {
    await save("owned", [call("/owned")], OWN_SECRET);
    const definition = receiverDefinition({ name: "unsaved", map: MAP, actions: [call("/unsaved")] });
    const body = JSON.stringify(EVENT);
    const all = [...(await explainCalls("/relays/owned/explain", { body })), ...(await explainCalls("/relays/explain", { definition, body }))];
    expect(all).toHaveLength(2);
    for (const sends of all) {
      const [, t = "", v1 = ""] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(sends.headers["X-Service-Signature"] ?? "") ?? [];
      const sign = (secret: string) => createHmac("sha256", secret).update(`${t}.${sends.body}`).digest("hex");
      expect(v1).toBe(sign(sends.exampleSecret));
      expect(v1).not.toBe(sign(OWN_SECRET));
      expect(JSON.stringify(sends)).not.toContain(OWN_SECRET);
    }
  });
});
