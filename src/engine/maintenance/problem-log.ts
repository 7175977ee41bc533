/**
 * Reports each problem that is raised or cleared, by any process. It reads the open problems after every commit that changed one, and compares them
 * with those before. At the start it reports the open ones. A problem of the whole server is in every environment, so the server reports it itself.
 */

import type { Log } from "../../base/log.ts";
import type { EnvironmentName } from "../../platform/account/environment.ts";
import type { ProblemNotice } from "../../platform/audit/notifier.ts";
import { UNNAMED_PROXY } from "../../platform/audit/unnamed-proxy.ts";
import { type Store, StoreUnavailable } from "../../store/port.ts";

/** The most open problems that are compared. */
const MAX_STANDING = 1_000;

interface ProblemLogDeps {
  store: Store;
  log: Log;
  notify(problem: ProblemNotice): void;
}

type RaisedProblem = Omit<ProblemNotice, "now"> & { id: string; environmentName: EnvironmentName };

export class ProblemLog {
  readonly #deps: ProblemLogDeps;
  #raised = new Map<string, RaisedProblem>();
  /** The check in progress, and whether another one follows it. */
  #checking: Promise<void> | null = null;
  #isStale = false;
  #stopped = false;

  constructor(deps: ProblemLogDeps) {
    this.#deps = deps;
  }

  /** Checks the problems now. */
  check(): void {
    if (this.#stopped) return;
    this.#isStale = true;
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null;
    });
  }

  /** Stops after reporting the last changes. */
  async stop(): Promise<void> {
    await this.#checking;
    this.#stopped = true;
  }

  async #check(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      try {
        await this.#compare();
      } catch (error) {
        // The next change, or the next start, reports the open problems.
        if (!(error instanceof StoreUnavailable))
          this.#deps.log.error("problems cannot be reported", { error });
      }
    }
  }

  async #compare(): Promise<void> {
    const rows = await this.#deps.store.read((tx) => tx.all<RaisedProblem>(RAISED));
    const raised = new Map(rows.map((row) => [row.id, row]));
    for (const [id, row] of this.#raised) if (!raised.has(id)) this.#deps.notify({ ...row, now: "cleared" });
    for (const [id, row] of raised) if (!this.#raised.has(id)) this.#deps.notify({ ...row, now: "raised" });
    this.#raised = raised;
  }
}

const RAISED = `SELECT problem.id, code, target, message, environment.app_id AS appId, environment.name AS environmentName
  FROM problem INDEXED BY problem_open JOIN environment ON environment.id = problem.environment_id
  WHERE cleared_at IS NULL AND code <> '${UNNAMED_PROXY}' LIMIT ${MAX_STANDING}`;
