/**
 * Verifies a notice: a request that Relay posts to your server for an action `call_url`. It is one ES module without dependencies. It uses only
 * WebCrypto, so it runs in Node, Bun, Deno, workers and browsers. Types: types.d.ts.
 *
 *   import { VerificationError, verify } from "relay-service-verifier";
 *   const notice = await verify({ body, headers, secret });
 */

/** @import { Notice, VerificationCode, VerifyOptions } from "./types.d.ts" */

const HEADER = "x-service-signature";
const DEFAULT_TOLERANCE_SECONDS = 300;

export class VerificationError extends Error {
  /**
   * @param {VerificationCode} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = "VerificationError";
    this.code = code;
  }
}

/** @type {(options: VerifyOptions) => Promise<Notice>} */
export async function verify({ body, headers, secret, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS }) {
  const secrets = readSecrets(secret);
  const bytes = readBody(body);
  if (typeof toleranceSeconds !== "number" || !(toleranceSeconds >= 0))
    throw new TypeError("toleranceSeconds must be a number of seconds, 0 or more.");
  const { sentAt, signatures } = readSignatures(headers);
  if (!(await matchesAny(secrets, signatures, join(`${sentAt}.`, bytes))))
    throw new VerificationError(
      "signature_mismatch",
      "No secret matches a signature: pass the body exactly as it arrived, and the signing secret of the relay.",
    );
  checkAge(Number(sentAt), toleranceSeconds);
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** @param {VerifyOptions["secret"]} secret */
function readSecrets(secret) {
  const secrets = (Array.isArray(secret) ? secret : [secret])
    .map((one) => (one === undefined ? "" : readSecret(one)))
    .filter((one) => one !== "");
  if (secrets.length === 0)
    throw new TypeError(
      "secret is empty: pass the signing secret of the relay, for example from an environment variable.",
    );
  return secrets;
}

/**
 * Removes the line break that files and variables often end with. No secret begins or ends with a space.
 * @param {unknown} secret
 */
function readSecret(secret) {
  if (typeof secret !== "string") throw new TypeError("secret must be a text, or a list of texts.");
  return secret.trim();
}

/**
 * Copies the bytes, because the caller can reuse its buffer while a signature is checked.
 * @param {unknown} body
 */
function readBody(body) {
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body).slice();
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
  throw new TypeError(
    "body must be the raw body as text or bytes: read it before any JSON parser, because a parsed body has lost the signed text.",
  );
}

/**
 * Reads the time and the signatures. During the overlap of a rotation, a notice has a signature of each secret.
 * @param {VerifyOptions["headers"]} headers
 */
function readSignatures(headers) {
  const value = readHeader(headers);
  if (value === null)
    throw new VerificationError(
      "signature_missing",
      "The request has no header X-Service-Signature: it does not come from Relay, or a proxy removed the header.",
    );
  const match = /^t=([0-9]{1,13})((?:,v1=[0-9a-f]{64}){1,8})$/.exec(value);
  if (match === null)
    throw new VerificationError(
      "signature_malformed",
      "The header X-Service-Signature must have the form t=<seconds>,v1=<64 hex digits>, exactly once, with at most 8 parts v1.",
    );
  const [, sentAt = "", parts = ""] = match;
  return { sentAt, signatures: parts.split(",v1=").slice(1).map(readHex) };
}

/** @param {string} hex */
function readHex(hex) {
  return Uint8Array.from({ length: 32 }, (_, index) =>
    Number.parseInt(hex.slice(2 * index, 2 * index + 2), 16),
  );
}

/**
 * Returns the header's value, or null if there is none. Several values are joined with a comma, which no single signature has.
 * @param {VerifyOptions["headers"]} headers
 */
function readHeader(headers) {
  if (typeof headers !== "object" || headers === null)
    throw new TypeError("headers must be the headers of the request: a Headers object or a plain object.");
  if (isReader(headers)) return headers.get(HEADER) ?? null;
  const values = Object.entries(headers)
    .filter(([name]) => name.toLowerCase() === HEADER)
    .flatMap(([, value]) => value ?? []);
  return values.length === 0 ? null : values.join(", ");
}

/**
 * @param {VerifyOptions["headers"]} headers
 * @returns {headers is { get(name: string): string | null | undefined }}
 */
function isReader(headers) {
  return typeof headers.get === "function";
}

/**
 * @param {string} text
 * @param {Uint8Array} bytes
 */
function join(text, bytes) {
  const start = new TextEncoder().encode(text);
  const joined = new Uint8Array(start.length + bytes.length);
  joined.set(start);
  joined.set(bytes, start.length);
  return joined;
}

/**
 * Compares each signature with each secret. WebCrypto compares in constant time.
 * @param {readonly string[]} secrets
 * @param {readonly Uint8Array<ArrayBuffer>[]} signatures
 * @param {Uint8Array<ArrayBuffer>} signed
 */
async function matchesAny(secrets, signatures, signed) {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle === undefined)
    throw new Error(
      "This runtime has no WebCrypto (crypto.subtle): use Node 20 or later, or a page that is served with https.",
    );
  for (const secret of secrets) {
    const text = new TextEncoder().encode(secret);
    const key = await subtle.importKey("raw", text, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures) if (await subtle.verify("HMAC", key, signature, signed)) return true;
  }
  return false;
}

/**
 * @param {number} sentAt
 * @param {number} toleranceSeconds
 */
function checkAge(sentAt, toleranceSeconds) {
  const age = Date.now() / 1000 - sentAt;
  if (Math.abs(age) <= toleranceSeconds) return;
  const seconds = Math.ceil(Math.abs(age));
  throw new VerificationError(
    age > 0 ? "too_old" : "too_new",
    `The request was signed ${seconds} seconds ${age > 0 ? "ago" : "ahead of this clock"}, and ${toleranceSeconds} are allowed: check the clock of this server. Otherwise the request is a repeated one.`,
  );
}
