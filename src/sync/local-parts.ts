/** What the pieces of local development share: the store, the one environment, the folder, and where to tell what was done. */
import { COMMAND_LINE } from "../account/actor.ts";
import type { Environment } from "../account/environment.ts";
import type { Clock } from "../ground/clock.ts";
import type { RaisableLimits } from "../ground/limit.ts";
import type { RelayContext } from "../relay/relay-context.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Store } from "../store/port.ts";

export interface LocalParts {
  store: Store;
  environment: Environment;
  serviceDir: string;
  sealer: Sealer;
  /** Public origin without a trailing slash. */
  baseUrl: string;
  limits: Pick<RaisableLimits, "relaysPerEnvironment">;
  clock: Clock;
  /** Takes one line for the person at the terminal. */
  tell: (line: string) => void;
  /** Called after relays or their secrets were changed. */
  changed: () => void;
}

/** The context of a save made from a file now. */
export function relayContext(parts: LocalParts): RelayContext {
  const { environment, sealer, baseUrl, limits, clock } = parts;
  return { environment, actor: COMMAND_LINE, nowMs: clock.now(), limits, sealer, baseUrl };
}
