/** The event that `relay send` makes: it follows map and when, and the relay's own scheme verifies it once it is signed. */
import { describe, expect, test } from "bun:test";
import { makeSampleEvent } from "../../src/insight/simulate/sample.ts";
import { EXAMPLE_DEFINITION } from "../../src/interfaces/cli/sync/init.ts";
import type { ReceiverTrigger } from "../../src/rules/trigger/receiver.ts";
import { receiveRequest } from "../../src/rules/verify/received-request.ts";
import { findScheme } from "../../src/rules/verify/registry.ts";

const NOW = Date.UTC(2030, 0, 1);
const URL_HERE = "https://relay.example.com/hooks/app/checkout";
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

function trigger(part: Record<string, unknown>): ReceiverTrigger {
  return { kind: "receiver", verify: { scheme: "hooks" }, map: {}, ...part } as unknown as ReceiverTrigger;
}

async function bodyOf(made: ReceiverTrigger, person: string | null = null): Promise<unknown> {
  return JSON.parse(Buffer.from((await makeSampleEvent(made, person)).body).toString());
}

describe("the body", () => {
  test("holds every mapped path, numbers as lists", async () => {
    const map = { order: "data.items.1.order", amount: "data.total" };
    expect(await bodyOf(trigger({ map }))).toMatchObject({
      data: { items: [null, { order: expect.stringMatching(/^order_/) }], total: 4200 },
    });
  });

  test("satisfies when", async () => {
    const body = await bodyOf(trigger({ map: { event_type: "type", live: "livemode" }, when: { event_type: "paid", live: "true" } }));
    expect(body).toMatchObject({ type: "paid", livemode: "true" });
  });

  test("has a fresh event_id each time", async () => {
    const made = trigger({ map: { event_id: "id" } });
    expect(await bodyOf(made)).not.toEqual(await bodyOf(made));
  });

  test("contains the given person at the path that the map names", async () => {
    expect(await bodyOf(trigger({ map: { person_email: "buyer.email" } }), "bob@example.com")).toMatchObject({
      buyer: { email: "bob@example.com" },
    });
  });

  test("still satisfies when if a path is below another path's value", async () => {
    const body = await bodyOf(trigger({ map: { whole: "a", part: "a.b" }, when: { part: "x" } }));
    expect(body).toMatchObject({ a: { b: "x" } });
  });

  test("is refused if no event can satisfy when", async () => {
    const listed = trigger({ map: { one: "a", two: "a" }, when: { one: ["x", "y"], two: ["z", "y"] } });
    expect(await bodyOf(listed)).toMatchObject({ a: "y" });
    const made = trigger({ map: { one: "a", two: "a" }, when: { one: ["x", "z"], two: "y" } });
    await expect(makeSampleEvent(made, null)).rejects.toThrow(/No event can match/);
  });
});

const SCHEMES: readonly [name: string, verify: Record<string, unknown>][] = [
  ["the example's recipe", EXAMPLE_DEFINITION.trigger.verify],
  ["the processor", { scheme: "processor" }],
  ["a Standard Webhooks sender", { scheme: "hooks" }],
  ["a shared token", { scheme: "shared_token" }],
  [
    "a form whose fields are signed",
    {
      scheme: "signature",
      header: "x-signature",
      algorithm: "hmac-sha1",
      encoding: "base64",
      signedPayload: "{url}{params}",
    },
  ],
  [
    "a signed token in the body",
    {
      scheme: "signature",
      signatureField: "signature.value",
      timestampField: "signature.timestamp",
      tokenField: "signature.token",
      signedPayload: "{timestamp}{token}",
    },
  ],
];

describe("a body signed as the sender signs is verified:", () => {
  test.each(SCHEMES)("%s", async (_name, verify) => {
    const made = trigger({
      verify,
      map: { event_id: "id", event_type: "type" },
      when: { event_type: "paid" },
    });
    const event = await makeSampleEvent(made, null);
    const scheme = findScheme(made.verify.scheme);
    const signed = scheme?.sign(made.verify as never, SECRET, {
      ...event,
      receiverUrl: URL_HERE,
      nowMs: NOW,
    });
    expect(signed).toBeDefined();
    const call = receiveRequest({
      headers: new Headers(signed?.headers),
      body: signed?.body ?? new Uint8Array(),
      search: "",
      receiverUrl: URL_HERE,
      nowMs: NOW,
    });
    expect(scheme?.prepare(made.verify as never, SECRET).verify(call)).toMatchObject({ verified: true });
  });
});
