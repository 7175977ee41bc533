/**
 * The rejections of a receiver: the sentence for the caller, who learns only that the request did not verify, and the cause for each environment's
 * owner. This file does not decide whether a request is rejected.
 */
import { Refusal } from "../../base/refusal.ts";
import type { ClosedReason } from "../../rules/relay/live-receiver.ts";
import type { LiveRelay, ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { Verdict } from "../../rules/verify/contract.ts";
import type { NamedHandshake } from "../../rules/verify/handshake.ts";

type Refused = Extract<Verdict, { verified: false }>;

/** The reason why the relay of one environment rejected a request. */
export interface Rejection {
  relay: LiveRelay;
  /** The code of the refusal. */
  code: string;
  cause: string;
}

/** A rejection after the signature was checked, or by a relay that verifies nothing. */
export interface UnverifiedRejection extends Rejection {
  relay: ReceiverRelay;
  /** True if the relay verifies requests at all. */
  open: boolean;
  /** True if a signature was found and did not match. */
  unmatched: boolean;
}

const CLOSED_CAUSES: Readonly<Record<ClosedReason, string>> = {
  scheme_renamed:
    "the relay is stored under the old scheme name; save its definition with the scheme signature",
  relay_unsigned_event: "the relay breaks the unsigned-event rule, so it rejects every request",
  relay_key_as_secret: "the relay's recipe checks a shared secret but a key is stored",
  unreadable: "the stored relay cannot be opened; the server's log says why",
  no_secret: "the relay has no secret or key yet",
};

/** Explains to the owner why the relay did not verify a request. `verdict` is null where the relay verifies nothing. */
export function explainToOwner(relay: ReceiverRelay, verdict: Refused | null): UnverifiedRejection {
  if (verdict !== null) {
    const { code, cause, unmatched = false } = verdict;
    return { relay, code, cause, open: true, unmatched };
  }
  const closed = relay.receiver.closed ?? "no_secret";
  const code = closed === "scheme_renamed" ? closed : "bad_signature";
  return { relay, code, cause: CLOSED_CAUSES[closed], open: false, unmatched: false };
}

/** Refusals that any caller can cause are created once, because an error's stack costs as much as the request. */
const SCHEME_RENAMED = new Refusal(
  "scheme_renamed",
  'The relay is stored under the old scheme name hmac_sha256_header; save its definition with "scheme": "signature".',
);
const TOO_MANY_SIGNATURES = new Refusal(
  "too_many_signatures",
  "The signature header lists more than 8 signatures; send at most 8.",
);
const BAD_SIGNATURE = new Refusal(
  "bad_signature",
  "The signature did not verify; check that the relay holds the sender's current secret and that its recipe is how the sender signs.",
);
export const UNKNOWN_RECEIVER = new Refusal(
  "unknown_receiver",
  "No receiver relay with this name exists on this app; compare the URL with the one on the relay's page.",
);

/** Returns the refusal for a request that verified in no environment. */
export function explainToCaller(refused: readonly Rejection[]): Refusal {
  if (refused.length > 0 && refused.every(({ code }) => code === "scheme_renamed")) return SCHEME_RENAMED;
  const specific = refused.find(({ code }) => code === "too_many_signatures" || code === "invalid_json");
  if (specific === undefined) return BAD_SIGNATURE;
  return specific.code === "invalid_json" ? new Refusal("invalid_json", specific.cause) : TOO_MANY_SIGNATURES;
}

/** Returns the refusal of a handshake without the expected values. The owner reads `why`, and so does a verified caller. */
export function rejectHandshake({ label }: NamedHandshake, why: string): Refusal {
  return new Refusal("handshake_refused", `${label} was not answered: ${why}.`);
}

/** The refusal of a handshake for an unverified caller. */
export const HANDSHAKE_REFUSED = new Refusal(
  "handshake_refused",
  "The handshake was not answered, because it is not the handshake of the registered sender; compare it with the relay's page.",
);

export function rejectLargeBody(): Refusal {
  return new Refusal(
    "body_too_large",
    "The body is larger than 256 KB, the most a receiver accepts; ask the provider for a thinner event.",
  );
}

/** Returns the refusal of a single-use signature that came again with another body. */
export function rejectReusedSignature(): Refusal {
  return new Refusal(
    "bad_signature",
    "This signature was accepted once before, with another body; each signature of this recipe counts once.",
  );
}

/** The most refusals that are cached. */
const MAX_FULL_MINUTES = 1_000;

/** Caches the refusals of addresses over the cap of unverified requests, one for each end of a minute. */
export class CappedSources {
  readonly #limit: number;
  readonly #refusals = new Map<number, Refusal>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  reject(resetAtMs: number): Refusal {
    const known = this.#refusals.get(resetAtMs);
    if (known !== undefined) return known;
    if (this.#refusals.size >= MAX_FULL_MINUTES) this.#refusals.clear();
    const refusal = new Refusal(
      "source_capped",
      `An address can send ${this.#limit} requests in a minute that do not verify, and this address reached the limit: fix the sender and retry after resetAt.`,
      { resetAtMs },
    );
    this.#refusals.set(resetAtMs, refusal);
    return refusal;
  }
}

/** Returns the refusal of an event over the app's cap. */
export function rejectFullApp(limit: number, resetAtMs: number): Refusal {
  return new Refusal(
    "receiver_capped",
    `This app may receive ${limit} verified events in a minute, and none of them is left here: send the event again after resetAt.`,
    { resetAtMs },
  );
}

/** Returns the refusal of a request over the relay's cap of requests without an event. */
export function rejectEventless(limit: number, resetAtMs: number): Refusal {
  return new Refusal(
    "receiver_capped",
    `This relay can receive ${limit} requests in a minute that create no event (duplicates, ignored requests, bodies that are not JSON), and reached this limit. Send the request again after resetAt.`,
    { resetAtMs },
  );
}
