/** The time for which a signature that counts once is remembered (recipes, "Signatures accepted once"). */
import { expect, test } from "bun:test";
import { MAX_TOLERANCE_SECONDS } from "../../src/base/limit.ts";
import { signatureUse } from "../../src/engine/receiver/signature-memory.ts";

const MARK = new Uint8Array([1, 2, 3]);
const PREVIOUS = new Uint8Array([4, 5, 6]);
const RELAY = { environmentId: 1, name: "orders", receiver: { source: null, secretMarks: { present: MARK, previous: PREVIOUS } } };
const BODY = new TextEncoder().encode("{}");

test("a signature with a timestamp is remembered longer than any tolerance after its timestamp", () => {
  const use = signatureUse(RELAY, { onceText: new TextEncoder().encode("1.{}"), expiresAtMs: 1_000 }, BODY);
  expect(use?.until).toBeGreaterThan(1_000 + MAX_TOLERANCE_SECONDS * 1_000);
  expect(use?.secret).toBeNull();
});

test.each([
  ["the present secret", false, MARK],
  ["the previous secret", true, PREVIOUS],
])("a signature without a timestamp is remembered as long as %s", (_, byPrevious, secret) => {
  expect(signatureUse(RELAY, { onceText: BODY, expiresAtMs: null, byPrevious }, BODY)).toMatchObject({ until: null, secret });
});

test("a signature over the raw body is not remembered", () => {
  expect(signatureUse(RELAY, { onceText: null, expiresAtMs: null }, BODY)).toBeNull();
});
