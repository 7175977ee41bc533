/**
 * Reads the bytes of a request's body, and the JSON of a management call: at most what its route takes, UTF-8, lossless, not nested without end.
 * The limit is enforced while reading, as the server's own 413 has no body. What bodies that are still arriving may hold of the memory is bounded: so
 * many bytes from one address and altogether, each body for so long. Where there is no room, those that have been arriving for long make it
 * first, so that half-sent bodies keep nobody out; else the newcomer is refused, the rest of it unread.
 */
import type { Clock } from "../../base/clock.ts";
import { holdsLongNumber, type Json, LONG_NUMBER, measureJson, parseJson } from "../../base/json.ts";
import {
  BODY_PATIENCE_MS,
  HEAVY_BODY_BYTES,
  MAX_BODIES_BYTES,
  MAX_BODIES_PER_ADDRESS_BYTES,
  MAX_BODY_VALUES,
  MIN_BODY_BYTES_PER_SECOND,
} from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { TurnQueue } from "./turn-queue.ts";

const MAX_DEPTH = 64;

/** A body's bytes, at most so many, in a place of their own; who sends it is asked for when it has one. */
export interface BodyReader {
  room: BodyRoom;
  source(): string;
}

/** The body's value, of at most `maxBytes` bytes; undefined when it is empty. Refuses as `readBytes`, or with `invalid_json`. */
export async function readJsonBody(
  request: Request,
  maxBytes: number,
  reader: BodyReader,
): Promise<Json | undefined> {
  const bytes = await readBytes(request, maxBytes, reader);
  if (bytes.byteLength === 0) return undefined;
  if (bytes.byteLength <= HEAVY_BODY_BYTES) return parseBody(bytes);
  using _place = await reader.room.waitTurn(reader.source(), bytes.byteLength);
  return parseBody(bytes);
}

/**
 * The body's bytes, at most `maxBytes`. Refuses with `body_too_large` as soon as there are more, the rest unread, with `body_incomplete`, or
 * as the room does. A declared length is read in one go; an undeclared one piece by piece.
 */
export function readBytes(
  request: Request,
  maxBytes: number,
  { room, source }: BodyReader,
): Promise<Uint8Array> | Uint8Array {
  const declared = request.headers.get("content-length");
  if (declared === null) {
    const { body } = request;
    return body === null ? NO_BYTES : room.hold(source, maxBytes, () => readPieces(body, maxBytes));
  }
  // Its stream is not asked for: making one costs more than the bytes.
  const length = Number(declared);
  if (length > maxBytes) throw tooLarge(maxBytes);
  if (length === 0) return NO_BYTES;
  const bytes = Number.isSafeInteger(length) && length > 0 ? length : maxBytes;
  return room.hold(source, bytes, () => request.bytes());
}

const NO_BYTES = new Uint8Array();

async function readPieces(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** That the sender went away in the middle is its doing and no fault of the service. */
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
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (holdsLongNumber(text))
      throw new Refusal("invalid_json", `The request body holds ${LONG_NUMBER}: send it as text.`);
    return parseJson(text);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal("invalid_json", "The request body is not JSON: send one JSON object in UTF-8.");
  }
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(
    "body_too_large",
    `The request body is over the limit of ${maxBytes} bytes: send less at once.`,
  );
}

/** What one body takes beside its bytes. */
const PLACE_BYTES = 4 * 1024;
/** A body makes room for others once an honest one would be whole: after this, and its bytes at this pace. */
const YOUNG_MS = 2_000;
const HONEST_BYTES_PER_SECOND = 128 * 1024;
const LOOK_EVERY_MS = 1_000;

interface Place {
  source: string;
  bytes: number;
  sinceMs: number;
  /** From when it makes room for others, and when it is given up. */
  oldMs: number;
  untilMs: number;
  /** Ends the waiting for the rest of the body. */
  drop(refusal: Refusal): void;
}

interface Arriving extends Pick<Place, "bytes" | "drop"> {
  source: () => string;
  place: Place | null;
  isRead: boolean;
}

