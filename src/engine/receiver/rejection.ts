/**
 * The sentences a receiver refuses with, and what each environment's owner is told beside them: a caller learns no more than that the call
 * did not verify, an owner the cause. It decides no refusal.
 */
import { Refusal } from "../../base/refusal.ts";
import type { ClosedReason } from "../../rules/relay/live-receiver.ts";
import type { LiveRelay, ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { Verdict } from "../../rules/verify/contract.ts";
import type { NamedHandshake } from "../../rules/verify/handshake.ts";

type Refused = Extract<Verdict, { verified: false }>;

/** Why one environment's relay did not verify a call. */
export interface Rejection {
  relay: LiveRelay;
  /** A refusal's code. */
  code: string;
  cause: string;
}

/** As `Rejection`, of a call whose signature was looked at, or whose relay verifies nothing. */
export interface UnverifiedRejection extends Rejection {
  relay: ReceiverRelay;
  /** Whether the relay verifies calls at all. */
  open: boolean;
  /** Whether a proof was where it is looked for, and did not match. */
  unmatched: boolean;
}

const CLOSED_CAUSES: Readonly<Record<ClosedReason, string>> = {
  scheme_renamed:
    "the relay is stored under the old scheme name; save its definition with the scheme signature",
  relay_unsigned_event: "the relay breaks the unsigned-event rule, so it refuses every call",
  relay_key_as_secret: "the relay's recipe checks a shared secret but a key is stored",
  unreadable: "the stored relay cannot be opened; the server's log says why",
  no_secret: "the relay holds no secret or key yet",
};

/** What an owner is told of a call that his relay did not verify; `verdict` is null where it verifies nothing at all. */
export function explainToOwner(relay: ReceiverRelay, verdict: Refused | null): UnverifiedRejection {
  if (verdict !== null) {
    const { code, cause, unmatched = false } = verdict;
    return { relay, code, cause, open: true, unmatched };
  }
  const closed = relay.receiver.closed ?? "no_secret";
  const code = closed === "scheme_renamed" ? closed : "bad_signature";
  return { relay, code, cause: CLOSED_CAUSES[closed], open: false, unmatched: false };
}

/** Refusals that anyone can have told again and again are made once: an error's stack costs as much as the call. */
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

/** What the caller is told of a call that verified in no environment. */
export function explainToCaller(refused: readonly Rejection[]): Refusal {
  if (refused.length > 0 && refused.every(({ code }) => code === "scheme_renamed")) return SCHEME_RENAMED;
  const told = refused.find(({ code }) => code === "too_many_signatures" || code === "invalid_json");
  if (told === undefined) return BAD_SIGNATURE;
  return told.code === "invalid_json" ? new Refusal("invalid_json", told.cause) : TOO_MANY_SIGNATURES;
}

/** What its sender's check asks for is not there. The owner is told `why`; the caller as well where it verified. */
export function rejectHandshake({ label }: NamedHandshake, why: string): Refusal {
  return new Refusal("handshake_refused", `${label} was not answered: ${why}.`);
}

/** As `rejectHandshake`, for a caller of whom nothing is known. */
export const HANDSHAKE_REFUSED = new Refusal(
  "handshake_refused",
  "The question was not answered, as it is not what the sender that is registered here asks; compare it with what the relay's page shows.",
);

export function rejectLargeBody(): Refusal {
  return new Refusal(
    "body_too_large",
    "The body is larger than 256 KB, the most a receiver accepts; ask the provider for a thinner event.",
  );
}

/** A signature that counts once came again, with another body. */
export function rejectReusedSignature(): Refusal {
  return new Refusal(
    "bad_signature",
    "This signature was accepted once before, with another body; each signature of this recipe counts once.",
  );
}

/** Minutes of addresses that are over the cap at a time; beyond them their refusals are made anew. */
const MAX_FULL_MINUTES = 1_000;

/** The refusals of addresses that made too many unverified calls, one for each end of a minute. */
export class CappedSources {
  readonly #limit: number;
  readonly #refusals = new Map<number, Refusal>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  refuse(resetAtMs: number): Refusal {
    const known = this.#refusals.get(resetAtMs);
    if (known !== undefined) return known;
    if (this.#refusals.size >= MAX_FULL_MINUTES) this.#refusals.clear();
    const refusal = new Refusal(
      "source_capped",
      `An address may send ${this.#limit} calls in a minute that do not verify, and none of them is left here: fix the sender and try again after resetAt.`,
      { resetAtMs },
    );
    this.#refusals.set(resetAtMs, refusal);
    return refusal;
  }
}

/** An event is one too many for its app. */
export function rejectFullApp(limit: number, resetAtMs: number): Refusal {
  return new Refusal(
    "receiver_capped",
    `This app may receive ${limit} verified events in a minute, and none of them is left here: send the event again after resetAt.`,
    { resetAtMs },
  );
}

/** A relay received too many calls that become no event. */
export function rejectEventless(limit: number, resetAtMs: number): Refusal {
  return new Refusal(
    "receiver_capped",
    `This relay may receive ${limit} calls in a minute that become no event (duplicates, what its when ignores, bodies that are not JSON), and none of them is left here: send the call again after resetAt.`,
    { resetAtMs },
  );
}
