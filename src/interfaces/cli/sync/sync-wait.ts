/** Waits for other syncs of the same environment (`--wait`). Without it, a command fails as soon as another sync comes between. */
import { sleep } from "../../../base/clock.ts";
import { APPROVAL_LIFE_MS } from "../../../base/limit.ts";
import { Refusal } from "../../../base/refusal.ts";
import type { Remote } from "../api/remote.ts";
import { CommandFailure, type Input, type Option } from "../command.ts";
import type { Io } from "../io.ts";

export const WAIT: Option = {
  name: "wait",
  help: "wait up to 10 minutes for another sync, then plan again; with --live, wait for other approvals to end",
};

/** The longest wait of a command. An approval ends within this time. */
const MAX_WAIT_MS = APPROVAL_LIFE_MS;
const LOOK_EVERY_MS = 2_000;

/** Runs the sync again after another sync changed the environment, or after other syncs used up the changes of a minute. */
export async function waitForTurn(input: Input, io: Io, run: () => Promise<number>): Promise<number> {
  const endsAt = io.clock.now() + MAX_WAIT_MS;
  for (;;) {
    try {
      return await run();
    } catch (error) {
      const waitMs = error instanceof Refusal ? findWait(error, io) : null;
      if (waitMs === null || !input.on("wait") || io.clock.now() + waitMs > endsAt) throw error;
      io.inform("Another sync changed the environment: the command waits for it, then plans again.");
      await sleep(io.clock, waitMs);
    }
  }
}

/** Returns the time until another attempt is useful, or null for a refusal that time does not change. */
function findWait({ code, extra }: Refusal, io: Io): number | null {
  if (code === "version_conflict") return LOOK_EVERY_MS;
  if (code !== "sync_capped" || extra.resetAtMs === undefined) return null;
  return Math.max(LOOK_EVERY_MS, extra.resetAtMs - io.clock.now());
}

/** Waits until no approval of production is open, because each change of production voids the others. */
export async function waitForApprovals(remote: Remote, io: Io): Promise<void> {
  const endsAt = io.clock.now() + MAX_WAIT_MS;
  for (let isInformed = false; ; isInformed = true) {
    const { approvals, others } = await remote.request<{ approvals: unknown[]; others?: number }>(
      "GET",
      "/approvals",
    );
    // A server of an earlier version does not count those of other callers.
    if (approvals.length + (others ?? 0) === 0) return;
    if (io.clock.now() >= endsAt)
      throw new CommandFailure(
        "approval_pending",
        "Another change of production still waits for approval after 10 minutes: ask an owner to decide it, then run the command again.",
      );
    if (!isInformed)
      io.inform("Another change of production waits for approval: the command waits until it ends.");
    await sleep(io.clock, LOOK_EVERY_MS);
  }
}
