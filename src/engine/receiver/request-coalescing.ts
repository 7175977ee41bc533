/**
 * Which recent calls are one row: equal ones of one relay that follow each other, whatever address of a network they come from, so that a flood
 * pushes nothing out of the log. Rows that a second wrote are gone on with in the next; a pause, or an hour, begins another row.
 */
import { HOUR_MS, MINUTE_MS } from "../../base/limit.ts";
import { withoutDetails } from "../../base/text.ts";
import type { RecentRequest } from "./request.ts";

/** Equal calls further apart than this are told apart: a sender's own retries are, and a flood under a cap of a minute is not. */
const MAX_PAUSE_MS = 2 * MINUTE_MS;
const MAX_FOLD_MS = HOUR_MS;
/** Networks that are told apart for one kind of call at a time; those beyond them are one. */
const MAX_NETWORKS = 20;
/** Folds at a time; beyond them calls of one kind are one, whatever their network. */
const MAX_FOLDS = 2_000;
/** Causes that are kept read. */
const MAX_CAUSES = 500;

/** Calls that are one row. */
interface Fold {
  /** The row's number, once it is written. */
  seq: number | null;
  /** What is not written yet of it. */
  waiting: CoalescedRequest | null;
  firstAt: number;
  at: number;
  kind: string;
}

/** `count`: how many it adds to its fold's row. `fold` null: a row of its own. */
export interface CoalescedRequest extends RecentRequest {
  fold: Fold | null;
}

/** Causes without their details: they are few, and a flood has the same one with each call. */
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
  /** Folds by kind. */
  readonly #networks = new Map<string, number>();

  constructor(causes = new PlainCauses()) {
    this.#causes = causes;
  }

  /** The call as it has to be written; null: one that waits already stands for it too. `isCapped`: what its address tried is all the same. */
  add(call: RecentRequest, isCapped: boolean): CoalescedRequest | null {
    if (call.outcome === "duplicate") return { ...call, fold: null };
    const { environmentId, relayName, outcome, code, at } = call;
    const cause = isCapped ? "" : outcome === "ignored" ? call.cause : this.#causes.strip(call.cause);
    const kind = `${environmentId} ${relayName} ${code} ${cause}`;
    let key = `${kind} ${outcome === "ignored" ? "" : networkOf(call.source)}`;
    let known = this.#folds.get(key);
    if (known === undefined && this.#isFull(kind)) {
      key = kind;
      known = this.#folds.get(key);
    }
    if (known !== undefined && goesOn(known, at)) {
      known.at = at;
      const { waiting } = known;
      if (waiting === null) {
        known.waiting = { ...call, firstAt: known.firstAt, fold: known };
        return known.waiting;
      }
      waiting.at = at;
      waiting.cause = call.cause;
      waiting.source = call.source;
      waiting.count += call.count;
      return null;
    }
    const fold: Fold = { seq: null, waiting: null, firstAt: at, at, kind };
    fold.waiting = { ...call, fold };
    if (known === undefined) this.#networks.set(kind, (this.#networks.get(kind) ?? 0) + 1);
    this.#folds.set(key, fold);
    return fold.waiting;
  }

  #isFull(kind: string): boolean {
    return (this.#networks.get(kind) ?? 0) >= MAX_NETWORKS || this.#folds.size >= MAX_FOLDS;
  }

  /** Forgets those that nothing goes on with. */
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

/** The first three numbers of an IPv4 address; of IPv6, which is counted by its first half, the first three quarters of that. */
function networkOf(source: string): string {
  const v6 = source.indexOf(":") >= 0;
  const end = v6 ? /^(?:[^:]*:){3}/.exec(source)?.[0].length : source.lastIndexOf(".");
  return end === undefined || end < 0 ? source : source.slice(0, end);
}
