/** No request makes verification throw, and only a valid signature verifies. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeText } from "../../src/base/text.ts";
import type { Scheme } from "../../src/rules/verify/contract.ts";
import { receiveRequest } from "../../src/rules/verify/received-request.ts";
import { checkRecipe, type SignatureFields } from "../../src/rules/verify/recipe.ts";
import { SCHEMES } from "../../src/rules/verify/registry.ts";
import { FORM_TYPE, JSON_TYPE, makeCall, makeKeys, NOW_MS, NOW_SECONDS, RECEIVER_URL, SECRET } from "../kit/sender-call.ts";

const RUNS = Number(process.env["RELAY_FUZZ_RUNS"] ?? 300);
const keys = { ed25519: makeKeys("ed25519"), "ecdsa-p256-sha256": makeKeys("ecdsa-p256-sha256") };

function storedFor(scheme: Scheme, fields: { algorithm?: string }): string {
  if (scheme.name === "hooks") return `whsec_${SECRET}`;
  const { algorithm } = fields;
  return algorithm === "ed25519" || algorithm === "ecdsa-p256-sha256" ? keys[algorithm].stored : SECRET;
}

const verifiers = SCHEMES.flatMap((scheme) =>
  (scheme.examples as readonly (object & SignatureFields)[]).map((fields) => ({
    title: `${scheme.name} ${JSON.stringify(fields)}`,
    verifier: scheme.prepare(fields as never, storedFor(scheme, fields)),
    names: [
      ...[fields.header, fields.timestampHeader].filter((name) => name !== undefined),
      ...["processor-signature", "stripe-signature", "hooks-id", "hooks-timestamp", "hooks-signature", "x-webhook-token"],
    ],
  })),
);

/** Plausible header values: parts, digits, encodings, and any text that a header can contain. */
const headerValue = fc.oneof(
  fc.constant(NOW_SECONDS),
  fc
    .array(fc.tuple(fc.constantFrom("v1", "v0", "t", "h1", "ts", "sha256", ""), fc.constantFrom("=", ",", " ", ""), fc.base64String()), {
      maxLength: 12,
    })
    .map((parts) => parts.map((part) => part.join("")).join(",")),
  fc
    .array(
      fc.base64String().map((text) => `v1,${text}`),
      { maxLength: 12 },
    )
    .map((parts) => parts.join(" ")),
  fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) }),
  fc.string({ unit: fc.integer({ min: 0xa0, max: 0xff }).map((code) => String.fromCharCode(code)) }),
);

const jsonBody = fc
  .oneof(
    fc.json(),
    fc
      .record(
        {
          signature: fc.record(
            {
              signature: fc.jsonValue(),
              timestamp: fc.oneof(fc.constant(NOW_SECONDS), fc.jsonValue()),
              token: fc.jsonValue(),
            },
            { requiredKeys: [] },
          ),
        },
        { requiredKeys: [] },
      )
      .map((value) => JSON.stringify(value)),
    fc.constantFrom("[".repeat(200_000), '{"a":'.repeat(50_000), '"\\ud800"', "1e999", "null"),
  )
  .map((text) => new TextEncoder().encode(text));

const formBody = fc
  .array(fc.tuple(fc.constantFrom("a", "__proto__", "signature.token", "signature.timestamp", "%ff", "&", ""), fc.string()))
  .map((pairs) => new TextEncoder().encode(pairs.map((pair) => pair.join("=")).join("&")));

const call = fc.record({
  type: fc.constantFrom(JSON_TYPE, FORM_TYPE, "", "text/plain; charset=x"),
  values: fc.array(headerValue, { minLength: 8, maxLength: 8 }),
  body: fc.oneof(jsonBody, formBody, fc.uint8Array({ maxLength: 200 })),
  search: fc.oneof(
    fc.constant(""),
    fc.string().map((text) => `?${text}`),
    fc.string().map((text) => `?token=${text}`),
  ),
});

describe("random requests never throw and never verify", () => {
  test.each(verifiers.map((one) => [one.title, one] as const))("%s", (_title, { verifier, names }) => {
    fc.assert(
      fc.property(call, ({ type, values, body, search }) => {
        const headers = new Headers({ "content-type": type });
        names.forEach((name, at) => {
          headers.set(name, values[at % values.length] ?? "");
        });
        const verdict = verifier.verify(receiveRequest({ headers, body, search, receiverUrl: RECEIVER_URL, nowMs: NOW_MS }));
        expect(verdict.verified).toBe(false);
      }),
      { numRuns: RUNS },
    );
  });
});

describe("a random recipe", () => {
  const name = fc.constantFrom("X-Sig", "a.b", "t", "v1", "", "a..b", "__proto__");
  const piece = fc.constantFrom("{body}", "{params}", "{token}", "{timestamp}", "{url}", ".", "1", "v0:", "{", "}", "é");
  const fields = fc.record(
    {
      scheme: fc.constant("signature" as const),
      algorithm: fc.constantFrom("hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519", "ecdsa-p256-sha256"),
      header: fc.constantFrom("X-Sig", "X-Time"),
      signatureKey: name,
      separator: fc.constantFrom(",", ";"),
      signatureField: name,
      timestampHeader: fc.constant("X-Time"),
      timestampKey: name,
      timestampField: name,
      toleranceSeconds: fc.integer({ min: 1, max: 300 }),
      signedPayload: fc.array(piece).map((pieces) => pieces.join("")),
      tokenField: name,
      encoding: fc.constantFrom("hex", "base64", "base64url"),
    },
    { requiredKeys: ["scheme"] },
  );
  const [signature] = SCHEMES;

  test("is checked without throwing, and when stored never verifies an unsigned request", () => {
    fc.assert(
      fc.property(fields, call, (recipe, { values, body, type, search }) => {
        expect(Array.isArray(checkRecipe(recipe as SignatureFields))).toBe(true);
        const headers = { "X-Sig": values[0] ?? "", "X-Time": NOW_SECONDS, "content-type": type };
        const verifier = signature?.prepare(recipe as never, SECRET);
        expect(verifier?.verify(makeCall({ headers, body, search })).verified).toBe(false);
      }),
      { numRuns: RUNS * 3 },
    );
  });
});

test("text of any encoding decodes to its bytes, and decoded text encodes to itself", () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.constantFrom("hex", "base64", "base64url"), fc.string(), (bytes, encoding, text) => {
      expect(decodeText(Buffer.from(bytes).toString(encoding), encoding)).toEqual(Buffer.from(bytes));
      const decoded = decodeText(text, encoding);
      const bare = (written: string) => written.replace(/=+$/, "");
      if (decoded !== null) {
        const written = bare(decoded.toString(encoding));
        expect(encoding === "hex" ? text.toLowerCase() : bare(text)).toBe(written);
      }
    }),
  );
});
