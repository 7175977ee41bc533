import { describe, expect, test } from "bun:test";
import type { Algorithm, SignatureFields } from "../../src/rules/verify/recipe.ts";
import { signature } from "../../src/rules/verify/signature.ts";
import {
  bytes,
  deliver,
  EVENT,
  FORM_TYPE,
  JSON_TYPE,
  makeKeys,
  NOW_MS,
  outcome,
  RECEIVER_URL,
  recipe,
  SECRET,
  signEvent,
} from "../kit/sender-call.ts";

const keys = { ed25519: makeKeys("ed25519"), "ecdsa-p256-sha256": makeKeys("ecdsa-p256-sha256") };
const shared = { privateKey: SECRET, stored: SECRET };
const ALGORITHMS: readonly Algorithm[] = ["hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519", "ecdsa-p256-sha256"];
const ENCODINGS = ["hex", "base64", "base64url"] as const;

type Place = Omit<SignatureFields, "scheme" | "algorithm" | "encoding">;

const PLACES: readonly [string, Place, string][] = [
  ["a header over the body", { header: "X-Sig" }, JSON_TYPE],
  ["a header part", { header: "X-Sig", signatureKey: "v1" }, JSON_TYPE],
  [
    "a header part with a timestamp",
    {
      header: "X-Sig",
      signatureKey: "h1",
      timestampKey: "ts",
      separator: ";",
      signedPayload: "{timestamp}:{body}",
    },
    JSON_TYPE,
  ],
  ["a header with a timestamp header", { header: "X-Sig", timestampHeader: "X-Time", signedPayload: "v0:{timestamp}:{body}" }, JSON_TYPE],
  ["a header over a body with the timestamp", { header: "X-Sig", timestampField: "meta.sent", signedPayload: "{timestamp}.{body}" }, JSON_TYPE],
  ["a header over URL and body", { header: "X-Sig", signedPayload: "{url}{body}" }, JSON_TYPE],
  ["a header over URL and parameters", { header: "X-Sig", signedPayload: "{url}{params}" }, FORM_TYPE],
  ["a header over a form as received", { header: "X-Sig" }, FORM_TYPE],
  ["a header over a token", { header: "X-Sig", tokenField: "token", signedPayload: "{token}" }, JSON_TYPE],
  [
    "a body field over timestamp and token",
    {
      signatureField: "s.sig",
      timestampField: "s.time",
      tokenField: "s.token",
      signedPayload: "{timestamp}{token}",
    },
    JSON_TYPE,
  ],
  [
    "a form field over timestamp and token",
    {
      signatureField: "s.sig",
      timestampField: "time",
      tokenField: "token",
      signedPayload: "{timestamp}{token}",
    },
    FORM_TYPE,
  ],
];

for (const algorithm of ALGORITHMS) {
  const pair = algorithm === "ed25519" || algorithm === "ecdsa-p256-sha256" ? keys[algorithm] : shared;
  describe(algorithm, () => {
    const rows = ENCODINGS.flatMap((encoding) => PLACES.map(([title, place, type]) => [encoding, title, place, type] as const));
    test.each(rows)("%s, %s: only a signed request verifies", (encoding, _title, place, type) => {
      const fields = recipe({ ...place, algorithm, encoding });
      expect(signature.check(fields)).toEqual([]);
      const sent = signEvent(fields, pair.privateKey, type === FORM_TYPE ? "a=1&b=x+y" : EVENT, type);
      const verifier = signature.prepare(fields, pair.stored);

      const verdict = verifier.verify(deliver(sent));
      expect(verdict).toMatchObject({ verified: true });
      expect(verdict.verified && verdict.onceText !== null).toBe(/params|token/.test(place.signedPayload ?? ""));

      if (place.tokenField === undefined) {
        const body = bytes(`${Buffer.from(sent.body).toString()}${type === FORM_TYPE ? "&c=1" : " "}`);
        expect(outcome(verifier.verify(deliver(sent, { body })))).toBe("bad_signature");
      }
      if (fields.timestampHeader ?? fields.timestampKey ?? fields.timestampField) {
        expect(outcome(verifier.verify(deliver(sent, { nowMs: NOW_MS + 302_000 })))).toBe("bad_signature");
      }
      if (place.signedPayload?.includes("{url}")) {
        expect(outcome(verifier.verify(deliver(sent, { receiverUrl: `${RECEIVER_URL}x` })))).toBe("bad_signature");
      }
    });
  });
}

describe("signing", () => {
  test("keeps a token that the body already has", () => {
    const fields = recipe({ header: "X-Sig", tokenField: "t", signedPayload: "{token}" });
    expect(Buffer.from(signEvent(fields, SECRET, '{"t":"mine"}').body).toString()).toBe('{"t":"mine"}');
  });

  test("keeps integers beyond 2^53 and the other fields of the body", () => {
    const fields = recipe({ header: "X-Sig", timestampField: "a.t", signedPayload: "{timestamp}.{body}" });
    const { body } = signEvent(fields, SECRET, '{"id":9007199254740993,"a":{"b":1}}');
    expect(Buffer.from(body).toString()).toBe('{"id":9007199254740993,"a":{"b":1,"t":"1768478400"}}');
  });

  const rows: [string, SignatureFields, string][] = [
    ["a list has no fields", recipe({ header: "X-Sig", timestampField: "t" }), "[]"],
    ["a field inside a text", recipe({ header: "X-Sig", timestampField: "a.t" }), '{"a":"x"}'],
    ["JSON has no form parameters", recipe({ header: "X-Sig", signedPayload: "{params}" }), "{}"],
    ["text that is no JSON", recipe({ header: "X-Sig", timestampField: "t" }), "nope"],
  ];
  test.each(rows)("refuses with invalid_input a body that cannot be signed: %s", (_rule, fields, body) => {
    expect(() => signEvent(fields, SECRET, body)).toThrow(expect.objectContaining({ code: "invalid_input" }));
  });
});
