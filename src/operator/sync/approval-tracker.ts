/**
 * The state of approvals that only this process's memory has: their ends by the monotonic clock, the rate of requests, and the last check
 * of each.
 */
import type { Clock } from "../../base/clock.ts";
import { APPROVAL_LIFE_MS, APPROVALS_PER_MINUTE, MINUTE_MS } from "../../base/limit.ts";
import { drawPlaces } from "../../base/limit-window.ts";
import { Limiter, type Places } from "../../base/limiter.ts";
import { Refusal } from "../../base/refusal.ts";

interface TrackedApproval {
  endsAtMonotonicMs: number;
  checkedAtMonotonicMs: number;
}

/** The interval between two checks of both sides of a pending approval, however often a caller asks. */
const CHECK_EVERY_MS = 5_000;
/** Bounds the memory. For an approval that was dropped, the wall clock decides. */
const MAX_TRACKED = 1_000;

export class ApprovalTracker {
  readonly #clock: Clock;
  readonly #asked: Limiter;
  readonly #tracked = new Map<string, TrackedApproval>();

  constructor(clock: Clock, places: Places | null = null) {
    this.#clock = clock;
    this.#asked = new Limiter(clock, APPROVALS_PER_MINUTE, MINUTE_MS, { kind: "approval", places });
  }

  /** Counts a request. Throws `approval_capped`. */
  async take(environmentId: number): Promise<void> {
    const need = { limiter: this.#asked, name: String(environmentId) };
    await drawPlaces([need]);
    const resetAtMs = this.#asked.take(need.name);
    if (resetAtMs === null) return;
    throw new Refusal(
      "approval_capped",
      `Approvals for this environment can be requested ${APPROVALS_PER_MINUTE} times a minute: retry after the time in resetAt.`,
      { resetAtMs },
    );
  }

  /**
   * Returns the milliseconds until the approval ends, 0 afterwards. Setting the wall clock back does not prolong an approval that this
   * process knows.
   */
  remainingMs({ id, expiresAt }: { id: string; expiresAt: number }): number {
    const byWall = expiresAt - this.#clock.now();
    const byMonotonic = this.#find(id, byWall).endsAtMonotonicMs - this.#clock.monotonicMs();
    return Math.max(0, Math.min(byWall, byMonotonic));
  }

  /** Reports whether both sides must be checked again. Counts as a check. */
  startCheckIfDue(row: { id: string; expiresAt: number }): boolean {
    const nowMs = this.#clock.monotonicMs();
    const watched = this.#find(row.id, row.expiresAt - this.#clock.now());
    if (nowMs - watched.checkedAtMonotonicMs < CHECK_EVERY_MS) return false;
    watched.checkedAtMonotonicMs = nowMs;
    return true;
  }

  #find(id: string, leftMs: number): TrackedApproval {
    const known = this.#tracked.get(id);
    if (known !== undefined) return known;
    const nowMs = this.#clock.monotonicMs();
    const endsAtMonotonicMs = nowMs + Math.min(Math.max(leftMs, 0), APPROVAL_LIFE_MS);
    const watched = { endsAtMonotonicMs, checkedAtMonotonicMs: Number.NEGATIVE_INFINITY };
    const [oldest] = this.#tracked.size >= MAX_TRACKED ? this.#tracked.keys() : [];
    if (oldest !== undefined) this.#tracked.delete(oldest);
    this.#tracked.set(id, watched);
    return watched;
  }
}
