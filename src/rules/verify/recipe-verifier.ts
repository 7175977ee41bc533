/**
 * Verifies requests by a signature recipe, prepared once for each relay. In this order it parses the body if a field is needed, counts
 * the signatures, checks the timestamp and checks the signature. It runs no cryptography on a request that it can reject without. Source:
 * the specification's "Runtime rules"; recipes, "Order of a call".
 */
import { type Json, scalarText } from "../../base/json.ts";
import { MAX_SIGNATURES, MAX_TOLERANCE_SECONDS } from "../../base/limit.ts";
import { type Path, parsePath } from "../../platform/template/template.ts";
import {
  badSignature,
  type ParsedBody,
  type ReceivedRequest,
  rejectEveryRequest,
  unmatchedSignature,
  type Verdict,
  type Verifier,
} from "./contract.ts";
import { checkFieldCount, joinFormParams, readBodyField } from "./received-request.ts";
import {
  checkRecipe,
  DEFAULT_SEPARATOR,
  parseSignedPayload,
  type SignatureFields,
  type SignedPayload,
  signedPayloadOf,
} from "./recipe.ts";
import {
  FIRST_MILLISECOND_DIGITS,
  joinSignedText,
  readTimestamp,
  type SignatureCheck,
  type SignedText,
  trimHttpSpace,
} from "./signature-proof.ts";

const TOO_MANY_CAUSE = "the signature header lists more than 8 signatures";
const NO_SIGNATURE_CAUSE = "the signature is missing";
const LOST_DIGITS_CAUSE =
  "the body begins with digits that could belong to the timestamp, because the sender signs the two without a separator";
const NO_FORM_CAUSE = "the body is not a form post, and the sender signs the fields of a form";

/** Makes the verifier of a recipe; `check` holds the key. A recipe that breaks a rule rejects every request. */
export function prepareRecipe(fields: SignatureFields, check: SignatureCheck): Verifier {
  const payload = parseSignedPayload(signedPayloadOf(fields));
  if ("problems" in payload || checkRecipe(fields).length > 0) {
    return rejectEveryRequest("the relay's recipe breaks a rule; save its definition again");
  }
  return new RecipeVerifier(fields, payload, check);
}

interface Found {
  signatures: readonly string[];
  timestamp: Json | undefined;
}

class RecipeVerifier implements Verifier {
  readonly #fields: SignatureFields;
  readonly #payload: SignedPayload;
  readonly #check: SignatureCheck;
  readonly #signaturePath: Path | null;
  readonly #timestampPath: Path | null;
  readonly #tokenPath: Path | null;
  readonly #readsFields: boolean;
  readonly #toleranceSeconds: number;
  readonly #once: boolean;
  /** True if the body follows the timestamp in the signed text with nothing between them. */
  readonly #meetsBody: boolean;

  constructor(fields: SignatureFields, payload: SignedPayload, check: SignatureCheck) {
    this.#fields = fields;
    this.#payload = payload;
    this.#check = check;
    this.#signaturePath = pathOf(fields.signatureField);
    this.#timestampPath = pathOf(fields.timestampField);
    this.#tokenPath = pathOf(fields.tokenField);
    this.#readsFields =
      this.#signaturePath !== null || this.#timestampPath !== null || this.#tokenPath !== null;
    this.#toleranceSeconds = fields.toleranceSeconds ?? MAX_TOLERANCE_SECONDS;
    this.#once = payload.tail !== "body";
    this.#meetsBody = payload.tail === "body" && payload.head.at(-1) === "timestamp";
  }

