/**
 * Signs a body as the sender of a recipe does, for `relay send` and the tests. It puts the timestamp, the token and the signature where
 * the recipe reads them. Receiving a request never uses it.
 */
import { randomBytes, sign } from "node:crypto";
import { isJsonObject, type Json, type JsonObject, writeJson } from "../../base/json.ts";
import { Refusal } from "../../base/refusal.ts";
import { parsePath } from "../../platform/template/template.ts";
import type { Draft, SignedDraft } from "./contract.ts";
import { isFormBody, joinFormParams, readBodyField, receiveRequest } from "./received-request.ts";
import {
  DEFAULT_ALGORITHM,
  DEFAULT_ENCODING,
  DEFAULT_SEPARATOR,
  parseSignedPayload,
  type SignatureFields,
  type SignedPayload,
  signedPayloadOf,
} from "./recipe.ts";
import { computeHmac, type HmacHash, joinSignedText, type SignedText } from "./signature-proof.ts";

/** Signs a draft. Throws `invalid_input` for a body that cannot hold the recipe's fields. */
export function signByRecipe(fields: SignatureFields, key: string, draft: Draft): SignedDraft {
  const seconds = String(Math.floor(draft.nowMs / 1000));
  const headers: Record<string, string> = { "content-type": draft.contentType };
  const writer = new BodyWriter(draft);
  if (fields.timestampField !== undefined) writer.set(fields.timestampField, seconds);
  if (fields.timestampHeader !== undefined) headers[fields.timestampHeader] = seconds;
  if (fields.tokenField !== undefined && writer.get(fields.tokenField) === "") {
    writer.set(fields.tokenField, randomBytes(25).toString("hex"));
  }
  const signature = signText(fields, key, signedText(fields, draft.receiverUrl, seconds, writer));
  if (fields.signatureField !== undefined) writer.set(fields.signatureField, signature);
  if (fields.header !== undefined) headers[fields.header] = headerValue(fields, signature, seconds);
  return { headers, body: writer.body, search: "" };
}

function headerValue(fields: SignatureFields, signature: string, seconds: string): string {
  if (fields.signatureKey === undefined) return signature;
  const timestamp = fields.timestampKey === undefined ? [] : [`${fields.timestampKey}=${seconds}`];
  return [...timestamp, `${fields.signatureKey}=${signature}`].join(fields.separator ?? DEFAULT_SEPARATOR);
}

function signedText(
  fields: SignatureFields,
  receiverUrl: string,
  seconds: string,
  writer: BodyWriter,
): SignedText {
  const payload = parseSignedPayload(signedPayloadOf(fields));
  if ("problems" in payload) throw new Refusal("invalid_input", payload.problems.join(" "));
  const head = payload.head.map((piece) => {
    if (piece === "timestamp") return seconds;
    return piece === "url" ? receiverUrl : piece.literal;
  });
  return { head: head.join(""), tail: signedTail(payload.tail, fields, writer) };
}

function signedTail(tail: SignedPayload["tail"], fields: SignatureFields, writer: BodyWriter): Uint8Array {
  if (tail === "body") return writer.body;
  if (tail === "params") return writer.params();
  return Buffer.from(writer.get(fields.tokenField ?? ""));
}

function signText(fields: SignatureFields, key: string, text: SignedText): string {
  const algorithm = fields.algorithm ?? DEFAULT_ALGORITHM;
  const encoding = fields.encoding ?? DEFAULT_ENCODING;
  if (algorithm === "ed25519") return sign(null, joinSignedText(text), key).toString(encoding);
  if (algorithm === "ecdsa-p256-sha256") return sign("sha256", joinSignedText(text), key).toString(encoding);
  return computeHmac(algorithm.slice("hmac-".length) as HmacHash, key, text).toString(encoding);
}

/** A body whose fields can be read and set. A body in which nothing is set keeps its bytes. */
class BodyWriter {
  body: Uint8Array;
  readonly #contentType: string;

  constructor(draft: Draft) {
    this.body = draft.body;
    this.#contentType = draft.contentType;
  }

  /** Returns the field's text; "" where it is missing or not a text. */
  get(field: string): string {
    const path = parsePath(field);
    const value = path === null ? undefined : readBodyField(this.#parsed(), path);
    return typeof value === "string" ? value : "";
  }

  set(field: string, value: string): void {
    if (isFormBody(this.#contentType, this.body)) {
      const form = new URLSearchParams(this.#form().map(([name, text]) => [name, text]));
      form.set(field, value);
      this.body = Buffer.from(form.toString());
      return;
    }
    const parsed = this.#parsed();
    if (!parsed.ok || !isJsonObject(parsed.value)) throw unfit(field);
    this.body = Buffer.from(writeJson(setPath(parsed.value, field.split("."), value, field)));
  }

  params(): Uint8Array {
    return joinFormParams(this.#form());
  }

  #form(): readonly (readonly [string, string])[] {
    const parsed = this.#parsed();
    if (!parsed.ok || parsed.form === null) {
      throw new Refusal(
        "invalid_input",
        "The body is not a form post, and this recipe signs the fields of a form: send application/x-www-form-urlencoded.",
      );
    }
    return parsed.form;
  }

  #parsed() {
    const headers = new Headers({ "content-type": this.#contentType });
    return receiveRequest({ headers, body: this.body, search: "", receiverUrl: "", nowMs: 0 }).parsed();
  }
}

function setPath(root: JsonObject, segments: readonly string[], value: Json, field: string): JsonObject {
  const [first, ...rest] = segments;
  if (first === undefined) return root;
  const inner = Object.hasOwn(root, first) ? root[first] : {};
  if (rest.length > 0 && !isJsonObject(inner)) throw unfit(field);
  return { ...root, [first]: rest.length > 0 ? setPath(inner as JsonObject, rest, value, field) : value };
}

function unfit(field: string): Refusal {
  return new Refusal("invalid_input", `The body cannot contain ${field}: send a JSON object or a form.`);
}
