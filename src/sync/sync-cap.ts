/**
 * How many changes a plan makes. Syncs of development, which nobody needs to look at, are capped by the minute; into production an owner looks
 * at the plan first, so its first promote may be as large as it is. A plan's changes are taken together or not at all.
 */
import type { Environment } from "../account/environment.ts";
import type { Clock } from "../ground/clock.ts";
import { CAP_WINDOW_MS, MAX_APPROVED_CHANGES } from "../ground/limit.ts";
import { Limiter } from "../ground/limiter.ts";
import { Refusal } from "../ground/refusal.ts";
import type { ChangeCap } from "./carry.ts";

type Target = Pick<Environment, "id" | "name">;

export class SyncCap {
  readonly #limiter: Limiter;

  constructor(clock: Clock, limit: number) {
    this.#limiter = new Limiter(clock, limit, CAP_WINDOW_MS);
  }

  /** The most changes that one plan makes there. */
  most({ name }: Pick<Target, "name">): number {
    const { limit } = this.#limiter;
    return name === "production" ? Math.max(MAX_APPROVED_CHANGES, limit) : limit;
  }

  /** What one apply takes; a transaction that runs twice takes it once, and one that fails gives it back. */
  begin(target: Target): ChangeCap & { giveBack(): void } {
    const name = String(target.id);
    let taken = 0;
    const giveBack = (): void => {
      this.#limiter.giveBack(name, taken);
      taken = 0;
    };
    return {
      giveBack,
      take: (changes) => {
        giveBack();
        const tooLarge = this.findTooLarge(changes, target);
        if (tooLarge !== null) throw tooLarge;
        if (target.name === "production") return;
        const { left, resetAtMs } = this.#limiter.room(name);
        if (changes > left) throw this.#refuse(changes, left, resetAtMs);
        if (changes > 0) this.#limiter.count(name, changes);
        taken = changes;
      },
    };
  }

  /** What a plan of more changes than any there makes is told; null for any other. */
  findTooLarge(changes: number, target: Pick<Target, "name">): Refusal | null {
    const most = this.most(target);
    if (changes <= most) return null;
    const where = target.name === "production" ? "one approval carries" : "syncs may make";
    const window = target.name === "production" ? "" : " a minute in this environment";
    return new Refusal(
      "sync_capped",
      `The plan makes ${changes} changes, and ${where} ${most}${window}: sync fewer files at once, or raise RELAY_LIMIT_SYNC_CHANGES_PER_MINUTE in the server's configuration.`,
    );
  }

  #refuse(changes: number, left: number, resetAtMs: number | null): Refusal {
    return new Refusal(
      "sync_capped",
      `The plan makes ${changes} changes, and syncs may make ${this.#limiter.limit} a minute in this environment, of which ${left} are left: nothing was applied, try again after the time in resetAt.`,
      resetAtMs === null ? {} : { resetAtMs },
    );
  }
}
