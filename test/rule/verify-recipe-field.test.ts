import { describe, expect, test } from "bun:test";
import { Value } from "typebox/value";
import type { SignatureFields } from "../../src/rules/verify/recipe.ts";
import { SCHEMES } from "../../src/rules/verify/registry.ts";
import { signature } from "../../src/rules/verify/signature.ts";

const base = { scheme: "signature", header: "X-Signature" } as const;
const inBody = {
  scheme: "signature",
  signatureField: "sig",
  tokenField: "token",
  signedPayload: "{token}",
} as const;

function problemFields(fields: object): string[] {
  return signature.check(fields as SignatureFields).map((problem) => problem.field);
}

describe("a recipe that can be saved", () => {
  const rows: [string, object][] = [
    ["needs only the header: hmac-sha256, hex, over the body", base],
    ["can name the part among several and a separator", { ...base, signatureKey: "v1", separator: ";" }],
    ["has , as its default separator with signatureKey", { ...base, signatureKey: "v1" }],
    ["can take the timestamp from a header, without signedPayload", { ...base, timestampHeader: "X-Time" }],
    [
      "can take the timestamp from a part of the signature header",
      { ...base, signatureKey: "v1", timestampKey: "t", signedPayload: "{timestamp}.{body}" },
    ],
    ["can take the timestamp from a body field", { ...base, timestampField: "meta.time", signedPayload: "{timestamp}.{body}" }],
    ["can take the signature from a body field instead", inBody],
    ["can have toleranceSeconds with a timestamp", { ...base, timestampHeader: "X-Time", toleranceSeconds: 1 }],
    ["can have toleranceSeconds at its maximum", { ...base, timestampHeader: "X-Time", toleranceSeconds: 300 }],
  ];
  test.each(rows)("%s", (_rule, fields) => {
    expect(Value.Check(signature.shape, fields)).toBe(true);
    expect(problemFields(fields)).toEqual([]);
  });
});

describe("a recipe that is refused at save", () => {
  const rows: [string, object, string[]][] = [
    ["header is required unless signatureField is set", { scheme: "signature" }, ["header"]],
    ["header and signatureField are never both set", { ...inBody, header: "X-Signature" }, ["signatureField"]],
    ["signatureKey is a part of a header", { ...inBody, signatureKey: "v1" }, ["signatureKey"]],
    ["separator is refused without signatureKey", { ...base, separator: "," }, ["separator"]],
    ["timestampKey needs signatureKey", { ...base, timestampKey: "t" }, ["timestampKey"]],
    ["signatureKey and timestampKey never share a name", { ...base, signatureKey: "t", timestampKey: "t" }, ["timestampKey"]],
    [
      "at most one of the three timestamp sources",
      { ...base, signatureKey: "v1", timestampHeader: "X-Time", timestampKey: "t", timestampField: "time" },
      ["timestampKey", "timestampField"],
    ],
    ["toleranceSeconds only with a timestamp source", { ...base, toleranceSeconds: 60 }, ["toleranceSeconds"]],
    ["the signature's header cannot be the timestamp's", { ...base, timestampHeader: "x-signature" }, ["timestampHeader"]],
    ["a body field is a dotted path", { ...base, timestampField: "a..b" }, ["timestampField"]],
    ["the token is not the signature", { ...inBody, tokenField: "sig" }, ["tokenField"]],
    ["{token} needs tokenField", { ...base, signedPayload: "{token}" }, ["tokenField"]],
    ["tokenField without {token} is refused", { ...base, tokenField: "token" }, ["tokenField"]],
    ["a signature inside the body never signs {body}", { scheme: "signature", signatureField: "sig" }, ["signedPayload"]],
    [
      "a signature inside the body never signs {params}",
      { scheme: "signature", signatureField: "sig", signedPayload: "{params}" },
      ["signedPayload"],
    ],
    ["{timestamp} must appear when a timestamp is named", { ...base, timestampHeader: "X-Time", signedPayload: "{body}" }, ["signedPayload"]],
    ["a timestamp needs a source", { ...base, signedPayload: "{timestamp}.{body}" }, ["signedPayload"]],
    [
      "all problems are reported at once",
      { scheme: "signature", separator: ";", toleranceSeconds: 5, signedPayload: "{timestamp}1{params}!" },
      ["header", "separator", "toleranceSeconds", "signedPayload", "signedPayload", "signedPayload", "signedPayload"],
    ],
  ];
  test.each(rows)("%s", (_rule, fields, expected) => {
    expect(problemFields(fields)).toEqual(expected);
  });

  test("each problem is one sentence that names the field and says what to do", () => {
    for (const [, fields] of rows) {
      for (const { field, message } of signature.check(fields as SignatureFields)) {
        expect(message).toStartWith(`${field} `);
        expect(message).toMatch(/: .+\.$/);
        expect(message).not.toMatch(/[a-z][.!?] /);
      }
    }
  });
});

describe("the shape of a recipe", () => {
  const rows: [string, object][] = [
    ["an unknown field is refused", { ...base, signingKey: "x" }],
    ["algorithm is one of five", { ...base, algorithm: "hmac-md5" }],
    ["separator is , or ;", { ...base, signatureKey: "v1", separator: "|" }],
    ["encoding is hex, base64 or base64url", { ...base, encoding: "base32" }],
    ["toleranceSeconds is at least 1", { ...base, timestampHeader: "T", toleranceSeconds: 0 }],
    ["toleranceSeconds is at most 300", { ...base, timestampHeader: "T", toleranceSeconds: 301 }],
    ["toleranceSeconds is an integer", { ...base, timestampHeader: "T", toleranceSeconds: 1.5 }],
    ["header is a header name", { scheme: "signature", header: "X Signature" }],
    ["header is not empty", { scheme: "signature", header: "" }],
    ["signatureKey holds no =", { ...base, signatureKey: "v1=" }],
    ["signatureKey holds no separator", { ...base, signatureKey: "v,1" }],
    ["timestampKey holds no space", { ...base, signatureKey: "v1", timestampKey: "t s" }],
  ];
  test.each(rows)("%s", (_rule, fields) => {
    expect(Value.Check(signature.shape, fields)).toBe(false);
  });

  test.each(SCHEMES.map((scheme) => [scheme.name, scheme] as const))(
    "%s: every field has a description and a type, and every example can be saved",
    (name, scheme) => {
      const properties = (scheme.shape as unknown as { properties: Record<string, Record<string, unknown>> }).properties;
      for (const property of Object.values(properties)) {
        expect(property["description"]).toBeString();
        expect(property["expects"]).toBeString();
      }
      expect(scheme.examples.length).toBeGreaterThan(0);
      for (const example of scheme.examples as readonly unknown[]) {
        expect(Value.Check(scheme.shape, example)).toBe(true);
        expect(scheme.check(example as never)).toEqual([]);
        expect(example).toMatchObject({ scheme: name });
      }
    },
  );
});
