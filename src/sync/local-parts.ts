/** What the pieces of local development share: the store, the one environment, the folder, and where to tell what was done. */
import { dirname, relative } from "node:path";
import type { Environment } from "../account/environment.ts";
import { COMMAND_LINE } from "../account/owner.ts";
import type { Clock } from "../ground/clock.ts";
import type { RaisableLimits } from "../ground/limit.ts";
import type { RelayContext } from "../relay/relay.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Store } from "../store/port.ts";
import type { FileProblem } from "./json-file.ts";

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

/** The file as lines name it: `service/relays/checkout.json`. */
export function showFile({ serviceDir }: LocalParts, path: string): string {
  return relative(dirname(serviceDir), path);
}

/** Tells every problem of a file with its place, and that nothing of it is applied. */
export function tellProblems(parts: LocalParts, path: string, problems: readonly FileProblem[]): void {
  const file = showFile(parts, path);
  for (const { place, message } of problems) {
    parts.tell(`${file}${place === null ? "" : `:${place.line}:${place.column}`}  ${message}`);
  }
  parts.tell(`${file}  is not applied; what was good before stays in force.`);
}
