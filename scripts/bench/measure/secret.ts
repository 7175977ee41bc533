/**
 * Measures whether the time to compare a secret reveals how much of a guess is right. A guess that is wrong in its first character must take as
 * long as one that is wrong in its last.
 */
import { createHmac } from "node:crypto";
import type { ReceivedRequest, Verifier } from "../../../src/rules/verify/contract.ts";
import { sharedToken } from "../../../src/rules/verify/shared-token.ts";
import { signature } from "../../../src/rules/verify/signature.ts";
import { makeCall, recipe, SECRET } from "../../../test/kit/sender-call.ts";
import { type Figure, median } from "../figure.ts";
import type { Measure } from "../measure.ts";

const CALLS = 100_000;
const TINY_CALLS = 1_000;
const TRIES = 3;
/** The largest allowed difference of the medians. A larger one could be measured over a network with very many guesses. */
const MOST_SHARE = 0.05;
const BODY = '{"id":"evt_1"}';

export const secret: Measure = {
  name: "secret",
  what: "the difference in time between a guess that is almost right and one that is all wrong",
  pinned: true,
  async measure({ tiny }) {
    const right = createHmac("sha256", SECRET).update(BODY).digest("hex");
    const hmac = signature.prepare(
      recipe({ header: "X-Sig", signedPayload: "{body}", encoding: "hex" }),
      SECRET,
    );
    const token = sharedToken.prepare({ scheme: "shared_token" }, SECRET);
    const signed = (at: number) => makeCall({ headers: { "X-Sig": flip(right, at) }, body: BODY });
    const guessed = (at: number) =>
      makeCall({ headers: { "x-webhook-token": flip(SECRET, at) }, body: BODY });
    const calls = tiny ? TINY_CALLS : CALLS;
    return [
      bestOf("an HMAC, wrong in its first or its last digit", calls, hmac, signed(0), signed(63)),
      bestOf(
        "a token, wrong in its first or its last character",
        calls,
        token,
        guessed(0),
        guessed(SECRET.length - 1),
      ),
    ];
  },
};

const flip = (text: string, at: number): string =>
  `${text.slice(0, at)}${text[at] === "0" ? "1" : "0"}${text.slice(at + 1)}`;

function bestOf(
  what: string,
  calls: number,
  verifier: Verifier,
  early: ReceivedRequest,
  late: ReceivedRequest,
): Figure {
  let [least, micros] = [Number.POSITIVE_INFINITY, 0];
  for (let turn = 0; turn < TRIES && least > MOST_SHARE; turn++) {
    const [first, last] = timeBoth(calls, verifier, early, late);
    const share = Math.abs(first - last) / Math.max(first, last);
    if (share < least) [least, micros] = [share, first];
  }
  return {
    what,
    value: `${(100 * least).toFixed(1)} % apart`,
    limit: `${micros.toFixed(2)} µs a call`,
    goal: `≤ ${100 * MOST_SHARE} %`,
    met: least <= MOST_SHARE,
  };
}

/** Returns the median microseconds of each kind of call. The two take turns, so that a slow moment affects both. */
function timeBoth(
  calls: number,
  verifier: Verifier,
  early: ReceivedRequest,
  late: ReceivedRequest,
): [number, number] {
  const times: [number[], number[]] = [[], []];
  for (let call = 0; call < calls; call++) {
    for (const [kind, received] of [early, late].entries()) {
      const from = performance.now();
      const { verified } = verifier.verify(received);
      times[kind]?.push((performance.now() - from) * 1_000);
      if (verified) throw new Error("A wrong secret verified.");
    }
  }
  return [median(times[0]), median(times[1])];
}
