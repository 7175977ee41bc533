/**
 * Tells each problem as it is raised and as it is cleared, whoever did: it looks after every commit that touched one, and compares with what
 * stood before. What stands at the start is told too. A problem of the whole server is every environment's, and the server tells of it once, itself.
 */

import type { Log } from "../../base/log.ts";
import type { EnvironmentName } from "../../platform/account/environment.ts";
import type { ProblemNotice } from "../../platform/audit/notifier.ts";
import { UNNAMED_PROXY } from "../../platform/audit/unnamed-proxy.ts";
import { type Store, StoreUnavailable } from "../../store/port.ts";

/** Problems that are told apart at a time. */
const MAX_STANDING = 1_000;

interface ProblemLogDeps {
  store: Store;
  log: Log;
  tell(problem: ProblemNotice): void;
}

type StandingRow = Omit<ProblemNotice, "now"> & { id: string; environmentName: EnvironmentName };

export class ProblemLog {
  readonly #deps: ProblemLogDeps;
  #standing = new Map<string, StandingRow>();
  /** A look that is on its way, and whether another is wanted after it. */
  #looking: Promise<void> | null = null;
  #again = false;
  #stopped = false;

  constructor(deps: ProblemLogDeps) {
    this.#deps = deps;
  }

  /** Problems may have changed. */
  look(): void {
    if (this.#stopped) return;
    this.#again = true;
    this.#looking ??= this.#lookAgain().finally(() => {
      this.#looking = null;
    });
  }

  /** Tells what changed last. */
  async stop(): Promise<void> {
    await this.#looking;
    this.#stopped = true;
  }

  async #lookAgain(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      try {
        await this.#compare();
      } catch (error) {
        // The next change, or the next start, tells what stands.
        if (!(error instanceof StoreUnavailable)) this.#deps.log.error("problems cannot be told", { error });
      }
    }
  }

  async #compare(): Promise<void> {
    const rows = await this.#deps.store.read((tx) => tx.all<StandingRow>(STANDING));
    const standing = new Map(rows.map((row) => [row.id, row]));
    for (const [id, row] of this.#standing)
      if (!standing.has(id)) this.#deps.tell({ ...row, now: "cleared" });
    for (const [id, row] of standing) if (!this.#standing.has(id)) this.#deps.tell({ ...row, now: "raised" });
    this.#standing = standing;
  }
}

const STANDING = `SELECT problem.id, code, target, message, environment.app_id AS appId, environment.name AS environmentName
  FROM problem INDEXED BY problem_by_standing JOIN environment ON environment.id = problem.environment_id
  WHERE cleared_at IS NULL AND code <> '${UNNAMED_PROXY}' LIMIT ${MAX_STANDING}`;
