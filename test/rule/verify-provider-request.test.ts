import { describe, expect, test } from "bun:test";
import { readPastedSecret } from "../../src/platform/secret/secret-text.ts";
import { findScheme } from "../../src/rules/verify/registry.ts";
import { deliver, outcome } from "../kit/sender-call.ts";
import { draftOf, PROVIDERS, PROVIDERS_NOW_MS } from "../kit/sender-example.ts";

/** Cases with a second use of a signature. Only the receiver detects that, so a scheme may verify them. */
const SECOND_USE = ["other-body-second-use"];

test("there are 92 recorded requests of 8 senders", () => {
  expect(PROVIDERS).toHaveLength(8);
  expect(PROVIDERS.flatMap((provider) => provider.cases)).toHaveLength(92);
});

for (const provider of PROVIDERS) {
  describe(provider.provider, () => {
    const fields = provider.definition.trigger.verify;
    const scheme = findScheme(fields.scheme);
    if (scheme === null) throw new Error(`no scheme ${fields.scheme}`);
    const pasted = readPastedSecret(fields, provider.secret);
    const verifier = scheme.prepare(fields as never, pasted.stored);

    test("its recipe can be saved", () => {
      expect(scheme.check(fields as never)).toEqual([]);
    });

    test.each(provider.cases.map((one) => [one.id, one.why, one] as const))("%s: %s", (id, _why, one) => {
      const verdict = verifier.verify(deliver(draftOf(one), { receiverUrl: provider.url, nowMs: PROVIDERS_NOW_MS }));
      const right = one.expect.map((answer) => (answer.status === 200 ? "verified" : answer.code));
      if (SECOND_USE.includes(id)) right.push("verified");
      expect(right).toContain(outcome(verdict));
    });
  });
}
