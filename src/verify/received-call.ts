/**
 * A received call as the schemes see it: headers, the bytes, and the body parsed once, on demand. It decides what counts as a form
 * and what as JSON; it never decides whether a call is genuine, and nothing a caller sends makes it throw.
 * Source: the specification's "Triggers" (receiver); recipes, "Reading the event".
 */
import { type Json, parseJson } from "../ground/json.ts";
import { type Path, readField, readPath } from "../template/path.ts";
import type { ParsedBody, ReceivedCall } from "./contract.ts";

const FORM_TYPE = "application/x-www-form-urlencoded";

/** Deeper JSON is refused as `invalid_json`: it could be read, but not safely walked or written again. */
export const MAX_JSON_DEPTH = 500;

const jsonText = new TextDecoder("utf-8", { fatal: true });
const formText = new TextDecoder("utf-8", { ignoreBOM: true });

export interface CallParts {
  headers: Headers;
  body: Uint8Array;
  /** What followed the path, "?" included; "" when nothing was appended. */
  search: string;
  receiverUrl: string;
  nowMs: number;
}

/** Wraps a call; the body is parsed at the first `parsed()` and never again. */
export function receiveCall(parts: CallParts): ReceivedCall {
  return new Call(parts);
}

class Call implements ReceivedCall {
  readonly body: Uint8Array;
  readonly search: string;
  readonly receiverUrl: string;
  readonly nowMs: number;
  readonly #headers: Headers;
  #parsed: ParsedBody | null = null;

  constructor(parts: CallParts) {
    this.body = parts.body;
    this.search = parts.search;
    this.receiverUrl = parts.receiverUrl;
    this.nowMs = parts.nowMs;
    this.#headers = parts.headers;
  }

  header(name: string): string | null {
    return this.#headers.get(name);
  }

  parsed(): ParsedBody {
    this.#parsed ??= isFormType(this.#headers.get("content-type"))
      ? parseForm(this.body)
      : parseBody(this.body);
    return this.#parsed;
  }
}

/** Whether a content-type names an urlencoded form, parameters such as charset aside. */
export function isFormType(contentType: string | null): boolean {
  if (contentType === null || contentType.length < FORM_TYPE.length) return false;
  const end = contentType.indexOf(";");
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase() === FORM_TYPE;
}

function parseBody(body: Uint8Array): ParsedBody {
  try {
    const text = jsonText.decode(body);
    if (text.length > 2 * MAX_JSON_DEPTH && nestsTooDeep(text)) {
      return {
        ok: false,
        message: `The body is JSON nested deeper than ${MAX_JSON_DEPTH} levels: send a flatter event.`,
      };
    }
    return { ok: true, value: parseJson(text), form: null };
  } catch {
    return { ok: false, message: "The body is not JSON in UTF-8: send JSON, or a form as a form post." };
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function nestsTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (inString) {
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) inString = false;
    } else if (char === QUOTE) inString = true;
    // "[" 0x5b and "{" 0x7b, "]" 0x5d and "}" 0x7d
    else if (char === 0x5b || char === 0x7b) {
      if (++depth > MAX_JSON_DEPTH) return true;
    } else if (char === 0x5d || char === 0x7d) depth--;
  }
  return false;
}

/** Decodes as the WHATWG urlencoded parser does (`+` is a space, UTF-8); it accepts any bytes. A repeated name is a list. */
function parseForm(body: Uint8Array): ParsedBody {
  const text = formText.decode(body);
  // URLSearchParams drops a leading "?", which in a body belongs to the first name.
  const form = [...new URLSearchParams(text.startsWith("?") ? `&${text}` : text)];
  const fields = new Map<string, Json>();
  for (const [name, value] of form) {
    const before = fields.get(name);
    if (before === undefined) fields.set(name, value);
    else if (Array.isArray(before)) before.push(value);
    else fields.set(name, [before, value]);
  }
  // fromEntries defines own properties, so that a field named __proto__ is a field like any other.
  return { ok: true, value: Object.fromEntries(fields), form };
}

/** What a path names in a body: in a form, a field whose literal name is the whole path wins. Undefined when it names nothing. */
export function readBodyField(body: ParsedBody, path: Path): Json | undefined {
  if (!body.ok) return undefined;
  return body.form === null ? readPath(body.value, path) : readField(body.value, path);
}
