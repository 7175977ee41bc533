/**
 * Coalesces equal requests of one relay and network into one row of the request log, so that a flood pushes nothing out of it. A row can grow in
 * later writes. A pause, or an hour, begins another row.
 */
import { HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import { withoutDetails } from "../../base/text.ts";
import type { RecentRequest } from "./request.ts";

/** A longer pause between equal requests begins another row. A sender's retries are further apart, and a flood under a cap of a minute is not. */
const MAX_PAUSE_MS = 2 * MINUTE_MS;
const MAX_FOLD_MS = HOUR_MS;
/** The most networks of one kind of request. The others share one row. */
const MAX_NETWORKS = 20;
/** The most groups. Beyond these, requests of one kind share one row for all networks. */
const MAX_FOLDS = 2_000;
/** The most causes that are cached. */
const MAX_CAUSES = 500;

/** A group of equal requests, which is one row. */
interface Fold {
  /** The row's number; null before it is written. */
  seq: number | null;
  /** The part that is not written yet. */
  waiting: CoalescedRequest | null;
  firstAt: number;
  at: number;
  kind: string;
}

/** `count` is what it adds to the group's row. A null `fold` means a separate row. */
export interface CoalescedRequest extends RecentRequest {
  fold: Fold | null;
}

/** Strips the details from causes, and caches the results, because a flood repeats the same cause. */
export class PlainCauses {
  readonly #plain = new Map<string, string>();

  strip(cause: string): string {
    const known = this.#plain.get(cause);
    if (known !== undefined) return known;
    const plain = withoutDetails(cause);
    if (this.#plain.size >= MAX_CAUSES) this.#plain.clear();
    this.#plain.set(cause, plain);
    return plain;
  }
}

export class RequestCoalescer {
  readonly #causes: PlainCauses;
  readonly #folds = new Map<string, Fold>();
  /** The number of groups by kind. */
  readonly #networks = new Map<string, number>();

  constructor(causes = new PlainCauses()) {
    this.#causes = causes;
  }

  /** Returns the request to write, or null where a waiting one already counts it. With `isCapped`, all requests of an address are equal. */
  add(request: RecentRequest, isCapped: boolean): CoalescedRequest | null {
    if (request.outcome === "duplicate") return { ...request, fold: null };
    const { environmentId, relayName, outcome, code, at } = request;
    const cause = isCapped ? "" : outcome === "ignored" ? request.cause : this.#causes.strip(request.cause);
    const others = (request.followers ?? []).map((one) => `${one.relay} ${one.cause}`).join(" ");
    const kind = `${environmentId} ${relayName} ${code} ${cause}${others}`;
    let key = `${kind} ${outcome === "ignored" ? "" : networkOf(request.source)}`;
    let known = this.#folds.get(key);
    if (known === undefined && this.#isFull(kind)) {
      key = kind;
      known = this.#folds.get(key);
    }
    if (known !== undefined && goesOn(known, at)) {
      known.at = at;
      const { waiting } = known;
      if (waiting === null) {
        known.waiting = { ...request, firstAt: known.firstAt, fold: known };
        return known.waiting;
      }
      waiting.at = at;
      waiting.cause = request.cause;
      waiting.source = request.source;
      waiting.count += request.count;
      waiting.claimed = request.claimed ?? waiting.claimed ?? null;
      return null;
    }
    const fold: Fold = { seq: null, waiting: null, firstAt: at, at, kind };
    fold.waiting = { ...request, fold };
    if (known === undefined) this.#networks.set(kind, (this.#networks.get(kind) ?? 0) + 1);
    this.#folds.set(key, fold);
    return fold.waiting;
  }

  #isFull(kind: string): boolean {
    return (this.#networks.get(kind) ?? 0) >= MAX_NETWORKS || this.#folds.size >= MAX_FOLDS;
  }

  /** Forgets the groups that can no longer grow. */
  prune(nowMs: number): void {
    for (const [key, fold] of this.#folds) {
      if (fold.waiting !== null || goesOn(fold, nowMs)) continue;
      this.#folds.delete(key);
      const left = (this.#networks.get(fold.kind) ?? 1) - 1;
      if (left === 0) this.#networks.delete(fold.kind);
      else this.#networks.set(fold.kind, left);
    }
  }
}

function goesOn({ firstAt, at }: Fold, nowMs: number): boolean {
  return nowMs >= at && nowMs - at <= MAX_PAUSE_MS && nowMs - firstAt <= MAX_FOLD_MS;
}

/** The network of an address: the first three numbers of IPv4. IPv6 is counted by its first half, so its network is three quarters of that. */
function networkOf(source: string): string {
  const v6 = source.indexOf(":") >= 0;
  const end = v6 ? /^(?:[^:]*:){3}/.exec(source)?.[0].length : source.lastIndexOf(".");
  return end === undefined || end < 0 ? source : source.slice(0, end);
}
