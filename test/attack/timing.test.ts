/**
 * Comparing a secret takes as long for a guess that is almost right as for one that is all wrong. The structure is held always: every
 * comparison is the constant-time one. `RELAY_TIMING=1` measures it besides, for a quiet machine.
 */
import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import type { ReceivedCall, Verifier } from "../../src/verify/contract.ts";
import { sharedToken } from "../../src/verify/shared-token.ts";
import { signature } from "../../src/verify/signature.ts";
import { codeOf, readSources } from "../house/source-tree.ts";
import { makeCall, recipe, SECRET } from "../kit/sender-call.ts";

describe("the structure", () => {
  const sources = readSources("src").map((source) => ({ path: source.path, code: codeOf(source) }));
  const read = (path: string): string => sources.find((source) => source.path === path)?.code ?? "";

  test.each(["src/verify/proof.ts", "src/verify/shared-token.ts", "src/client/person-code.ts"])("%s compares in constant time", (path) => {
    expect(read(path)).toMatch(/timingSafeEqual\(/);
  });

  test("no secret, signature, digest or hash is compared with an operator", () => {
    const compared = /\b\w*(secret|signature|digest|mac|expected|passwordHash|tokenHash)\b\s*[!=]==\s*(?!null|undefined|"")[a-z(]/i;
    const found = sources
      .filter(({ path }) => /^src\/(verify|secret|account|client|http|receiver)\//.test(path))
      .filter(({ code }) => compared.test(code))
      .map(({ path, code }) => `${path}: ${compared.exec(code)?.[0]}`);
    expect(found).toEqual([]);
  });

  test("tokens are looked up by their hash, so that a query tells nothing of one", () => {
    for (const path of ["src/account/api-key.ts", "src/account/session.ts", "src/client/person-session.ts"])
      expect(read(path)).toMatch(/hashToken\(/);
  });

  test("every signature of a header is compared, also after one that matched", () => {
    expect(read("src/verify/proof.ts")).toMatch(/matched = timingSafeEqual\([^)]*\) \|\| matched/);
  });
});

const RUNS = process.env["RELAY_TIMING"] === undefined ? 200 : 100_000;
const body = '{"id":"evt_1"}';
const right = createHmac("sha256", SECRET).update(body).digest("hex");
const flip = (text: string, at: number): string => `${text.slice(0, at)}${text[at] === "0" ? "1" : "0"}${text.slice(at + 1)}`;

/** Microseconds a call takes, the middle of many, the two kinds in turn so that a slow moment strikes both. */
function measure(verifier: Verifier, early: ReceivedCall, late: ReceivedCall): [number, number] {
  const times: [number[], number[]] = [[], []];
  for (let run = 0; run < RUNS; run++) {
    for (const [kind, call] of [early, late].entries()) {
      const from = performance.now();
      const { verified } = verifier.verify(call);
      times[kind]?.push((performance.now() - from) * 1_000);
      if (verified) throw new Error("a wrong signature verified");
    }
  }
  const middle = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1] ?? 0;
  return [middle(times[0]), middle(times[1])];
}

test.each([
  [
    "an HMAC that is wrong in its first and in its last digit",
    signature.prepare(recipe({ header: "X-Sig", signedPayload: "{body}", encoding: "hex" }), SECRET),
    makeCall({ headers: { "X-Sig": flip(right, 0) }, body }),
    makeCall({ headers: { "X-Sig": flip(right, 63) }, body }),
  ],
  [
    "a token that is wrong in its first and in its last character",
    sharedToken.prepare({ scheme: "shared_token" }, SECRET),
    makeCall({ headers: { "x-webhook-token": flip(SECRET, 0) }, body }),
    makeCall({ headers: { "x-webhook-token": flip(SECRET, SECRET.length - 1) }, body }),
  ],
])("%s takes as long", (_name, verifier, early, late) => {
  const [first, last] = measure(verifier, early, late);
  if (process.env["RELAY_TIMING"] !== undefined) expect(Math.abs(first - last) / Math.max(first, last)).toBeLessThan(0.05);
  expect(first).toBeGreaterThan(0);
});
