/**
 * Reads the bytes of a request's body, and the JSON of a management call: at most 1 MB, UTF-8, lossless, not nested without end. The limit
 * is enforced while reading, as the server's own 413 has no body. It never decides which fields a route takes.
 */
import { type Json, measureJson, parseJson } from "../ground/json.ts";
import { MAX_BODY_VALUES, MAX_MANAGEMENT_BODY_BYTES } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import type { BodyRoom } from "./body-room.ts";

const MAX_DEPTH = 64;

/** A body's bytes, at most so many, in a place of their own; who sends it is asked for when it has one. */
export interface BodyReader {
  room: BodyRoom;
  source(): string;
}

/** The body's value; undefined when it is empty. Refuses as `readBytes`, or with `invalid_json`. */
export async function readJsonBody(request: Request, reader: BodyReader): Promise<Json | undefined> {
  const bytes = await readBytes(request, MAX_MANAGEMENT_BODY_BYTES, reader);
  return bytes.byteLength === 0 ? undefined : parseBody(bytes);
}

/**
 * The body's bytes, at most `maxBytes`. Refuses with `body_too_large` as soon as there are more, the rest unread, with `body_incomplete`, or
 * as the room does. A declared length is read in one go; an undeclared one piece by piece.
 */
export async function readBytes(
  request: Request,
  maxBytes: number,
  { room, source }: BodyReader,
): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge(maxBytes);
  const { body } = request;
  if (body === null) return NO_BYTES;
  if (declared === null) return await room.hold(source(), maxBytes, () => readPieces(body, maxBytes));
  const length = Number(declared);
  const bytes = Number.isSafeInteger(length) && length >= 0 ? length : maxBytes;
  return await room.hold(source(), bytes, () => readWhole(request));
}

const NO_BYTES = new Uint8Array();

async function readWhole(request: Request): Promise<Uint8Array> {
  try {
    return new Uint8Array(await request.arrayBuffer());
  } catch {
    throw brokenOff();
  }
}

async function readPieces(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of unlessBrokenOff(body)) {
    length += chunk.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** What the sender sends; that it went away in the middle is its doing and no fault of the service. */
async function* unlessBrokenOff(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch {
    throw brokenOff();
  }
}

function brokenOff(): Refusal {
  return new Refusal("body_incomplete", "The request ended before its body did: send it again whole.");
}

function parseBody(bytes: Uint8Array): Json {
  // Before anything is made of it: reading a megabyte of brackets would hold up every other call.
  const { depth, values } = measureJson(bytes, { depth: MAX_DEPTH, values: MAX_BODY_VALUES });
  if (depth > MAX_DEPTH) {
    throw new Refusal(
      "invalid_json",
      `The request body is nested deeper than ${MAX_DEPTH} levels: send it flatter.`,
    );
  }
  if (values > MAX_BODY_VALUES) {
    throw new Refusal(
      "invalid_json",
      `The request body holds more than ${MAX_BODY_VALUES.toLocaleString("en")} values: send less at once.`,
    );
  }
  try {
    return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Refusal("invalid_json", "The request body is not JSON: send one JSON object in UTF-8.");
  }
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(
    "body_too_large",
    `The request body is over the limit of ${maxBytes} bytes: send less at once.`,
  );
}