export class BodyRoom {
  readonly #clock: Clock;
  readonly #turns = new TurnQueue();
  /** Begun since the loop turned. */
  #arriving: Arriving[] = [];
  /** Oldest first. */
  readonly #places = new Set<Place>();
  readonly #byAddress = new Map<string, number>();
  #bytes = 0;
  #looks = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Reads a body of at most `bytes`. One that is not there when the loop has turned takes a place of its own, and is refused with `body_capped`
   * where there is no room, or with `body_slow` when it takes too long or makes room for another; its connection can carry no other call.
   */
  hold(source: () => string, bytes: number, read: () => Promise<Uint8Array>): Promise<Uint8Array> {
    return new Promise<Uint8Array>((resolve, reject) => {
      const arriving: Arriving = { source, bytes, drop: reject, place: null, isRead: false };
      this.#await(arriving);
      const leave = (): void => {
        arriving.isRead = true;
        if (arriving.place !== null) this.#leave(arriving.place);
      };
      read().then(
        (body) => {
          leave();
          resolve(body);
        },
        (error: unknown) => {
          leave();
          reject(error instanceof Refusal ? error : brokenOff());
        },
      );
    });
  }

  /**
   * Waits for a turn of the event loop in which no other heavy body is read, the senders in rotation. The body that waits keeps a place until
   * it is disposed of, so that waiting bodies are bounded like arriving ones; refuses with `body_capped` where there is none.
   */
  async waitTurn(source: string, bytes: number): Promise<Disposable> {
    const place = this.#enter(source, bytes, () => undefined);
    Object.assign(place, { oldMs: Number.POSITIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY });
    await this.#turns.wait(source);
    return { [Symbol.dispose]: () => this.#leave(place) };
  }

  /** Most bodies come with their heads, and need neither a place nor their sender's address. */
  #await(arriving: Arriving): void {
    this.#arriving.push(arriving);
    if (this.#arriving.length > 1) return;
    setImmediate(() => {
      const begun = this.#arriving;
      this.#arriving = [];
      for (const one of begun) if (!one.isRead) this.#seat(one);
    });
  }

  #seat(arriving: Arriving): void {
    const { source, bytes, drop } = arriving;
    try {
      arriving.place = this.#enter(source(), bytes, drop);
    } catch (error) {
      drop(error as Refusal);
    }
  }

  #enter(source: string, bytes: number, drop: (refusal: Refusal) => void): Place {
    const sinceMs = this.#clock.monotonicMs();
    const size = PLACE_BYTES + bytes;
    this.#makeRoom(sinceMs, size, source);
    this.#makeRoom(sinceMs, size, null);
    const oldMs = sinceMs + YOUNG_MS + (bytes / HONEST_BYTES_PER_SECOND) * 1_000;
    const untilMs = sinceMs + BODY_PATIENCE_MS + (bytes / MIN_BODY_BYTES_PER_SECOND) * 1_000;
    const place = { source, bytes: size, sinceMs, oldMs, untilMs, drop };
    this.#places.add(place);
    this.#bytes += size;
    this.#byAddress.set(source, (this.#byAddress.get(source) ?? 0) + size);
    this.#arm();
    return place;
  }

  /** Room among the bodies of one address, or, for null, of all. */
  #makeRoom(nowMs: number, bytes: number, source: string | null): void {
    const held = (): number => (source === null ? this.#bytes : (this.#byAddress.get(source) ?? 0));
    const most = source === null ? MAX_BODIES_BYTES : MAX_BODIES_PER_ADDRESS_BYTES;
    if (held() + bytes <= most) return;
    for (const place of this.#places) {
      if (nowMs - place.sinceMs < YOUNG_MS) break;
      if (nowMs < place.oldMs || (source !== null && place.source !== source)) continue;
      this.#drop(place, "The request body arrived so slowly that others needed its room");
      if (held() + bytes <= most) return;
    }
    throw new Refusal(
      "body_capped",
      `Request bodies of more than ${most / 2 ** 20} MB are arriving ${source === null ? "altogether" : "from this address"} at once; send the request again after resetAt.`,
      { resetAtMs: this.#clock.now() + YOUNG_MS },
    );
  }

  #drop(place: Place, why: string): void {
    this.#leave(place);
    place.drop(new Refusal("body_slow", `${why}; send the request again, whole and without pauses.`));
  }

  #leave(place: Place): void {
    if (!this.#places.delete(place)) return;
    this.#bytes -= place.bytes;
    const left = (this.#byAddress.get(place.source) ?? 0) - place.bytes;
    if (left > 0) this.#byAddress.set(place.source, left);
    else this.#byAddress.delete(place.source);
  }

  /** One timer for all of them, and none while no body is arriving. */
  #arm(): void {
    if (this.#looks) return;
    this.#looks = true;
    this.#clock.after(LOOK_EVERY_MS, () => {
      this.#looks = false;
      const nowMs = this.#clock.monotonicMs();
      for (const place of this.#places) {
        if (nowMs >= place.untilMs) this.#drop(place, "The request body did not arrive in time");
      }
      if (this.#places.size > 0) this.#arm();
    });
  }
}
