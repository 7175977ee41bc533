/**
 * A received request as the schemes read it: headers, bytes, and the body parsed once, when it is needed. The bytes decide whether the
 * body is JSON or a form. Nothing here decides whether a request is genuine, and no input makes it throw. Source: the specification's
 * "Triggers" (receiver); recipes, "Reading the event" and "The body's kind is never the header's word".
 */
import { holdsLongNumber, type Json, longNumber, measureJson, parseJson } from "../../base/json.ts";
import { MAX_FORM_FIELDS } from "../../base/limit.ts";
import { formatCount } from "../../base/text.ts";
import { type Path, readField, readPath } from "../../platform/template/template.ts";
import type { BodyKinds, ParsedBody, ReceivedRequest } from "./contract.ts";

const FORM_TYPE = "application/x-www-form-urlencoded";

/** Deeper JSON is rejected as `invalid_json`, because walking or rewriting it is not safe. */
const MAX_BODY_DEPTH = 500;

/** The highest measured cost of reading a kilobyte of JSON, and of a form. */
const JSON_US_PER_KB = 80;
const FORM_US_PER_KB = 15;

const jsonText = new TextDecoder("utf-8", { fatal: true });
const formText = new TextDecoder("utf-8", { ignoreBOM: true });

/** The bytes of a request and their parsed forms, shared by all relays that the request may belong to. */
export class ReceivedBody {
  readonly bytes: Uint8Array;
  readonly #mayBeForm: boolean;
  readonly #charge: (microseconds: number) => void;
  #json: ParsedBody | null = null;
  #form: ParsedBody | null = null;

  /** `charge` gets the work before it is done, and may throw to reject the request. */
  constructor(bytes: Uint8Array, contentType: string | null, charge: (microseconds: number) => void) {
    this.bytes = bytes;
    this.#mayBeForm = isFormBody(contentType, bytes);
    this.#charge = charge;
  }

  isForm(kinds: BodyKinds): boolean {
    return this.#mayBeForm && kinds !== "json";
  }

  parsed(kinds: BodyKinds): ParsedBody {
    if (this.isForm(kinds)) {
      this.#form ??= this.#read(FORM_US_PER_KB, parseForm);
      return this.#form;
    }
    this.#json ??= this.#read(JSON_US_PER_KB, parseBody);
    return this.#json;
  }

  charge(microseconds: number): void {
    this.#charge(microseconds);
  }

  #read(usPerKb: number, parse: (bytes: Uint8Array) => ParsedBody): ParsedBody {
    this.#charge((this.bytes.byteLength / 1024) * usPerKb);
    return parse(this.bytes);
  }
}

interface RequestParts {
  headers: Headers;
  body: Uint8Array | ReceivedBody;
  /** The kinds of body that the relay's scheme reads; both kinds when absent. */
  kinds?: BodyKinds;
  /** The part of the URL after the path, "?" included; "" if there is none. */
  search: string;
  receiverUrl: string;
  nowMs: number;
  isOld?: boolean;
}

/** Wraps a request. The body is parsed at the first `parsed()` and never again. */
export function receiveRequest(parts: RequestParts): ReceivedRequest {
  const { headers, body, kinds = "json_or_form", search, receiverUrl, nowMs, isOld = false } = parts;
  const read =
    body instanceof ReceivedBody
      ? body
      : new ReceivedBody(body, headers.get("content-type"), () => undefined);
  return {
    search,
    receiverUrl,
    nowMs,
    isOld,
    body: read.bytes,
    header: (name) => headers.get(name),
    isForm: () => read.isForm(kinds),
    parsed: () => read.parsed(kinds),
    charge: (microseconds) => read.charge(microseconds),
  };
}

/**
 * Reports whether a body is a form: its header says so, and it does not begin as a JSON object or list. Nothing signs the header, so a body that was
 * signed as JSON must never be read as a form.
 */
export function isFormBody(contentType: string | null, body: Uint8Array): boolean {
  return isFormType(contentType) && !beginsAsJson(body);
}

