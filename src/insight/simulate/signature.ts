/**
 * Simulates the verification of a request: which parts the relay finds, the signed payload, the verdict, and the first difference. A request
 * without headers is signed with the relay's own secret. Shows no secret and no signature.
 */
import type { Json } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { showText } from "../../base/shape.ts";
import { cutUtf8, utf8Bytes } from "../../base/text.ts";
import { explainToOwner } from "../../engine/receiver/rejection.ts";
import { mintReceiverSecret } from "../../platform/secret/secret-text.ts";
import type { ReceiverRelay } from "../../rules/relay/live-relay.ts";
import type { ReceivedRequest, Verified, VerifyFields } from "../../rules/verify/contract.ts";
import { receiveRequest } from "../../rules/verify/received-request.ts";
import { bindScheme } from "../../rules/verify/registry.ts";
import { diagnoseSignature, formatDiagnosis } from "../../rules/verify/signature-diagnosis.ts";
import { type KnownSecret, SignatureEvidence } from "../../rules/verify/signature-evidence.ts";
import { joinSignedText } from "../../rules/verify/signature-proof.ts";
import type { Steps } from "./step.ts";

const MAX_SHOWN_BYTES = 4 * 1024;

/** A request to simulate. `headers` is null where the sender's headers are not known. */
export interface GivenRequest {
  body: Uint8Array;
  contentType: string;
  headers: Record<string, string> | null;
  search: string;
  /** The URL at which it arrived, without its query. */
  url: string;
}

interface SignatureQuestion {
  relay: ReceiverRelay;
  verify: VerifyFields;
  secrets: readonly KnownSecret[];
  /** True if a draft has no secret yet. Its own secret is then an example, or missing. */
  lacksSecret: boolean;
  given: GivenRequest;
  /** The time at which it arrived. */
  nowMs: number;
  turn: () => Promise<void>;
}

/**
 * Adds the steps. Returns the request, and the verdict where it verified; else null. `shown` is the request for the later steps, which can show its
 * body. If the service signed the request, an example secret made its signature.
 */
export async function simulateSignature(
  steps: Steps,
  { relay, verify, secrets, lacksSecret, given, nowMs, turn }: SignatureQuestion,
): Promise<{ received: ReceivedRequest; shown: ReceivedRequest; verdict: Verified | null }> {
  const { bodies: kinds, verifier } = relay.receiver;
  const receiverUrl = given.url;
  const signed = given.headers === null ? signAsSender(verify, secrets, given, receiverUrl, nowMs) : null;
  const headers = makeHeaders({ "content-type": given.contentType, ...(given.headers ?? signed?.headers) });
  const { body, search } = { ...given, ...signed };
  const receive = (bytes: Uint8Array): ReceivedRequest =>
    receiveRequest({ headers, body: bytes, kinds, search, receiverUrl, nowMs });
  const received = receive(body);
  const isSignedHere = signed !== null;
  // Some senders write the signature into the body. A reader could send it, if the stored secret made it.
  const example = { text: mintReceiverSecret(verify.scheme), isPublicKey: false, label: null };
  const hidden = signed && signAsSender(verify, [example], { ...given, body }, receiverUrl, nowMs);
  const shown = hidden === null ? received : receive(hidden.body);
  if (given.headers === null && !isSignedHere) {
    steps.unknown("signature", explainUnsigned(relay, secrets));
    return { received, shown, verdict: null };
  }
  const rejected = { verify, received, headers: [...headers], secrets };
  const proof = new SignatureEvidence(rejected).readOwnParts();
  const parts = [
    ...proof.signatures.map(({ place, encoding, bytes }) => ({
      part: "signature",
      ...nameOf(place),
      form: `${encoding}, ${bytes.length} bytes`,
    })),
    ...proof.timestamps.map(({ place, digits }) => ({ part: "timestamp", ...nameOf(place), digits })),
  ];
  if (proof.signed !== null) {
    const found =
      parts.length === 0
        ? "None of the parts that the relay looks for was found."
        : "The parts that were found.";
    steps.ok("parts", found, parts);
    const text = joinSignedText(proof.signed.text).toString("utf8");
    const shown = cutUtf8(text, MAX_SHOWN_BYTES);
    steps.ok("signed_text", `The text that is signed: \`${proof.signed.payload}\`.`, {
      signedPayload: proof.signed.payload,
      text: shown,
      bytes: utf8Bytes(text),
      cut: shown.length < text.length,
    });
  }
  if (lacksSecret && !isSignedHere) {
    steps.unknown("signature", explainUnchecked(relay, verify));
    return { received, shown, verdict: null };
  }
  if (verifier === null) {
    const { cause, code } = explainToOwner(relay, null);
    steps.stop("signature", "refuse", `The request is rejected with ${code}: ${cause}.`);
    return { received, shown, verdict: null };
  }
  const verdict = verifier.verify(received);
  if (verdict.verified) {
    const secret = lacksSecret ? EXAMPLE_SECRET : "the relay's own secret.";
    const by = isSignedHere ? `It verifies, signed here as the sender would with ${secret}` : "It verifies.";
    steps.ok("signature", by);
    return { received, shown, verdict };
  }
  const { code, cause, unmatched = false } = verdict;
  const diagnosis = code === "bad_signature" ? await diagnoseSignature(rejected, turn) : null;
  const more = diagnosis === null ? "" : formatDiagnosis(diagnosis, unmatched);
  const changes: Json = diagnosis?.changes == null ? null : [...diagnosis.changes];
  steps.stop("signature", "refuse", `The request is rejected with ${code}: ${cause}${more}.`, {
    code,
    changes,
  });
  return { received, shown, verdict: null };
}

