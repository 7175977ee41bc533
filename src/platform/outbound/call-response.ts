/**
 * Stores these parts of a response: its status, headers whose names suggest no secret, and at most 4 KB of its body as valid UTF-8. A compressed body
 * is not unpacked, because the request asked for none.
 */
import { MAX_KEPT_ANSWER_BYTES, MAX_KEPT_HEADER_CHARS } from "../../base/limit.ts";
import { cutToLine, cutUtf8 } from "../../base/text.ts";

const MAX_HEADERS = 24;
const MAX_HEADER_CHARS = 200;
const HEADER_NAME = /^[a-z0-9-]{1,64}$/;
/** Headers with such a name may grant access, or are long and say nothing about the call. */
const OMITTED_HEADER =
  /cookie|auth|token|secret|key|sign|session|credential|passw|csrf|xsrf|jwt|nonce|assertion|otp|^content-security-policy|^report-to$|^nel$/;
/** The query of a URL, and the user name before its host. */
const QUERY = /[?#][^\s,;<>"']*/g;
const USER = /\/\/[^\s/@]*@/g;

type CallResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export class CallResponse {
  readonly status: number;
  readonly #headers: CallResponseHeaders;
  readonly #coding: string | null;
  readonly #chunks: Uint8Array[] = [];
  #size = 0;

  constructor(status: number, headers: CallResponseHeaders) {
    this.status = status;
    this.#headers = headers;
    const coding = headerText(headers, "content-encoding").trim().toLowerCase();
    this.#coding = coding === "" || coding === "identity" ? null : cutUtf8(coding, 40);
  }

  /** The stored headers, by lower-case name in order of arrival. */
  get headers(): Readonly<Record<string, string>> {
    const entries: [name: string, value: string][] = [];
    let left = MAX_KEPT_HEADER_CHARS;
    for (const name of Object.keys(this.#headers)) {
      if (entries.length === MAX_HEADERS) break;
      if (!HEADER_NAME.test(name) || OMITTED_HEADER.test(name)) continue;
      const value = shownValue(headerText(this.#headers, name));
      if (name.length + value.length > left) continue;
      left -= name.length + value.length;
      entries.push([name, value]);
    }
    return Object.fromEntries(entries);
  }

  /** Appends the next bytes of the body. */
  append(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#size += chunk.byteLength;
  }

  /** True once no further bytes would be stored. */
  get isComplete(): boolean {
    return this.#coding !== null || this.#size > MAX_KEPT_ANSWER_BYTES;
  }

  /** The stored text of the body so far. */
  get body(): string {
    if (this.#coding !== null) return `[a ${this.#coding} compressed answer, not kept]`;
    const bytes = Buffer.concat(this.#chunks).subarray(0, MAX_KEPT_ANSWER_BYTES);
    const isCut = this.#size > MAX_KEPT_ANSWER_BYTES;
    const text = decoderOf(headerText(this.#headers, "content-type")).decode(bytes, { stream: isCut });
    return cutUtf8(text.replaceAll("\0", "\ufffd"), MAX_KEPT_ANSWER_BYTES);
  }
}

/** Removes the query of a URL, which may be as sensitive as a password. */
function shownValue(value: string): string {
  return cutToLine(value, MAX_HEADER_CHARS).replace(QUERY, "?…").replace(USER, "//…@");
}

/** Returns the decoder of the declared charset, or UTF-8 if none is declared or known. */
function decoderOf(contentType: string): TextDecoder {
  const charset = /;\s*charset="?([\w-]{1,40})/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset as "utf-8");
  } catch {
    return new TextDecoder();
  }
}

function headerText(headers: CallResponseHeaders, name: string): string {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : (value ?? "");
}