/** Reports whether a content-type names an urlencoded form, with or without parameters. */
function isFormType(contentType: string | null): boolean {
  if (contentType === null || contentType.length < FORM_TYPE.length) return false;
  const end = contentType.indexOf(";");
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase() === FORM_TYPE;
}

/** Reports whether "{" or "[" comes first, after a byte order mark and JSON's white space. */
function beginsAsJson(body: Uint8Array): boolean {
  let at = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
  while (body[at] === 0x20 || body[at] === 0x0a || body[at] === 0x0d || body[at] === 0x09) at++;
  return body[at] === 0x7b || body[at] === 0x5b;
}

function parseBody(body: Uint8Array): ParsedBody {
  try {
    const text = jsonText.decode(body);
    if (body.length > 2 * MAX_BODY_DEPTH && nestsTooDeep(body)) {
      return {
        ok: false,
        message: `The body is JSON nested deeper than ${MAX_BODY_DEPTH} levels: send a flatter event.`,
      };
    }
    if (holdsLongNumber(text))
      return { ok: false, message: `The body contains ${longNumber()}: send it as text.` };
    return { ok: true, value: parseJson(text), form: null, text };
  } catch {
    return { ok: false, message: "The body is not JSON in UTF-8: send JSON, or a form as a form post." };
  }
}

function nestsTooDeep(body: Uint8Array): boolean {
  const most = { depth: MAX_BODY_DEPTH, values: Number.POSITIVE_INFINITY };
  return measureJson(body, most).depth > MAX_BODY_DEPTH;
}

const AMPERSAND = 0x26;

/** Returns the message for a form with too many fields, or null. Counts the fields without decoding them. */
export function checkFieldCount(body: Uint8Array): string | null {
  let fields = 0;
  for (let at = 0; at < body.length; at++) {
    if (body[at] !== AMPERSAND && (at === 0 || body[at - 1] === AMPERSAND)) fields++;
  }
  if (fields <= MAX_FORM_FIELDS) return null;
  return `The form has more than ${formatCount(MAX_FORM_FIELDS)} fields, the limit of a receiver: send fewer fields, or JSON.`;
}

/** Decodes a form as the WHATWG urlencoded parser does, from any bytes. A repeated name becomes a list. */
function parseForm(body: Uint8Array): ParsedBody {
  const message = checkFieldCount(body);
  if (message !== null) return { ok: false, message };
  const text = formText.decode(body);
  // URLSearchParams drops a leading "?", which belongs to the first name in a body.
  const form = [...new URLSearchParams(text.startsWith("?") ? `&${text}` : text)];
  const fields = new Map<string, Json>();
  for (const [name, value] of form) {
    const before = fields.get(name);
    if (before === undefined) fields.set(name, value);
    else if (Array.isArray(before)) before.push(value);
    else fields.set(name, [before, value]);
  }
  // fromEntries defines own properties, so a field named __proto__ is an ordinary field.
  return { ok: true, value: Object.fromEntries(fields), form };
}

/** Reads a path in a body. In a form, a field whose name is the complete path comes first. undefined: there is no such value. */
export function readBodyField(body: ParsedBody, path: Path): Json | undefined {
  if (!body.ok) return undefined;
  return body.form === null ? readPath(body.value, path) : readField(body.value, path);
}

/**
 * Makes the text of {params}: a form's decoded fields sorted by name in code units, each as name and value with nothing between. A
 * repeated name gives its distinct values, sorted. Source: recipes, "The signed text".
 */
export function joinFormParams(form: readonly (readonly [name: string, value: string])[]): Buffer {
  const values = new Map<string, Set<string>>();
  for (const [name, value] of form) {
    const known = values.get(name);
    if (known === undefined) values.set(name, new Set([value]));
    else known.add(value);
  }
  let text = "";
  for (const name of [...values.keys()].sort()) {
    for (const value of [...(values.get(name) ?? [])].sort()) text += name + value;
  }
  return Buffer.from(text);
}
