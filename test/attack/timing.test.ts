/**
 * Comparing a secret takes as long for a guess that is almost right as for one that is all wrong, because every comparison takes constant time. `npm
 * run bench -- --only secret` measures it.
 */
import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { sharedToken } from "../../src/rules/verify/shared-token.ts";
import { signature } from "../../src/rules/verify/signature.ts";
import { codeOf, readSources } from "../house/source-tree.ts";
import { makeCall, recipe, SECRET } from "../kit/sender-call.ts";

describe("the source code", () => {
  const sources = readSources("src").map((source) => ({ path: source.path, code: codeOf(source) }));
  const read = (path: string): string => sources.find((source) => source.path === path)?.code ?? "";

  test.each([
    ["src/rules/verify/signature-proof.ts", /export function isSameText\(.*\n?.*timingSafeEqual\(/s],
    ["src/rules/verify/shared-token.ts", /isSameText\(given, secret\)/],
    ["src/rules/verify/handshake.ts", /isSameText\(token, verifyToken\)/],
    ["src/shop/portal/person-code.ts", /timingSafeEqual\(/],
  ])("%s compares in constant time", (path, comparison) => {
    expect(read(path)).toMatch(comparison);
  });

  test("compares no secret, signature, digest or hash with an operator", () => {
    const compared = /\b\w*(secret|signature|digest|mac|expected|passwordHash|tokenHash)\b\s*[!=]==\s*(?!null|undefined|"")[a-z(]/i;
    const found = sources
      .filter(({ path }) => /\/(verify|secret|account|portal|client|http|api|receiver)\//.test(path))
      .filter(({ code }) => compared.test(code))
      .map(({ path, code }) => `${path}: ${compared.exec(code)?.[0]}`);
    expect(found).toEqual([]);
  });

  test("looks tokens up by their hash, so a query reveals nothing about a token", () => {
    for (const path of ["src/platform/account/api-key.ts", "src/platform/account/session.ts", "src/shop/portal/person-session.ts"])
      expect(read(path)).toMatch(/hashToken\(/);
  });

  test("compares every signature of a header, even after one that matched", () => {
    expect(read("src/rules/verify/signature-proof.ts")).toMatch(/matched = timingSafeEqual\([^)]*\) \|\| matched/);
  });
});

const body = '{"id":"evt_1"}';
const right = createHmac("sha256", SECRET).update(body).digest("hex");
const flip = (text: string, at: number): string => `${text.slice(0, at)}${text[at] === "0" ? "1" : "0"}${text.slice(at + 1)}`;

test.each([0, 31, 63])("an HMAC with a wrong digit %d is refused", (at) => {
  const verifier = signature.prepare(recipe({ header: "X-Sig", signedPayload: "{body}", encoding: "hex" }), SECRET);
  expect(verifier.verify(makeCall({ headers: { "X-Sig": flip(right, at) }, body })).verified).toBe(false);
  expect(verifier.verify(makeCall({ headers: { "X-Sig": right }, body })).verified).toBe(true);
});

test.each([0, SECRET.length - 1])("a token with a wrong character %d is refused", (at) => {
  const verifier = sharedToken.prepare({ scheme: "shared_token" }, SECRET);
  expect(verifier.verify(makeCall({ headers: { "x-webhook-token": flip(SECRET, at) }, body })).verified).toBe(false);
});