const EXAMPLE_SECRET = "an example secret, because the relay has no secret yet.";

function explainUnchecked({ receiver: { source } }: ReceiverRelay, { scheme }: VerifyFields): string {
  const unchecked = "The signature was not checked, because";
  if (scheme === PROCESSOR)
    return `${unchecked} the environment has no processor secret yet: set it with relay settings set processorSecret.`;
  if (source !== null)
    return `${unchecked} ${source.name}, which verifies the requests, has no secret yet: paste it with relay relays set-secret ${source.name}.`;
  return `${unchecked} the relay has no secret yet: give the sender's secret or public key to check it.`;
}

const PROCESSOR = "processor";

export function makeHeaders(given: Record<string, string>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    try {
      headers.set(name, value);
    } catch {
      throw new Refusal(
        "invalid_input",
        `headers holds ${showText(name)}, whose name or value no header of HTTP can have: give it as the sender sends it.`,
      );
    }
  }
  return headers;
}

function nameOf({ header, field, key }: { header: string | null; field: string | null; key: string | null }) {
  return header === null ? { field: field ?? "" } : { header, ...(key === null ? {} : { key }) };
}

/** Signs the request with the relay's own secret. Returns null where only the sender can sign. */
export function signAsSender(
  verify: VerifyFields,
  secrets: readonly KnownSecret[],
  { body, contentType }: Pick<GivenRequest, "body" | "contentType">,
  receiverUrl: string,
  nowMs: number,
) {
  const own = secrets.find(({ label }) => label === null);
  const scheme = bindScheme(verify);
  if (own === undefined || own.isPublicKey || scheme === null) return null;
  return scheme.sign(own.text, { body, contentType, receiverUrl, nowMs });
}

export function explainUnsigned(relay: ReceiverRelay, secrets: readonly KnownSecret[]): string {
  const keyed = secrets.some(({ label, isPublicKey }) => label === null && isPublicKey);
  if (keyed)
    return "The relay checks the sender's public key, and only the sender can sign: give the request's headers to see whether it verifies.";
  return `Nothing can be signed here: ${explainToOwner(relay, null).cause}.`;
}