  verify(received: ReceivedRequest): Verdict {
    const body = this.#readsFields ? received.parsed() : null;
    if (body !== null && !body.ok) return { verified: false, code: "invalid_json", cause: body.message };
    const signsForm = this.#payload.tail === "params" && received.isForm();
    const tooMany = signsForm ? checkFieldCount(received.body) : null;
    if (tooMany !== null) return { verified: false, code: "invalid_json", cause: tooMany };

    const found = this.#find(received, body);
    if (typeof found === "string") return badSignature(found);
    if (found === null) return { verified: false, code: "too_many_signatures", cause: TOO_MANY_CAUSE };

    let digits = "";
    let expiresAtMs: number | null = null;
    if (this.#payload.usesTimestamp) {
      const timestamp = readTimestamp(found.timestamp, received, this.#toleranceSeconds);
      if (typeof timestamp === "string") return badSignature(timestamp);
      digits = timestamp.digits;
      if (this.#meetsBody && mayHaveLostDigits(digits, received.body)) return badSignature(LOST_DIGITS_CAUSE);
      expiresAtMs = timestamp.expiresAtMs;
    }
    if (this.#payload.usesUrl && received.search !== "") {
      return badSignature("the request URL has text after the receiver URL, and the sender signs the URL");
    }
    if (this.#payload.tail === "params" && !signsForm) return badSignature(NO_FORM_CAUSE);
    const token = this.#payload.tail === "token" ? this.#token(body) : null;
    if (token === "") return badSignature("the token is missing from the body");

    const head = this.#head(digits, received.receiverUrl);
    let text: SignedText | null = null;
    const makeText = (): SignedText => {
      text ??= { head, tail: token === null ? this.#tail(received) : Buffer.from(token) };
      return text;
    };
    received.charge(this.#check.costUs(received.body.byteLength, found.signatures.length));
    if (!this.#check.matches(makeText, found.signatures)) {
      return unmatchedSignature(
        "the signature does not match; the secret or the recipe differs from the sender's",
      );
    }
    return {
      verified: true,
      onceText: this.#once ? joinSignedText(makeText()) : null,
      expiresAtMs,
      senderEventId: null,
    };
  }

  /**
   * Finds the signatures and the timestamp where the recipe says they are. A string is the cause where there is none; null: there are too
   * many.
   */
  #find(received: ReceivedRequest, body: ParsedBody | null): Found | string | null {
    const { header, signatureKey, timestampKey, timestampHeader } = this.#fields;
    let signatures: readonly string[];
    let timestamp: Json | undefined;
    if (header === undefined) {
      const value =
        body === null || this.#signaturePath === null ? undefined : readBodyField(body, this.#signaturePath);
      if (typeof value !== "string" || value === "") return NO_SIGNATURE_CAUSE;
      signatures = [value];
    } else {
      const value = received.header(header);
      if (value === null) return `header ${header} is missing`;
      if (signatureKey === undefined) signatures = [trimHttpSpace(value)];
      else {
        const separator = this.#fields.separator ?? DEFAULT_SEPARATOR;
        const parts = readHeaderParts(value, separator, signatureKey, timestampKey ?? null);
        if (parts === "too_many") return null;
        if (parts.signatures.length === 0) return `header ${header} has no part named ${signatureKey}`;
        signatures = parts.signatures;
        timestamp = parts.timestamp ?? undefined;
      }
    }
    if (timestampHeader !== undefined) timestamp = received.header(timestampHeader) ?? undefined;
    else if (this.#timestampPath !== null && body !== null)
      timestamp = readBodyField(body, this.#timestampPath);
    return { signatures, timestamp };
  }

  #head(digits: string, receiverUrl: string): string {
    let head = "";
    for (const piece of this.#payload.head) {
      if (piece === "timestamp") head += digits;
      else if (piece === "url") head += receiverUrl;
      else head += piece.literal;
    }
    return head;
  }

  /** Returns the bytes of {body} or {params}. */
  #tail(received: ReceivedRequest): Uint8Array {
    if (this.#payload.tail === "body") return received.body;
    const parsed = received.parsed();
    return joinFormParams(parsed.ok && parsed.form !== null ? parsed.form : []);
  }

  /** Returns the text of {token}; "" where there is none. */
  #token(body: ParsedBody | null): string {
    const token =
      body === null || this.#tokenPath === null ? undefined : readBodyField(body, this.#tokenPath);
    return (typeof token === "boolean" ? null : scalarText(token)) ?? "";
  }
}

/**
 * Reports whether the body may begin with the last digits of a timestamp in milliseconds. If the body takes them, the timestamp is one in seconds,
 * and the signed text stays the same. Such a body would begin with a digit, so its header could make JSON a form.
 */
function mayHaveLostDigits(digits: string, body: Uint8Array): boolean {
  if (digits.length >= FIRST_MILLISECOND_DIGITS) return false;
  let length = digits.length;
  for (const byte of body) {
    if (byte < 0x30 || byte > 0x39) return false;
    length += 1;
    if (length >= FIRST_MILLISECOND_DIGITS) return true;
  }
  return false;
}

function pathOf(text: string | undefined): Path | null {
  return text === undefined ? null : parsePath(text);
}

interface HeaderParts {
  /** The values named `signatureKey`, in the order received. */
  signatures: string[];
  /** The value named `timestampKey`. null: there is none, or more than one. */
  timestamp: string | null;
}

/**
 * Reads the named parts of a signature header such as `t=1768478400,v1=5c14…`. It splits on the separator; each part is a name, the first `=`, and a
 * value, which is not decoded. Names have case. Unknown and empty parts are skipped. `too_many`: more than 8 parts are named `signatureKey`. Source:
 * recipes, "Header parts".
 */
function readHeaderParts(
  header: string,
  separator: string,
  signatureKey: string,
  timestampKey: string | null,
): HeaderParts | "too_many" {
  const signatures: string[] = [];
  let timestamp: string | null = null;
  let timestamps = 0;
  for (let start = 0; start <= header.length; ) {
    const found = header.indexOf(separator, start);
    const end = found < 0 ? header.length : found;
    const part = trimHttpSpace(header.slice(start, end));
    start = end + 1;
    const equals = part.indexOf("=");
    if (equals < 0) continue;
    const name = part.slice(0, equals);
    if (name === signatureKey) {
      if (signatures.length === MAX_SIGNATURES) return "too_many";
      signatures.push(part.slice(equals + 1));
    } else if (name === timestampKey) {
      timestamps++;
      timestamp = part.slice(equals + 1);
    }
  }
  return { signatures, timestamp: timestamps === 1 ? timestamp : null };
}
