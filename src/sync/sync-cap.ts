/** How many changes syncs make of one environment in a minute. A plan's changes are taken together or not at all. */
import type { Clock } from "../ground/clock.ts";
import { CAP_WINDOW_MS } from "../ground/limit.ts";
import { Limiter } from "../ground/limiter.ts";
import { Refusal } from "../ground/refusal.ts";
import type { ChangeCap } from "./carry.ts";

export class SyncCap {
  readonly #limiter: Limiter;

  constructor(clock: Clock, limit: number) {
    this.#limiter = new Limiter(clock, limit, CAP_WINDOW_MS);
  }

  get limit(): number {
    return this.#limiter.limit;
  }

  /** What one apply takes; a transaction that runs twice takes it once, and one that fails gives it back. */
  begin(environmentId: number): ChangeCap & { giveBack(): void } {
    const name = String(environmentId);
    let taken = 0;
    const giveBack = (): void => {
      this.#limiter.giveBack(name, taken);
      taken = 0;
    };
    return {
      giveBack,
      take: (changes) => {
        giveBack();
        const { left, resetAtMs } = this.#limiter.room(name);
        if (changes > left) throw this.#refuse(changes, left, resetAtMs);
        if (changes > 0) this.#limiter.count(name, changes);
        taken = changes;
      },
    };
  }

  /** What a plan that no minute has room for is told; null for any other. */
  findTooLarge(changes: number): Refusal | null {
    return changes > this.limit ? this.#refuse(changes, this.limit, null) : null;
  }

  #refuse(changes: number, left: number, resetAtMs: number | null): Refusal {
    const what = `The plan makes ${changes} changes, and syncs may make ${this.limit} a minute in this environment`;
    if (changes > this.limit) {
      const todo =
        "sync fewer files at once, or raise RELAY_LIMIT_SYNC_CHANGES_PER_MINUTE in the server's configuration";
      return new Refusal("sync_capped", `${what}: ${todo}.`, resetAtMs === null ? {} : { resetAtMs });
    }
    return new Refusal(
      "sync_capped",
      `${what}, of which ${left} are left: nothing was applied, try again after the time in resetAt.`,
      resetAtMs === null ? {} : { resetAtMs },
    );
  }
}
