/** What every change of a relay is told: where, by whom, when, and under which limits. It holds no state. */

import type { Environment } from "../account/environment.ts";
import type { Actor } from "../account/owner.ts";
import type { RaisableLimits } from "../ground/limit.ts";
import type { Sealer } from "../secret/seal.ts";

export interface RelayContext {
  environment: Environment;
  actor: Actor;
  nowMs: number;
  limits: Pick<RaisableLimits, "relaysPerEnvironment">;
  sealer: Sealer;
  /** Public origin without a trailing slash. */
  baseUrl: string;
}
