/**
 * Limits the changes of a plan. Development's syncs, which need no approval, have a limit for each minute, except for the sync that fills an
 * empty environment. An owner approves a change of production, so the first promote may be large. The transaction of a plan takes its changes together, so an undone plan takes none and
 * every node counts the same.
 */

import { CAP_WINDOW_MS, MAX_LARGE_PLAN_CHANGES } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Environment } from "../../platform/account/environment.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer } from "../../store/table.ts";
import { isEmptyEnvironment } from "./deployed-state.ts";
import type { ChangeCap } from "./plan-apply.ts";

type Target = Pick<Environment, "id" | "name">;

/** The last minute with changes. */
const SYNC_MINUTE = defineTable({
  name: "sync_minute",
  key: ["environmentId"],
  columns: {
    environmentId: integer(),
    beganAt: integer(),
    changes: integer(),
  },
});

/** Reports whether a plan may be large: an owner approves each plan of production, and the first sync fills an empty environment. */
async function mayBeLarge(tx: Reader, { id, name }: Target): Promise<boolean> {
  return name === "production" || (await isEmptyEnvironment(tx, id));
}

export class SyncCap {
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the most changes of one plan now. */
  async findMost(tx: Reader, target: Target): Promise<number> {
    return this.#mostOf(await mayBeLarge(tx, target));
  }

  #mostOf(isLarge: boolean): number {
    return isLarge ? Math.max(MAX_LARGE_PLAN_CHANGES, this.#limit) : this.#limit;
  }

  /** Returns the refusal that an apply of so many changes would get now; null for none. */
  async findRejection(tx: Reader, target: Target, changes: number, nowMs: number): Promise<Refusal | null> {
    const isLarge = await mayBeLarge(tx, target);
    const tooLarge = this.rejectTooLarge(changes, target, this.#mostOf(isLarge));
    if (tooLarge !== null || changes === 0 || isLarge) return tooLarge;
    const { left, beganAt } = await this.#readMinute(tx, target, nowMs);
    return changes > left ? this.#reject(changes, Math.max(0, left), beganAt + CAP_WINDOW_MS) : null;
  }

  /** Makes the cap of one apply. */
  makeCap(target: Target, nowMs: number): ChangeCap {
    return {
      take: async (tx, changes) => {
        const rejection = await this.findRejection(tx, target, changes, nowMs);
        if (rejection !== null) throw rejection;
        if (changes > 0 && !(await mayBeLarge(tx, target))) await this.#take(tx, target, changes, nowMs);
      },
    };
  }

  async #take(tx: Writer, target: Target, changes: number, nowMs: number): Promise<void> {
    const { known, left, beganAt } = await this.#readMinute(tx, target, nowMs);
    const row = { environmentId: target.id, beganAt, changes: this.#limit - left + changes };
    if (known === null) await SYNC_MINUTE.insert(tx, row);
    else await SYNC_MINUTE.update(tx, row);
  }

  /** Reads the changes that are left in the present minute. */
  async #readMinute(tx: Reader, { id: environmentId }: Target, nowMs: number) {
    const known = await SYNC_MINUTE.find(tx, { environmentId });
    const runs = known !== null && nowMs - known.beganAt < CAP_WINDOW_MS;
    // Setting the clock back neither resets the limit nor extends it beyond a minute.
    const beganAt = runs ? Math.min(known.beganAt, nowMs) : nowMs;
    return { known, left: this.#limit - (runs ? known.changes : 0), beganAt };
  }

  /** Returns the refusal for a plan with more than `most` changes; null for any other. */
  rejectTooLarge(changes: number, { name }: Pick<Target, "name">, most: number): Refusal | null {
    if (changes <= most) return null;
    const where =
      name === "production"
        ? `one approval carries ${most}`
        : most > this.#limit
          ? `the first sync into an empty environment may make ${most}`
          : `syncs may make ${most} a minute in this environment`;
    return new Refusal(
      "sync_capped",
      `The plan makes ${changes} changes, and ${where}: sync fewer files at once, or raise RELAY_LIMIT_SYNC_CHANGES_PER_MINUTE in the server's configuration.`,
    );
  }

  #reject(changes: number, left: number, resetAtMs: number): Refusal {
    return new Refusal(
      "sync_capped",
      `The plan makes ${changes === 1 ? "1 change" : `${changes} changes`}, and syncs may make ${this.#limit} a minute in this environment, of which ${left} ${left === 1 ? "is" : "are"} left: nothing was applied; retry after the time in resetAt.`,
      { resetAtMs },
    );
  }
}
