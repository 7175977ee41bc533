/**
 * Reads the bytes of a request's body, and the JSON of a management request. It enforces the route's limit, UTF-8, a maximum nesting, and
 * lossless numbers. It enforces the limit while reading, because the server's own 413 has no body. The memory of arriving bodies is bounded by
 * address, in total and in time. If the memory is used up, bodies that are late are dropped first, so that half-sent bodies cannot block others.
 * Otherwise the new body is refused, and its rest is not read.
 */
import type { Clock } from "../../base/clock.ts";
import { holdsLongNumber, type Json, longNumber, measureJson, parseJson } from "../../base/json.ts";
import {
  BODY_PATIENCE_MS,
  HEAVY_BODY_BYTES,
  MAX_BODIES_BYTES,
  MAX_BODIES_PER_ADDRESS_BYTES,
  MAX_BODY_VALUES,
  MIN_BODY_BYTES_PER_SECOND,
} from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import { formatCount } from "../../base/text.ts";
import { TurnQueue } from "./turn-queue.ts";

const MAX_DEPTH = 64;

/** The bounded memory for bodies, and the source of this one. The source is read only if the body needs its own entry. */
export interface BodyReader {
  room: BodyRoom;
  source(): string;
}

/** Returns the body's value, of at most `maxBytes` bytes, or undefined for an empty body. Refuses like `readBytes`, or with `invalid_json`. */
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
 * Returns the body's bytes. Refuses with `body_too_large` as soon as there are more than `maxBytes`, without reading the rest. Also refuses with
 * `body_incomplete`, or like `BodyRoom.hold`. It reads a body with a declared length at once, and any other in pieces.
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
  // This avoids `request.body`, because creating its stream costs more than the bytes.
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

/** Returns the refusal for a sender that disconnected before the end of its body. It is not a fault of the service. */
function brokenOff(): Refusal {
  return new Refusal(
    "body_incomplete",
    "The request ended before its body was complete: send the whole request again.",
  );
}

function parseBody(bytes: Uint8Array): Json {
  // This check precedes the parser, because parsing a megabyte of brackets would block every other request.
  const { depth, values } = measureJson(bytes, { depth: MAX_DEPTH, values: MAX_BODY_VALUES });
  if (depth > MAX_DEPTH) {
    throw new Refusal(
      "invalid_json",
      `The request body is nested deeper than ${MAX_DEPTH} levels: send a flatter body.`,
    );
  }
  if (values > MAX_BODY_VALUES) {
    throw new Refusal(
      "invalid_json",
      `The request body has more than ${formatCount(MAX_BODY_VALUES)} values: send less at once.`,
    );
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (holdsLongNumber(text))
      throw new Refusal("invalid_json", `The request body contains ${longNumber()}: send it as text.`);
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

/** Memory that one body takes in addition to its bytes. */
const PLACE_BYTES = 4 * 1024;
/** A body can be dropped for others when an honest sender would have completed it: after this time, and its bytes at the rate below. */
const YOUNG_MS = 2_000;
const HONEST_BYTES_PER_SECOND = 128 * 1024;
const LOOK_EVERY_MS = 1_000;

interface Place {
  source: string;
  bytes: number;
  sinceMs: number;
  /** The time from which it can be dropped for others. `untilMs` is the time when it is dropped in any case. */
  oldMs: number;
  untilMs: number;
  /** Stops waiting for the rest of the body. */
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
  /** Bodies that began in this turn of the event loop. */
  #arriving: Arriving[] = [];
  /** The entries of arriving bodies, oldest first. */
  readonly #places = new Set<Place>();
  readonly #byAddress = new Map<string, number>();
  #bytes = 0;
  #looks = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Reads a body of at most `bytes`. If it is incomplete after one turn of the event loop, it gets an entry. Refuses with `body_capped` if the
   * memory is used up. Refuses with `body_slow` if it takes too long or is dropped for another body. Its connection can then carry no other
   * request.
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
   * Waits for a turn of the event loop in which no other heavy body is read. Senders take turns. The body has an entry until it is disposed, so
   * that waiting bodies are bounded like arriving ones. Refuses with `body_capped` if the memory is used up.
   */
  async waitTurn(source: string, bytes: number): Promise<Disposable> {
    const place = this.#enter(source, bytes, () => undefined);
    Object.assign(place, { oldMs: Number.POSITIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY });
    await this.#turns.wait(source);
    return { [Symbol.dispose]: () => this.#leave(place) };
  }

  /** Delays the entry by one turn. Most bodies arrive with their headers, and need neither an entry nor their sender's address. */
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

  /** Frees memory among the bodies of one address, or of all addresses if `source` is null. */
  #makeRoom(nowMs: number, bytes: number, source: string | null): void {
    const held = (): number => (source === null ? this.#bytes : (this.#byAddress.get(source) ?? 0));
    const most = source === null ? MAX_BODIES_BYTES : MAX_BODIES_PER_ADDRESS_BYTES;
    if (held() + bytes <= most) return;
    for (const place of this.#places) {
      if (nowMs - place.sinceMs < YOUNG_MS) break;
      if (nowMs < place.oldMs || (source !== null && place.source !== source)) continue;
      this.#drop(place, "The request body arrived too slowly, and other requests needed the memory");
      if (held() + bytes <= most) return;
    }
    throw new Refusal(
      "body_capped",
      `Request bodies of more than ${most / 2 ** 20} MB are arriving ${source === null ? "altogether" : "from this address"} at once. Send the request again after resetAt.`,
      { resetAtMs: this.#clock.now() + YOUNG_MS },
    );
  }

  #drop(place: Place, why: string): void {
    this.#leave(place);
    place.drop(new Refusal("body_slow", `${why}. Send the whole request again, without pauses.`));
  }

  #leave(place: Place): void {
    if (!this.#places.delete(place)) return;
    this.#bytes -= place.bytes;
    const left = (this.#byAddress.get(place.source) ?? 0) - place.bytes;
    if (left > 0) this.#byAddress.set(place.source, left);
    else this.#byAddress.delete(place.source);
  }

  /** Starts one timer for all bodies. There is none while no body is arriving. */
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
