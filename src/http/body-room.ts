/**
 * How much of the memory bodies that are still arriving may hold: so many bytes from one address and altogether, each body for so long.
 * Where there is no room, those that have been arriving for long make it first, so that half-sent bodies keep nobody out; else the newcomer
 * is refused before a byte of it is read. It reads nothing itself.
 */
import type { Clock } from "../ground/clock.ts";
import {
  BODY_PATIENCE_MS,
  MAX_BODIES_BYTES,
  MAX_BODIES_PER_ADDRESS_BYTES,
  MIN_BODY_BYTES_PER_SECOND,
} from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";

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

export class BodyRoom {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #places = new Set<Place>();
  readonly #byAddress = new Map<string, number>();
  #bytes = 0;
  #looks = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Reads a body of at most `bytes` in a place of its own. Refuses with `body_capped` where there is no room, or with `body_slow` one that
   * takes too long or makes room for another; the connection of such a body can carry no other call.
   */
  hold<Body>(source: string, bytes: number, read: () => Promise<Body>): Promise<Body> {
    return new Promise<Body>((resolve, reject) => {
      const place = this.#enter(source, bytes, reject);
      const leave = (): void => this.#leave(place);
      read().then(
        (body) => {
          leave();
          resolve(body);
        },
        (error: unknown) => {
          leave();
          reject(error as Error);
        },
      );
    });
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
